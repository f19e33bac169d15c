package io.millstream.write.protocol;

import java.io.IOException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Gives signs that a job lives. */
public final class Lease {
  private static final Logger LOG = LoggerFactory.getLogger(Lease.class);
  private static final int SIGNS_A_LEASE = 3;

  private final TableAccess table;
  private final String job;
  private final ScheduledExecutorService clock;
  private boolean ended;
  private long signedNanos = System.nanoTime();

  public Lease(TableAccess table, String job) {
    this.table = table;
    this.job = job;
    clock = Executors.newSingleThreadScheduledExecutor(work -> {
      Thread thread = new Thread(work, "millstream-write-lease");
      thread.setDaemon(true);
      return thread;
    });
    long periodMillis = Math.max(1, table.options().leaseMillis / SIGNS_A_LEASE);
    clock.scheduleAtFixedRate(this::sign, periodMillis, periodMillis, TimeUnit.MILLISECONDS);
  }

  private synchronized void sign() {
    if (ended) {
      return;
    }
    long now = System.nanoTime();
    try {
      table.store().replace(Journal.lease(job), Journal.NOTHING);
      signedNanos = now;
    } catch (IOException | RuntimeException e) {
      LOG.warn("Job {} on {} could not give a sign of life; it tries again", job, table.root(), e);
    }
  }

  /**
   * Checks that nobody may have taken this job for dead.
   *
   * @throws IOException if the last sign is too long ago
   */
  public synchronized void check() throws IOException {
    long silentMillis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - signedNanos);
    if (silentMillis > table.options().leaseMillis) {
      throw new IOException("job " + job + " on " + table.root() + " has given no sign of life for " + silentMillis
          + " ms, so others may have aborted it: it is not committed");
    }
  }

  /** No sign is given after this. */
  public void end() {
    clock.shutdown();
    synchronized (this) {
      ended = true;
    }
  }
}
