package io.millstream.hadoop.listing;

import io.millstream.hadoop.natives.NativeLibrary;
import java.io.InterruptedIOException;
import java.util.List;

/**
 * A native enumeration of directories, running on native threads. Symbolic links are followed; Hadoop's checksum files
 * ({@code .*.crc}) never appear, and directories with such names are not descended into.
 *
 * <p>{@link #next} delivers buffers of whole blocks. A block holds the entries of one directory, in the order in which
 * the file system lists them; a huge directory comes as several blocks, in order, all but the last marked
 * {@link DirectoryListing#FLAG_MORE}. Blocks of different directories come in any order. A block, all numbers
 * little-endian, starting at a multiple of 8:
 *
 * <pre>
 *  u32 root          index of the root that the directory is, or is below
 *  u32 flags         FLAG_MORE, FLAG_NOT_DIRECTORY, FLAG_CHECKSUMS (there are checksum files in the directory)
 *  u32 errno         0, or the error that kept the directory from being opened or read to its end (then n is 0)
 *  u32 n             number of entries
 *  u32 pathLen       bytes of the directory's path
 *  u32 namesLen      bytes of all names together
 *  u32 unexamined    entries left out because they could not be examined, though they exist
 *  u32 listedAt      CLOCK_MONOTONIC (that of System.nanoTime) in milliseconds, modulo 2^32, before it was listed
 *  u32 positionLen
 *  u8  path[pathLen], u8 position[positionLen], padded to a multiple of 8
 *  i64 size[n], i64 mtimeMillis[n], u32 nameEnd[n], u8 isDirectory[n], u8 names[namesLen], padded to a multiple of 8
 * </pre>
 *
 * The position of a directory is a sequence of big-endian u32: the root's index among the roots, then, for each
 * directory on the path, its index among its parent's entries. Sorted by position, a directory is followed by its
 * subtrees in the order in which it lists them. A root that is not a directory comes as a block with
 * {@link DirectoryListing#FLAG_NOT_DIRECTORY}: the path is that of the parent, and the only entry is the file. Dangling
 * links and entries that vanish during the listing are left out, as in Hadoop's local file system.
 */
public final class NativeListing implements DirectoryWalk {
    /** Descend into subdirectories. */
    public static final int RECURSIVE = 1;
    /** Report subdirectories as entries, too. */
    public static final int DIRECTORIES = 2;
    /** Leave out names that Spark ignores in a data set, and do not descend into them. */
    public static final int SKIP_HIDDEN = 4;

    /** How long a Java thread stays in native code before it checks its interrupt flag. */
    private static final int POLL_MILLIS = 100;

    private long handle;

    /**
     * Starts an enumeration.
     *
     * @param roots absolute paths
     * @param flags sum of {@link #RECURSIVE}, {@link #DIRECTORIES}, {@link #SKIP_HIDDEN}
     * @param threads number of native threads; 0 adapts the number to the storage
     */
    public NativeListing(byte[][] roots, int flags, int threads) {
        if (!NativeLibrary.isLoaded()) {
            throw new IllegalStateException("Millstream's native library does not load in this JVM (see its log)");
        }
        handle = open(roots, flags, threads);
    }

    @Override
    public List<DirectoryListing> poll() throws InterruptedIOException {
        byte[] blocks = next(handle, POLL_MILLIS);
        if (blocks == null) {
            return null;
        }
        if (blocks.length == 0 && Thread.currentThread().isInterrupted()) {
            throw new InterruptedIOException("Interrupted while listing directories");
        }
        return DirectoryListing.parse(blocks);
    }

    /** Cancels the enumeration if it is still running. A native thread that hangs in a system call is abandoned. */
    @Override
    public void close() {
        long closing = handle;
        handle = 0;
        if (closing != 0) {
            close(closing);
        }
    }

    private static native long open(byte[][] roots, int flags, int threads);

    /** Null at the end; an empty array if nothing arrived in time. */
    private static native byte[] next(long handle, int timeoutMillis);

    private static native void close(long handle);
}
