package io.millstream.write.protocol;

import java.io.IOException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Renews a job's lease, which shows other processes that its driver is alive. */
public final class Lease {
    private static final Logger LOG = LoggerFactory.getLogger(Lease.class);
    private static final int RENEWALS_PER_LEASE = 3;

    private final TableAccess table;
    private final String job;
    private final ScheduledExecutorService clock;
    private boolean ended;
    private long renewedNanos = System.nanoTime();

    public Lease(TableAccess table, String job) {
        this.table = table;
        this.job = job;
        clock = Executors.newSingleThreadScheduledExecutor(work -> {
            Thread thread = new Thread(work, "millstream-write-lease");
            thread.setDaemon(true);
            return thread;
        });
        long periodMillis = Math.max(1, table.options().leaseMillis / RENEWALS_PER_LEASE);
        clock.scheduleAtFixedRate(this::renew, periodMillis, periodMillis, TimeUnit.MILLISECONDS);
    }

    private synchronized void renew() {
        if (ended) {
            return;
        }
        long now = System.nanoTime();
        try {
            table.store().replace(Journal.lease(job), Journal.NOTHING);
            renewedNanos = now;
        } catch (IOException | RuntimeException e) {
            LOG.warn("Job {} on {} could not renew its lease; it will try again", job, table.root(), e);
        }
    }

    /**
     * Checks that no other process can have considered this job dead.
     *
     * @throws IOException if the last renewal is too long ago
     */
    public synchronized void check() throws IOException {
        long silentMillis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - renewedNanos);
        if (silentMillis > table.options().leaseMillis) {
            throw new IOException("job " + job + " on " + table.root() + " has not renewed its lease for "
                    + silentMillis + " ms, so another process may have aborted it: it is not committed");
        }
    }

    /** Ends the lease; it is not renewed after this call. */
    public void end() {
        clock.shutdown();
        synchronized (this) {
            ended = true;
        }
    }
}
