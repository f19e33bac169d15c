package io.millstream.write.protocol;

import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A wait for another process that holds a lock or finishes a commit. It has a limit
 * ({@code fs.millstream.write.lock.wait.ms}), and one warning once it takes longer than most, so that a statement that
 * seems to hang reports which process it waits for.
 */
final class LongWait {
    /** How long a wait is before it is logged: longer than most commits take. */
    static final long SILENT_MILLIS = 10_000;

    private static final Logger LOG = LoggerFactory.getLogger(LongWait.class);

    private final TableAccess table;
    private final long startNanos;
    private boolean isLogged;

    LongWait(TableAccess table) {
        this.table = table;
        this.startNanos = table.waiting().nanoTime();
    }

    private long nanos() {
        return table.waiting().nanoTime() - startNanos;
    }

    /** Milliseconds since it began. */
    long millis() {
        return TimeUnit.NANOSECONDS.toMillis(nanos());
    }

    /** Whether the limit is reached. */
    boolean isOver() {
        return nanos() > TimeUnit.MILLISECONDS.toNanos(table.options().lockWaitMillis);
    }

    /**
     * Pauses before the next attempt.
     *
     * @param millis how long
     * @param reason names the awaited process and the table, for the warning
     * @throws IOException if the thread is interrupted
     */
    void pause(long millis, Supplier<String> reason) throws IOException {
        if (!isLogged && millis() >= SILENT_MILLIS) {
            isLogged = true;
            LOG.warn(
                    "Still waiting after {} s, and for up to {} s in all ({}): {}",
                    TimeUnit.MILLISECONDS.toSeconds(millis()),
                    TimeUnit.MILLISECONDS.toSeconds(table.options().lockWaitMillis),
                    WriteOptions.LOCK_WAIT_MILLIS,
                    reason.get());
        }
        table.waiting().pause(millis);
    }
}
