package io.millstream.hadoop.listing;

import java.io.InterruptedIOException;
import java.util.List;
import java.util.function.Consumer;

/** An enumeration of directories that runs while its caller consumes the results. One thread at a time may use it. */
public interface DirectoryWalk extends AutoCloseable {
    /** Starts walks; the arguments are those of {@link NativeListing}. */
    @FunctionalInterface
    interface Starter {
        DirectoryWalk start(byte[][] roots, int flags, int threads);
    }

    /**
     * The next directories; an empty list if none arrived within a short time, null at the end.
     *
     * @throws InterruptedIOException if the thread is interrupted; its flag stays set
     */
    List<DirectoryListing> poll() throws InterruptedIOException;

    /** Cancels the walk if it is still running, without waiting for it. */
    @Override
    void close();

    /**
     * Passes every directory to {@code consumer} and closes the walk.
     *
     * @throws InterruptedIOException if the thread is interrupted; its flag stays set
     */
    default void forEach(Consumer<DirectoryListing> consumer) throws InterruptedIOException {
        try (this) {
            for (List<DirectoryListing> batch = poll(); batch != null; batch = poll()) {
                batch.forEach(consumer);
            }
        }
    }
}
