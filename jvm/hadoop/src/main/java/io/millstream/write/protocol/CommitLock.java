package io.millstream.write.protocol;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The table's commit lock. A job has the turn once it has made {@code turn-N} and then has seen that the holder of every other turn
 * is settled. Of two that make theirs at the same time, the one that looks later sees the other; both may, and then both draw back.
 * The file system answers who made it, so that listings that are a little old cost time, not safety. N is never used again, as a job that
 * is late removes its own by name: it begins with the time, by the clock of the store.
 */
public final class CommitLock {
  private static final long FIRST_PAUSE_MILLIS = 10;
  private static final long LONGEST_PAUSE_MILLIS = 1000;

  private final TableAccess table;
  private final Resolution resolution;
  private final String job;
  private String holder;

  public CommitLock(TableAccess table, Resolution resolution, String job) {
    this.table = table;
    this.resolution = resolution;
    this.job = job;
  }

  /**
   * Waits for the turn and takes it.
   *
   * @return the name of its file
   * @throws IOException if it is not to be had in time, or others have settled this job
   */
  public String take() throws IOException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(table.options().lockWaitMillis);
    for (long pauseMillis = FIRST_PAUSE_MILLIS; ; pauseMillis = Math.min(2 * pauseMillis, LONGEST_PAUSE_MILLIS)) {
      String taken = tryTake();
      if (taken != null) {
        return taken;
      }
      if (System.nanoTime() > deadline) {
        throw new IOException("job " + job + " has waited for its turn to commit to " + table.root() + " for "
            + table.options().lockWaitMillis + " ms; job " + holder + " has it");
      }
      table.waiting().pause(pauseMillis);
    }
  }

  private String tryTake() throws IOException {
    Journal before = Journal.of(table.store());
    checkUndecided(before);
    Journal.Job other = otherHolder(before, null);
    if (other != null) {
      holder = other.id;
      if (resolution.isDead(before, other)) {
        resolution.settle(other.id);
      }
      return null;
    }
    String mine = Journal.turn(newNumber(before));
    if (!table.store().create(mine, job.getBytes(StandardCharsets.UTF_8))) {
      return null;
    }
    Journal after = Journal.of(table.store());
    checkUndecided(after);
    other = otherHolder(after, mine);
    if (other != null) {
      holder = other.id;
      table.store().remove(List.of(mine));
      return null;
    }
    table.store().remove(after.turns().values().stream().filter(turn -> !turn.equals(mine)).toList());
    return mine;
  }

  private long newNumber(Journal journal) {
    return journal.turns().isEmpty() ? journal.nowMillis() : Math.max(journal.nowMillis(), journal.turns().lastKey() + 1);
  }

  private void checkUndecided(Journal journal) throws IOException {
    Journal.Job own = journal.unsettled(job);
    if (own == null || own.isDecided()) {
      throw Resolution.lost(table, job);
    }
  }

  /** A job that has a turn and is not settled; null if none has. */
  private Journal.Job otherHolder(Journal journal, String mine) throws IOException {
    for (String turn : journal.turns().values()) {
      byte[] content = turn.equals(mine) ? null : table.store().read(turn);
      String id = content == null ? job : new String(content, StandardCharsets.UTF_8);
      // Not what the listing says: it may have passed the place of a job's begin before the job made it, and then its turn.
      if (!id.equals(job) && table.store().read(Journal.begin(id)) != null) {
        return journal.job(id);
      }
    }
    return null;
  }
}
