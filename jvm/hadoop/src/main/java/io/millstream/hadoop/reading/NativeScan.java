package io.millstream.hadoop.reading;

import io.millstream.hadoop.natives.NativeLibrary;
import io.millstream.hadoop.natives.WireReader;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BooleanSupplier;

/**
 * Rows of files, read and filtered natively, in packed batches outside the heap.
 *
 * <p>{@link #next} fetches a batch, whose memory stays unchanged until the next call. A row is {@code length} bytes at
 * offset {@code start} of the batch; {@link #lines} is the address of the pairs {@code (u32 start, u32 length)}, in the
 * machine's byte order.
 *
 * <p>Memory is freed by {@link #close}, or when a scan is no longer reachable. {@link #abandon} ends a scan without
 * freeing it, for threads that outlive their task and may still read rows.
 */
public final class NativeScan implements AutoCloseable {
    /** A row is a whole file. */
    public static final int WHOLE_FILES = 1;
    /** Count rows only. */
    public static final int COUNT = 2;
    /** Each batch holds rows of a single range. */
    public static final int BY_RANGE = 4;
    /** Skip missing files. */
    public static final int SKIP_MISSING = 8;
    /** Verify the checksums that Hadoop keeps next to a file. */
    public static final int VERIFY = 16;
    /** Fetch distinct rows, each with its number of occurrences. A row may come again in another batch. */
    public static final int DISTINCT = 32;
    /** After a damaged bzip2 block, fetch the lines of the following blocks; the failure comes after them. */
    public static final int PASS_OVER_DAMAGE = 64;

    /** For {@code words}: rows are not split. */
    public static final byte[] WHOLE_ROWS = {};

    private static final Cleaner CLEANER = Cleaner.create();
    private static final int BYTES = 0;
    private static final int LINES = 1;
    private static final int RANGE = 2;
    private static final int OFFSET = 3;
    private static final int BYTES_READ = 4;
    private static final int FILES = 5;
    private static final int MISSING = 6;
    private static final int WAITED = 7;
    private static final int COUNTS = 8;
    private static final int OCCURRENCES = 9;

    private final BooleanSupplier isCancelled;
    /** Null if native code reads the files itself. */
    private final RemoteFiles files;

    private final long handle;
    private final Cleaner.Cleanable memory;
    private final long[] out = new long[OCCURRENCES + 1];
    private long rows;
    private boolean over;
    private boolean closed;

    /**
     * Opens a scan; nothing is read yet.
     *
     * @param ranges the ranges to read, in this order
     * @param files reads them; null if native code reads them itself, because they are local
     * @param separator the line separator; empty for any of LF, CR and CRLF
     * @param predicate selects rows; encoded as {@code millstream_scan::Predicate::decode} documents
     * @param words splits each row at these bytes, so that the parts become the rows, as {@code String.split(words,
     *     -1)} does; if empty, rows stay whole
     * @param flags sum of this class's constants
     * @param maxReaders maximum number of native threads that read ahead
     * @param isCancelled whether the rows are no longer needed; called from time to time while files are read
     * @throws IllegalStateException if the native library does not load
     */
    public NativeScan(
            FileRanges ranges,
            RemoteFiles files,
            byte[] separator,
            byte[] predicate,
            byte[] words,
            int flags,
            int maxReaders,
            BooleanSupplier isCancelled) {
        this.isCancelled = isCancelled;
        this.files = files;
        if (!NativeLibrary.isLoaded()) {
            throw new IllegalStateException(
                    "Millstream's native library does not load in this JVM (see its log), although it loads in the "
                            + "driver's; set spark.millstream.read.enabled=false to read without it");
        }
        long opened = open(ranges.packed(), files, separator, predicate, words, flags, maxReaders);
        handle = opened;
        memory = CLEANER.register(this, () -> close(opened));
    }

    /**
     * Whether a predicate is well-formed and its regular expressions are not too large.
     *
     * @param predicate as for the constructor
     * @return false also if the native library does not load
     */
    public static boolean accepts(byte[] predicate) {
        return NativeLibrary.isLoaded() && isValid(predicate);
    }

    /**
     * Fetches the next batch. It is empty if no rows were found for some time, so that the caller can check whether to
     * continue.
     *
     * @return whether there is a batch
     * @throws java.io.FileNotFoundException if a file does not exist
     * @throws org.apache.hadoop.fs.ChecksumException if a file does not match its checksums
     * @throws java.io.InterruptedIOException if the scan is cancelled
     * @throws IOException if a file cannot be read
     */
    public synchronized boolean next() throws IOException {
        if (over) {
            return false;
        }
        // If next throws, the scan is over, too.
        over = true;
        try {
            rows = next(handle, out, isCancelled);
        } catch (IOException e) {
            throw files == null || files.failure(range()) == null ? e : files.failure(range());
        }
        over = rows < 0;
        return !over;
    }

    /** The requests to the files' file system so far; none for local files. */
    public RequestCounts requests() {
        return files == null ? RequestCounts.NONE : files.requests();
    }

    /**
     * The compressed-file indexes that were to be built ({@link FileRanges.Builder#addIndexing}) of files that were
     * read to their ends, by position of their range. None if the scan is closed.
     */
    public synchronized Map<Integer, byte[]> takeIndexes() {
        if (closed) {
            return Map.of();
        }
        Map<Integer, byte[]> indexes = new HashMap<>();
        for (WireReader in = new WireReader(takeIndexes(handle)); in.hasRemaining(); ) {
            int range = in.u32();
            indexes.put(range, in.prefixed());
        }
        return indexes;
    }

    /** Number of rows in the batch. */
    public long rows() {
        return rows;
    }

    /**
     * A copy of a row of the batch.
     *
     * @param index its index in the batch
     * @throws IllegalArgumentException if there is no such row
     * @throws IllegalStateException if the scan is closed
     */
    public synchronized byte[] row(int index) {
        if (closed) {
            throw new IllegalStateException("the scan is closed");
        }
        return row(handle, index);
    }

    /** Address of the bytes of the batch. */
    public long bytes() {
        return out[BYTES];
    }

    /** Address of the batch's pairs of row start and length. */
    public long lines() {
        return out[LINES];
    }

    /**
     * Address of the number of occurrences, a {@code u64}, of each row of the batch; only if the scan is
     * {@link #DISTINCT}.
     */
    public long counts() {
        return out[COUNTS];
    }

    /** Number of rows in the batch, counting all occurrences. */
    public long occurrences() {
        return out[OCCURRENCES];
    }

    /** Index of the range that the batch's first row belongs to; after an exception, of the range that failed. */
    public int range() {
        return (int) out[RANGE];
    }

    /** Offset in the file at which the batch's memory begins, if the scan is {@link #BY_RANGE} and selects all rows. */
    public long offset() {
        return out[OFFSET];
    }

    /** Bytes read so far. */
    public long bytesRead() {
        return out[BYTES_READ];
    }

    /** Files opened so far. */
    public long files() {
        return out[FILES];
    }

    /** Missing files skipped so far. */
    public long missingFiles() {
        return out[MISSING];
    }

    /** Nanoseconds for which this thread waited for the reading threads. */
    public long waitedNanos() {
        return out[WAITED];
    }

    /** Ends the scan; the last batch stays valid as long as this object is reachable. */
    public synchronized void abandon() {
        over = true;
        if (!closed) {
            stop(handle);
        }
    }

    /** Ends the scan and frees its memory. Its rows must no longer be read. */
    @Override
    public synchronized void close() {
        over = true;
        closed = true;
        memory.clean();
    }

    private static native boolean isValid(byte[] predicate);

    private static native long open(
            byte[] ranges,
            RemoteFiles files,
            byte[] separator,
            byte[] predicate,
            byte[] words,
            int flags,
            int maxReaders);

    private static native long next(long handle, long[] out, BooleanSupplier isCancelled) throws IOException;

    private static native byte[] row(long handle, int index);

    private static native byte[] takeIndexes(long handle);

    private static native void stop(long handle);

    private static native void close(long handle);
}
