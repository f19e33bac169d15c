package io.millstream.write.protocol;

import io.millstream.write.protocol.Finding.Run;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Removes what a job leaves in the journal and in the table once it has ended. What fails is logged, and done by whoever comes next. */
final class JobCleaner {
  private static final Logger LOG = LoggerFactory.getLogger(JobCleaner.class);

  private final TableAccess table;
  private final Resolution resolution;
  private final Lease lease;
  private final String job;
  private final String below;
  /** Whether there was nothing before this job: a statement that makes a table wants to find nothing when it is repeated. */
  private final boolean isFirst;
  private boolean isOver;

  JobCleaner(TableAccess table, Resolution resolution, Lease lease, String job, String below, boolean isFirst) {
    this.table = table;
    this.resolution = resolution;
    this.lease = lease;
    this.job = job;
    this.below = below;
    this.isFirst = isFirst;
  }

  /** Whether the journal does not say any more that the job has begun. */
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
    // A sign that comes after the others are gone would stay.
    lease.end();
    boolean keepsFiles = ending.outcome() == Ending.Outcome.SUPERSEDED;
    if (!table.store().leftoversNameTheirJobs() && !keepsFiles) {
      discardLeftovers();
    }
    try {
      table.store().remove(Journal.signs(job));
      isOver = true;
      List<String> rest = new ArrayList<>(List.of(lock.entry()));
      Journal.Kind kind = ending.outcome() == Ending.Outcome.REVOKED ? Journal.Kind.NONE : record.kind();
      rest.addAll(lock.journal().forgettable(kind, Resolution.KEPT_MILLIS));
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
    } catch (IOException e) {
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
      List<String> rest = new ArrayList<>();
      if (commit.lock() != null) {
        rest.add(commit.lock().entry());
      }
      if (!commit.hasTried()) {
        // Another may have written that it is aborted; nobody has to know that of a job that never asks.
        rest.add(Journal.commit(job));
      }
      table.store().remove(rest);
      if (isFirst) {
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
