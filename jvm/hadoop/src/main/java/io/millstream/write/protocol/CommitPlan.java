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

/** What a job asks its commit to do. */
public final class CommitPlan {
  /** Says what changes in the metastore, and may refuse. */
  @FunctionalInterface
  public interface MetastorePlanner {
    /**
     * Called while the job has the commit lock, just before the commit point.
     *
     * @param draft the files
     * @return what is to change, or null for nothing
     * @throws IOException to refuse: the job is not committed, and is to be aborted
     */
    MetastoreChange plan(CommitDraft draft) throws IOException;
  }

  /** Says what of the catalog's a job touches, while the job has the commit lock. */
  @FunctionalInterface
  public interface Survey {
    /**
     * Called before old files are listed.
     *
     * @param directories that get files
     * @return what there is, or null if the directories themselves are all that there is to know
     * @throws IOException to refuse: the job is not committed, and is to be aborted
     */
    Found find(Set<String> directories) throws IOException;
  }

  /**
   * What of the catalog's a job touches.
   *
   * @param old directories that have the files to be replaced, if the job overwrites
   * @param unclaimed directories, of those that get files, of which the catalog does not know yet
   * @param replacesUnclaimed whether what is in those is replaced by any job, as Hive does, or added to, as Spark does
   */
  public record Found(Collection<String> old, Collection<String> unclaimed, boolean replacesUnclaimed) { }

  /** Runs the parts of a large commit elsewhere, as in a Spark job. */
  @FunctionalInterface
  public interface Distribution {
    /**
     * Runs every batch once at least; all may run at once, and again.
     *
     * @param batches they are serialisable
     * @throws IOException if one failed
     */
    void run(List<ApplyBatch> batches) throws IOException;
  }

  /** Hears how far a commit is. */
  @FunctionalInterface
  public interface Listener {
    /**
     * Called often, from any thread.
     *
     * @param phase what is being done
     * @param done how many of it are done
     * @param total how many there are
     */
    void progress(Phase phase, int done, int total);
  }

  /** The parts of a commit, in their order. */
  public enum Phase { LOCK, LIST, RECORD, PUBLISH, DELETE, METASTORE, CLEAN }

  public final List<StagedFile> files;
  public final Overwrite overwrite;
  UnaryOperator<String> places;
  TableVersion readVersion;
  Survey survey = directories -> null;
  MetastorePlanner metastorePlanner = draft -> null;
  Distribution distribution;
  Listener listener = (phase, done, total) -> { };

  /**
   * A commit of what task attempts have reported.
   *
   * @param files of the attempts that count: one of each task
   * @param overwrite what they replace
   */
  public CommitPlan(Collection<StagedFile> files, Overwrite overwrite) {
    this.files = new ArrayList<>(files);
    this.overwrite = overwrite;
  }

  /**
   * Lets each directory that gets files, all of which are the job's own ({@link SwapDirectories}), change places with one that readers
   * list.
   *
   * @param placeOf the place of a directory
   */
  public CommitPlan exchange(UnaryOperator<String> placeOf) {
    places = placeOf;
    return this;
  }

  /**
   * Says that the statement has read the table: it is refused if another job has changed the table since.
   *
   * @param version of the table when it began to read
   */
  public CommitPlan hasRead(TableVersion version) {
    readVersion = version;
    return this;
  }

  /** Sets who says where the catalog has what is overwritten. */
  public CommitPlan survey(Survey surveyor) {
    survey = surveyor;
    return this;
  }

  /** Sets who says what changes in the metastore. */
  public CommitPlan metastore(MetastorePlanner planner) {
    metastorePlanner = planner;
    return this;
  }

  /** Sets who runs a large commit ({@link WriteOptions#DISTRIBUTE_FILES}). */
  public CommitPlan distribution(Distribution runner) {
    distribution = runner;
    return this;
  }

  /** Sets who hears of the progress. */
  public CommitPlan listener(Listener hears) {
    listener = hears;
    return this;
  }
}
