package io.millstream.write.protocol;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The table's commit lock. A job has it once it has made {@code lock-N} and then has seen that the job of every other lock is over. Of two that
 * make theirs at the same time, the one that looks later sees the other; both may, and then both draw back. The file system answers who made
 * it, so that listings that are a little old cost time, not safety. N is never used again, as a job that is late removes its own by name: it begins
 * with the time, by the clock of the store.
 *
 * <p>A job that is committed and holds the lock is finished by whoever waits for it.
 */
final class CommitLock {
  private static final long FIRST_PAUSE_MILLIS = 10;
  private static final long LONGEST_PAUSE_MILLIS = 1000;

  /**
   * The lock of a job.
   *
   * @param entry in the journal
   * @param number of it
   * @param journal in which the jobs of all other locks are over
   */
  record Held(String entry, long number, Journal journal) { }

  private final TableAccess table;
  private final Resolution resolution;
  private final String job;
  private String holder;
  /** Whether the holder was helped, so that there is nothing to wait for. */
  private boolean hasHelped;

  CommitLock(TableAccess table, Resolution resolution, String job) {
    this.table = table;
    this.resolution = resolution;
    this.job = job;
  }

  /**
   * Waits for the lock and takes it.
   *
   * @throws IOException if it is not to be had in time, or others have aborted this job, or the journal is gone
   */
  Held take() throws IOException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(table.options().lockWaitMillis);
    for (long pauseMillis = FIRST_PAUSE_MILLIS; ; pauseMillis = Math.min(2 * pauseMillis, LONGEST_PAUSE_MILLIS)) {
      Held taken = tryTake();
      if (taken != null) {
        return taken;
      }
      if (System.nanoTime() > deadline) {
        throw new IOException("job " + job + " has waited to commit to " + table.root() + " for " + table.options().lockWaitMillis
            + " ms; job " + holder + " holds the commit lock");
      }
      table.waiting().pause(hasHelped ? 0 : pauseMillis);
    }
  }

  private Held tryTake() throws IOException {
    hasHelped = false;
    Journal before = Journal.of(table.store());
    checkUndecided(before);
    if (isHeldByAnother(before, null)) {
      return null;
    }
    long number = newNumber(before);
    String mine = Journal.lock(number);
    if (!table.store().create(mine, job.getBytes(StandardCharsets.UTF_8))) {
      return null;
    }
    Journal after = Journal.of(table.store());
    checkUndecided(after);
    if (isHeldByAnother(after, mine)) {
      table.store().remove(List.of(mine));
      return null;
    }
    List<String> others = after.locks().values().stream().filter(lock -> !lock.equals(mine)).toList();
    if (!others.isEmpty()) {
      // Their jobs may have made their marks since the listing.
      after = Journal.of(table.store());
      table.store().remove(others);
    }
    return new Held(mine, number, after);
  }

  private static long newNumber(Journal journal) {
    return Math.max(journal.nowMillis(), journal.lastNumber() + 1);
  }

  private void checkUndecided(Journal journal) throws IOException {
    Journal.Job own = journal.job(job);
    if (own.isDecided()) {
      throw Resolution.lost(table, job);
    }
    if (!own.hasBegun()) {
      throw new IOException("the journal entry of job " + job + " is gone from " + table.root() + ": the table was dropped, renamed or overwritten"
          + " by a program that does not know direct writes, since this statement began; nothing is written");
    }
  }

  /** Whether another job has a lock and is not over. What can be done about it is done. */
  private boolean isHeldByAnother(Journal journal, String mine) throws IOException {
    for (String lock : journal.locks().values()) {
      byte[] content = lock.equals(mine) ? null : table.store().read(lock);
      String id = content == null ? job : new String(content, StandardCharsets.UTF_8);
      if (!id.equals(job) && !isOver(journal.job(id))) {
        holder = id;
        if (mine == null) {
          help(journal, journal.job(id));
        }
        return true;
      }
    }
    return false;
  }

  /**
   * Not what the listing says of a beginning: it may have passed its place before the job made it, and then its lock. A job that is finished
   * may be at a step all the same, if another has finished it; it looks for its beginning before each.
   */
  private boolean isOver(Journal.Job other) throws IOException {
    boolean hasBegun = table.store().read(Journal.begin(other.id)) != null;
    if (other.isFinished() && hasBegun) {
      table.store().remove(Journal.signs(other.id));
    }
    return other.isFinished() || !hasBegun && !resolution.hasRecord(other.id);
  }

  private void help(Journal journal, Journal.Job other) throws IOException {
    if (resolution.hasRecord(other.id)) {
      resolution.finish(other.id);
      hasHelped = true;
    } else if (resolution.isDead(journal, other)) {
      resolution.resolve(other.id);
      hasHelped = true;
    }
  }
}
