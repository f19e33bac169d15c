package io.millstream.write.protocol;

import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Removes a job's journal entries and leftover files after its end. Failures are logged, and the next job or recovery
 * removes the rest.
 */
final class JobCleaner {
    private static final Logger LOG = LoggerFactory.getLogger(JobCleaner.class);

    private final TableAccess table;
    private final Resolution resolution;
    private final Lease lease;
    private final String job;
    private final String below;
    /**
     * Whether this job created the table's directory; a rollback then removes it, so that a CREATE TABLE can be
     * repeated.
     */
    private final boolean hasMadeTable;

    private final Pointer pointer;
    private boolean isOver;

    JobCleaner(
            TableAccess table,
            Resolution resolution,
            Lease lease,
            String job,
            String below,
            boolean hasMadeTable,
            Pointer pointer) {
        this.table = table;
        this.resolution = resolution;
        this.lease = lease;
        this.job = job;
        this.below = below;
        this.hasMadeTable = hasMadeTable;
        this.pointer = pointer;
    }

    /**
     * Whether the job's begin and lease entries are removed from the journal, so that no other process needs to resolve
     * it.
     */
    boolean isOver() {
        return isOver;
    }

    /**
     * Cleans up after a job that is finished.
     *
     * @param record of its commit
     * @param ending how it ended
     * @param lock under which it has committed
     */
    void cleanFinished(CommitRecord record, Ending ending, CommitLock.Held lock) {
        // End the lease first: a renewal written after the entries are removed would stay.
        lease.end();
        boolean keepsFiles = ending.outcome() == Ending.Outcome.SUPERSEDED;
        if (!table.store().leftoversNameTheirJobs() && !keepsFiles) {
            discardLeftovers();
        }
        try {
            table.store().remove(Journal.liveEntries(job));
            isOver = true;
            pointer.remove();
            List<String> rest = new ArrayList<>(List.of(lock.entry()));
            rest.addAll(lock.journal().forgettable(record.kindOf(ending)));
            if (!keepsFiles) {
                rest.add(Journal.published(job));
            }
            if (!keepsFiles && !record.hasReplaced()) {
                rest.add(Journal.commit(job));
            }
            table.store().remove(rest);
            if (record.hasReplaced() && table.options().keepReplacedMillis == 0) {
                new ReplacedFiles(table).tryRemove(job);
            }
        } catch (IOException | RuntimeException e) {
            LOG.warn(
                    "Job {} on {} is committed and finished, but its journal entries could not be removed",
                    job,
                    table.root(),
                    e);
        }
    }

    /** Without the job's journal entries, the leftovers of its failed attempts could not be recognised. */
    private void discardLeftovers() {
        try {
            table.store().discard(table.store().leftovers(below, job::equals));
        } catch (IOException e) {
            LOG.warn(
                    "Leftover files of failed attempts of job {} on {} could not be found or removed",
                    job,
                    table.root(),
                    e);
        }
    }

    /**
     * Removes all files of the job's attempts, unless the job turns out to be committed.
     *
     * @param commit the state of the job's commit
     */
    void rollBack(Commit commit) {
        try {
            if (commit.hasTried() && !CommitRecord.isAborted(resolution.abort(job))) {
                LOG.error(
                        "Job {} on {} is committed, although its commit seemed to fail; recovery finishes it",
                        job,
                        table.root());
                return;
            }
            lease.end();
            resolution.rollBack(job, below, Run.REAL);
            isOver = true;
            pointer.remove();
            // Attempts that committed before the begin entry was removed may have added files since.
            table.store().discard(table.store().leftovers(below, job::equals));
            table.store().removeEmptyTree(SwapDirectories.root(job));
            commit.releaseDirectories();
            List<String> rest = new ArrayList<>();
            if (commit.lock() != null) {
                rest.add(commit.lock().entry());
            }
            if (!commit.hasTried()) {
                // Another process may have marked the job as aborted; a job that never tried to commit does not look
                // for that.
                rest.add(Journal.commit(job));
            }
            table.store().remove(rest);
            if (hasMadeTable) {
                table.store().removeEmptyTree("");
            }
        } catch (IOException | RuntimeException e) {
            LOG.warn("Job {} on {} could not be cleaned up and is left to recovery", job, table.root(), e);
        }
    }

    /** Declares the job dead, so that other processes need not wait for its lease to expire. */
    void giveUp() {
        try {
            table.store().replace(Journal.abandoned(job), Journal.NOTHING);
        } catch (IOException | RuntimeException e) {
            LOG.warn("Other jobs must wait until the lease of job {} on {} expires", job, table.root(), e);
        }
    }
}
