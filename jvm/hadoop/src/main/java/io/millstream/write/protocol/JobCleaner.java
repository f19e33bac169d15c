package io.millstream.write.protocol;

import io.millstream.write.protocol.Finding.Run;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Removes a job's journal entries and leftover files once it has ended. Failures are logged, and the next job or recovery removes the rest. */
final class JobCleaner {
  private static final Logger LOG = LoggerFactory.getLogger(JobCleaner.class);

  private final TableAccess table;
  private final Resolution resolution;
  private final Lease lease;
  private final String job;
  private final String below;
  /** Whether this job made the table's directory: a roll-back then removes it, so that a CREATE TABLE can be repeated. */
  private final boolean hasMadeTable;
  private boolean isOver;

  JobCleaner(TableAccess table, Resolution resolution, Lease lease, String job, String below, boolean hasMadeTable) {
    this.table = table;
    this.resolution = resolution;
    this.lease = lease;
    this.job = job;
    this.below = below;
    this.hasMadeTable = hasMadeTable;
  }

  /** Whether the job's signs of life are removed from the journal, so that nobody has to resolve it. */
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
    // Stop the lease first: a sign of life written after the others are removed would stay.
    lease.end();
    boolean keepsFiles = ending.outcome() == Ending.Outcome.SUPERSEDED;
    if (!table.store().leftoversNameTheirJobs() && !keepsFiles) {
      discardLeftovers();
    }
    try {
      table.store().remove(Journal.signs(job));
      isOver = true;
      List<String> rest = new ArrayList<>(List.of(lock.entry()));
      rest.addAll(lock.journal().forgettable(record.kindOf(ending), Resolution.KEPT_MILLIS));
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
      LOG.warn("Job {} on {} is committed and finished, but its journal could not be removed", job, table.root(), e);
    }
  }

  /** Once the journal has forgotten the job, nobody can tell what its failed attempts have left. */
  private void discardLeftovers() {
    try {
      table.store().discard(table.store().leftovers(below, job::equals));
    } catch (IOException e) {
      LOG.warn("What failed attempts of job {} on {} may have left could not be looked for or removed", job, table.root(), e);
    }
  }

  /**
   * Removes everything that the attempts of a job have written, unless it turns out to be committed.
   *
   * @param commit how far it came
   */
  void rollBack(Commit commit) {
    try {
      if (commit.hasTried() && !CommitRecord.isAborted(resolution.abort(job))) {
        LOG.error("Job {} on {} is committed, though its commit seemed to fail: a recovery finishes it", job, table.root());
        return;
      }
      lease.end();
      resolution.rollBack(job, below, Run.REAL);
      isOver = true;
      // Attempts that have ended since then found the job's begin there.
      table.store().discard(table.store().leftovers(below, job::equals));
      List<String> rest = new ArrayList<>();
      if (commit.lock() != null) {
        rest.add(commit.lock().entry());
      }
      if (!commit.hasTried()) {
        // Someone may have marked the job as aborted. A job that never tried to commit will not look for that mark.
        rest.add(Journal.commit(job));
      }
      table.store().remove(rest);
      if (hasMadeTable) {
        table.store().removeEmptyTree("");
      }
    } catch (IOException | RuntimeException e) {
      LOG.warn("Job {} on {} is left to a recovery", job, table.root(), e);
    }
  }

  /** Lets others take the job for dead at once. */
  void giveUp() {
    try {
      table.store().replace(Journal.abandoned(job), Journal.NOTHING);
    } catch (IOException | RuntimeException e) {
      LOG.warn("Others have to wait until the lease of job {} on {} runs out", job, table.root(), e);
    }
  }
}
