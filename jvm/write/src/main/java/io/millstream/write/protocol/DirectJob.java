package io.millstream.write.protocol;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.protocol.CommitPlan.Phase;
import io.millstream.write.store.Causes;
import io.millstream.write.store.JobId;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Stores;
import io.millstream.write.store.Uninterrupted;
import io.millstream.write.store.UnsuitedException;
import io.millstream.write.store.WriteOptions;
import java.io.Closeable;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A job that writes files straight into a table's directories, from the driver's side: {@link #begin}, tasks that write
 * through the {@link #placement}, then {@link #commit} or {@link #abort}. If its driver dies before either, the next
 * job that begins on the table, or {@code Recovery}, resolves it.
 */
public final class DirectJob implements Closeable {
    private final TableAccess table;
    private final String id;
    private final Resolution resolution;
    private final Lease lease;
    private final Commit commit;
    private final JobCleaner cleaner;
    /** Number of requests that this process had sent when the job began ({@link Store#requests}). */
    private final long earlierRequests;

    private boolean isCommitted;

    private DirectJob(
            TableAccess table, String id, String below, long earlierRequests, boolean hasMadeTable, Pointer pointer) {
        this.table = table;
        this.id = id;
        this.earlierRequests = earlierRequests;
        resolution = new Resolution(table);
        lease = new Lease(table, id);
        commit = new Commit(table, resolution, lease, id, below);
        cleaner = new JobCleaner(table, resolution, lease, id, below, hasMadeTable, pointer);
    }

    /**
     * Why tables on a file system cannot be written directly.
     *
     * @param fs the table's file system
     * @return the reason, as a sentence for a warning; empty if they can
     */
    public static Optional<String> whyNot(FileSystem fs) {
        return Stores.whyNot(fs);
    }

    /**
     * Why a job of this process cannot write to directories of some names. Java names local files in the character
     * encoding of the process's locale.
     *
     * @param fs the table's file system
     * @param names paths of directories, or parts of them
     * @param isOpen whether the names of some directories will be known only when their rows are written
     * @return the reason, as a sentence for a warning; empty if it can
     */
    public static Optional<String> whyNoNames(FileSystem fs, Collection<String> names, boolean isOpen) {
        return Stores.whyNoNames(fs, names, isOpen);
    }

    /**
     * Why directories of a table cannot be exchanged ({@link CommitPlan#exchange}).
     *
     * @param table the root directory of the write
     * @param conf of the file system, with {@link WriteOptions}
     * @return the reason, as a sentence for a warning; empty if they can
     * @throws IOException if the file system cannot be reached
     */
    public static Optional<String> whyNoExchange(Path table, Configuration conf) throws IOException {
        return Stores.whyNoExchange(table, conf);
    }

    /**
     * Resolves dead jobs of the table, then begins one.
     *
     * @param table the root directory of the table or partitioned directory; created if missing
     * @param id the job's UUID, which is in the name of every file
     * @param below the directory, relative to the table's, that will contain all files of the job; a failed job is
     *     cleaned up only there. "" if unknown
     * @param conf of the file system, with {@link WriteOptions}
     * @param metastore for dead jobs that have committed; without one (null), such a job is an error
     * @return the job
     * @throws UnsuitedException if the file system lacks a feature that only the first write reveals
     * @throws IOException if the table cannot be reached, or a dead job cannot be resolved
     */
    public static DirectJob begin(Path table, String id, String below, Configuration conf, Metastore metastore)
            throws IOException {
        return begin(TableAccess.of(table, conf, metastore), id, below, Pointer.to(id, table, conf));
    }

    /** Like {@link #begin(Path, String, String, Configuration, Metastore)}, for a table that is already open. */
    public static DirectJob begin(TableAccess table, String id, String below) throws IOException {
        return begin(table, id, below, Pointer.none());
    }

    private static DirectJob begin(TableAccess table, String id, String below, Pointer pointer) throws IOException {
        if (!id.matches(JobId.PATTERN)) {
            throw new IllegalArgumentException("the id of a job must be a UUID: " + id);
        }
        long earlierRequests = table.store().requests();
        boolean hasMadeTable = table.store().isMissing();
        try {
            if (!table.store()
                    .begin(
                            Journal.begin(id),
                            new Journal.Begin(ThisProcess.owner(), table.options().leaseMillis, below).toBytes())) {
                throw new IOException("job " + id + " on " + table.root() + " already exists");
            }
        } catch (UnsuitedException e) {
            // Removes the journal's directory if it is empty.
            table.store().remove(List.of());
            if (hasMadeTable) {
                table.store().removeEmptyTree("");
            }
            throw e;
        }
        pointer.set();
        DirectJob job = new DirectJob(table, id, below, earlierRequests, hasMadeTable, pointer);
        try {
            job.resolution.resolveDead(Journal.of(table.store()));
            return job;
        } catch (Throwable e) { // Scala code may throw undeclared exceptions
            job.abort();
            job.close();
            throw e;
        }
    }

    /** The job's id. */
    public String id() {
        return id;
    }

    /** The job's destinations for its tasks. */
    public Placement placement() {
        return new Placement(table.root(), id);
    }

    /**
     * Commits: waits for the table's commit lock, lists the files to replace, writes the commit record, and carries it
     * out.
     *
     * @param plan the commit's instructions
     * @return the result
     * @throws CommittedException if the record is written but not completely carried out; the next statement on the
     *     table, or a recovery, finishes it
     * @throws SupersededException if the job is over, but a program that does not know the journal has replaced or
     *     removed some of its rows
     * @throws ConflictException if another job has changed the table since the statement read it: nothing is written
     * @throws IOException if the job is not committed and the table is unchanged or, if the message says so, it is not
     *     known whether the job is committed. In both cases call {@link #abort}
     * @throws IllegalStateException if the job has been committed or aborted before
     */
    public CommitOutcome commit(CommitPlan plan) throws IOException {
        if (isCommitted || cleaner.isOver()) {
            throw new IllegalStateException("job " + id + " has ended");
        }
        Phases phases = new Phases(plan.listener);
        CommitRecord record = commit.run(plan, phases);
        isCommitted = true;
        Ending ending;
        try {
            ending = new Apply(table, id, record, plan.distribution, phases, Apply.Role.OWNER).run();
        } catch (JournalGoneException e) {
            throw new CommittedException(
                    "job " + id + " on " + table.root() + " was committed, but was not finished and may never be: "
                            + Causes.text(e),
                    e);
        } catch (IOException | RuntimeException | LinkageError e) {
            throw new CommittedException(
                    "job " + id + " on " + table.root()
                            + " is committed, but is not finished yet: the next statement on the table, or"
                            + " `millstream recover`, finishes it once the cause is gone. Cause: " + Causes.text(e),
                    e);
        }
        phases.time(Phase.CLEAN, () -> {
            cleaner.cleanFinished(record, ending, commit.lock());
            return null;
        });
        return switch (ending.outcome()) {
            case COMPLETE -> outcome(record, phases);
            case REVOKED -> throw new IOException(ending.detail());
            case SUPERSEDED, MIXED, LOST -> throw new SupersededException(ending.detail());
        };
    }

    private CommitOutcome outcome(CommitRecord record, Phases phases) {
        long bytes = record.added().stream().mapToLong(StagedFile::bytes).sum();
        return new CommitOutcome(
                record.added().size(),
                bytes,
                record.deleted().size(),
                Commit.touched(record.added()).size(),
                table.store().requests() - earlierRequests,
                record.added().stream().mapToLong(StagedFile::uploadRequests).sum(),
                Map.copyOf(phases.nanos()));
    }

    /**
     * Removes all files of the job's attempts. Does nothing after a commit. Failures are logged, and the rest is left
     * to recovery.
     */
    public void abort() {
        if (!isCommitted && !cleaner.isOver()) {
            Uninterrupted.run(() -> cleaner.rollBack(commit));
        }
    }

    /** Stops renewing the lease. From then on, a job that is not over counts as dead, committed or not. */
    @Override
    public void close() {
        lease.end();
        if (!cleaner.isOver()) {
            Uninterrupted.run(cleaner::giveUp);
        }
    }
}
