package io.millstream.write.protocol;

import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.SwapDirectories;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;

/** The instructions for a job's commit. */
public final class CommitPlan {
    /** Plans the change of the metastore, and may refuse the commit. */
    @FunctionalInterface
    public interface MetastorePlanner {
        /**
         * Called while the job holds the commit lock, just before the commit point.
         *
         * @param draft the files of the commit
         * @return the change, or null for none
         * @throws IOException to refuse: the job is not committed and must be aborted
         */
        MetastoreChange plan(CommitDraft draft) throws IOException;
    }

    /** Looks up the directories in the catalog, while the job holds the commit lock. */
    @FunctionalInterface
    public interface Survey {
        /**
         * Called before old files are listed.
         *
         * @param directories the directories that get files
         * @return the catalog's answer, or null if there is no catalog to ask
         * @throws IOException to refuse: the job is not committed and must be aborted
         */
        Found find(Set<String> directories) throws IOException;
    }

    /**
     * The catalog's view of the directories that a job touches.
     *
     * @param old directories with the files to replace, if the job overwrites
     * @param unclaimed directories that get files and that the catalog does not know yet
     * @param replacesUnclaimed whether every job replaces the files in those directories, as Hive does, or adds to
     *     them, as Spark does
     */
    public record Found(Collection<String> old, Collection<String> unclaimed, boolean replacesUnclaimed) {}

    /** Finishes the committed writes to other tables, in whose directories the job writes or replaces files. */
    @FunctionalInterface
    public interface Neighbours {
        /**
         * Called while the job holds the commit lock, before its record is written.
         *
         * @param directories the directories that get files and those with the files to replace, relative to the
         *     table's or absolute
         * @return whether a write had to be finished, so that the files to replace may have changed
         * @throws IOException to refuse: the job is not committed and must be aborted
         */
        boolean finish(Collection<String> directories) throws IOException;
    }

    /** Runs the parts of a large commit elsewhere, for example in a Spark job. */
    @FunctionalInterface
    public interface Distribution {
        /**
         * Runs every batch at least once; batches may run concurrently and repeatedly.
         *
         * @param batches serialisable batches
         * @throws IOException if a batch failed
         */
        void run(List<ApplyBatch> batches) throws IOException;
    }

    /** Receives the progress of a commit. */
    @FunctionalInterface
    public interface Listener {
        /**
         * Called often, from any thread.
         *
         * @param phase the current phase
         * @param done number of items done
         * @param total number of items
         */
        void progress(Phase phase, int done, int total);
    }

    /** The phases of a commit, in order. */
    public enum Phase {
        LOCK,
        LIST,
        RECORD,
        PUBLISH,
        DELETE,
        METASTORE,
        CLEAN
    }

    public final List<StagedFile> files;
    public final Overwrite overwrite;
    UnaryOperator<String> destinations;
    TableVersion readVersion;
    Survey survey = directories -> null;
    Neighbours neighbours = directories -> false;
    MetastorePlanner metastorePlanner = draft -> null;
    Distribution distribution;
    Listener listener = (phase, done, total) -> {};

    /**
     * A commit of the files that task attempts have reported.
     *
     * @param files files of the successful attempts, one attempt per task
     * @param overwrite the old files that they replace
     */
    public CommitPlan(Collection<StagedFile> files, Overwrite overwrite) {
        this.files = new ArrayList<>(files);
        this.overwrite = overwrite;
    }

    /**
     * Exchanges each directory that gets files, all of which are the job's own ({@link SwapDirectories}), with one that
     * readers list.
     *
     * @param destinationOf maps a directory of the job to the directory that it replaces
     */
    public CommitPlan exchange(UnaryOperator<String> destinationOf) {
        destinations = destinationOf;
        return this;
    }

    /**
     * Declares that the statement has read the table; the commit is refused if another job has changed the table since.
     *
     * @param version the table's version when the statement began to read
     */
    public CommitPlan hasRead(TableVersion version) {
        readVersion = version;
        return this;
    }

    /** Sets the lookup of the catalog's current locations. */
    public CommitPlan survey(Survey surveyor) {
        survey = surveyor;
        return this;
    }

    /** Sets what finishes the writes to other tables. */
    public CommitPlan neighbours(Neighbours finisher) {
        neighbours = finisher;
        return this;
    }

    /** Sets the planner of the metastore's change. */
    public CommitPlan metastore(MetastorePlanner planner) {
        metastorePlanner = planner;
        return this;
    }

    /** Sets the runner of a large commit's parts ({@link WriteOptions#DISTRIBUTE_FILES}). */
    public CommitPlan distribution(Distribution runner) {
        distribution = runner;
        return this;
    }

    /** Sets the receiver of progress. */
    public CommitPlan listener(Listener receiver) {
        listener = receiver;
        return this;
    }
}
