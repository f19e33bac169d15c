package io.millstream.hadoop.reading;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.util.function.BooleanSupplier;

/**
 * An index of a compressed file: where decoding may begin ({@code millstream_codec::Index}, which documents the
 * format). With an index, several tasks can read the file.
 */
public final class NativeIndex implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final int SIZE = 0;
    private static final int LENGTH = 1;

    private final long handle;
    private final Cleaner.Cleanable memory;
    private final long[] numbers = new long[LENGTH + 1];
    private boolean closed;

    private NativeIndex(long handle) {
        this.handle = handle;
        memory = CLEANER.register(this, () -> close(handle));
        describe(handle, numbers);
    }

    /**
     * The index that an array of bytes contains.
     *
     * @return null if there is none, or it is damaged
     */
    public static NativeIndex of(byte[] bytes) {
        long handle = open(bytes);
        return handle == 0 ? null : new NativeIndex(handle);
    }

    /**
     * Decodes a file to build its index.
     *
     * @param file one range, a whole compressed file
     * @param files reads it; null if it is local
     * @param isCancelled whether the index is no longer needed; called from time to time
     * @return the bytes of the index; null if the file is not splittable
     * @throws IOException if the file cannot be read or decoded
     */
    public static byte[] build(FileRanges file, RemoteFiles files, BooleanSupplier isCancelled) throws IOException {
        try {
            return build(file.packed(), files, isCancelled);
        } catch (IOException e) {
            throw files == null || files.failure(0) == null ? e : files.failure(0);
        }
    }

    /** Bytes of the compressed file. */
    public long size() {
        return numbers[SIZE];
    }

    /** Decoded bytes of the file. */
    public long length() {
        return numbers[LENGTH];
    }

    /**
     * Where a range of decoded bytes that begins at {@code start} should end: near {@code end}, so that tasks do not
     * decode the same bytes.
     *
     * @throws IllegalStateException if the index is closed
     */
    public synchronized long cut(long start, long end) {
        if (closed) {
            throw new IllegalStateException("the index is closed");
        }
        return cut(handle, start, end);
    }

    /**
     * What a task needs to read the lines that begin in a range of decoded bytes.
     *
     * @throws IllegalStateException if the index is closed
     */
    public synchronized byte[] slice(long start, long end) {
        if (closed) {
            throw new IllegalStateException("the index is closed");
        }
        return slice(handle, start, end);
    }

    @Override
    public synchronized void close() {
        closed = true;
        memory.clean();
    }

    private static native byte[] build(byte[] range, RemoteFiles files, BooleanSupplier isCancelled) throws IOException;

    private static native long open(byte[] index);

    private static native void describe(long handle, long[] out);

    private static native long cut(long handle, long start, long end);

    private static native byte[] slice(long handle, long start, long end);

    private static native void close(long handle);
}
