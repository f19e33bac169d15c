package io.millstream.hadoop.tree;

import io.millstream.hadoop.natives.NativeLibrary;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Rsync's filter rules, which decide what is copied from a source and what may be deleted from a destination
 * ({@code millstream_rsync_rules::filter} explains them). Thread-safe.
 *
 * <p>Paths are relative to the transfer, as bytes, without a slash at either end. As in rsync, callers go top down and
 * skip the contents of excluded directories.
 */
public final class NativeFilter implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
    private final long handle;
    private final Cleaner.Cleanable memory;
    private boolean closed;

    private NativeFilter(long handle) {
        this.handle = handle;
        memory = CLEANER.register(this, () -> close(handle));
    }

    /**
     * Combines patterns and rules, in order, into one list of rules. Merge files are read here.
     *
     * @param given each is {@code -} and a pattern to exclude, {@code +} and one to include, or {@code f} and a rule
     * @return rules that merge no files, for {@link #open}
     * @throws IllegalArgumentException if one is invalid or not supported, or a file cannot be read; the message is for
     *     the user
     * @throws IOException if the native library does not load
     */
    public static byte[][] rules(byte[][] given) throws IOException {
        requireLibrary();
        return flatten(given);
    }

    /**
     * Parses rules.
     *
     * @param rules of {@link #rules}
     * @param deletesExcluded whether rules that name no side apply to the source only, as with
     *     {@code --delete-excluded}
     * @param source absolute path of the root of the transfer without its first and last slash, for rules with absolute
     *     paths
     * @param destination the same for the destination
     * @throws IOException if the native library does not load
     */
    public static NativeFilter of(byte[][] rules, boolean deletesExcluded, byte[] source, byte[] destination)
            throws IOException {
        requireLibrary();
        return new NativeFilter(open(rules, deletesExcluded, source, destination));
    }

    private static void requireLibrary() throws IOException {
        if (!NativeLibrary.isLoaded()) {
            throw new IOException("filters need Millstream's native library, which does not load in this JVM: "
                    + NativeLibrary.whyNot());
        }
    }

    /**
     * Whether an entry of the source is copied.
     *
     * @throws IllegalStateException if the filter is closed
     */
    public boolean isCopied(byte[] path, boolean isDirectory) {
        return isIncluded(false, path, isDirectory, false);
    }

    /**
     * Whether an entry of the destination may be deleted.
     *
     * @param isInDeleted whether its parent directory will be deleted, so that perishable rules do not count
     * @throws IllegalStateException if the filter is closed
     */
    public boolean isDeletable(byte[] path, boolean isDirectory, boolean isInDeleted) {
        return isIncluded(true, path, isDirectory, isInDeleted);
    }

    private boolean isIncluded(boolean isOfDestination, byte[] path, boolean isDirectory, boolean isInDeleted) {
        lock.readLock().lock();
        try {
            if (closed) {
                throw new IllegalStateException("the filter is closed");
            }
            return includes(handle, isOfDestination, path, isDirectory, isInDeleted);
        } finally {
            lock.readLock().unlock();
        }
    }

    @Override
    public void close() {
        lock.writeLock().lock();
        try {
            closed = true;
            memory.clean();
        } finally {
            lock.writeLock().unlock();
        }
    }

    private static native byte[][] flatten(byte[][] given);

    private static native long open(byte[][] rules, boolean deletesExcluded, byte[] source, byte[] destination);

    private static native boolean includes(
            long handle, boolean isOfDestination, byte[] path, boolean isDirectory, boolean isInDeleted);

    private static native void close(long handle);
}
