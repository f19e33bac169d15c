package io.millstream.write.store;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.ThreadLocalRandom;

/** Waits for other processes or for the store. */
public final class Pause {
    private Pause() {}

    /**
     * Sleeps for between half and all of the given time, so that processes that wait for the same event do not poll at
     * the same moment.
     *
     * @param millis the longest time
     * @throws InterruptedIOException if the thread is interrupted; its flag stays set
     */
    public static void sleep(long millis) throws IOException {
        try {
            Thread.sleep(ThreadLocalRandom.current().nextLong(millis / 2, millis + 1));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw (IOException) new InterruptedIOException("interrupted while waiting for other jobs, or for the store")
                    .initCause(e);
        }
    }
}
