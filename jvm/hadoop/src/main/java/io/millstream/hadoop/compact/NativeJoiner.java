package io.millstream.hadoop.compact;

import io.millstream.hadoop.natives.NativeLibrary;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** Joins files of lines that the JVM reads and writes, following the rules of {@code millstream_scan::Joiner}. */
public final class NativeJoiner implements AutoCloseable {
    private static final int PIECE_BYTES = 1 << 20;

    private final byte[] piece = new byte[PIECE_BYTES];
    private long handle;

    /**
     * A joiner whose output is still empty.
     *
     * @param rule what the files have in common
     */
    public NativeJoiner(JoinRule rule) {
        if (!NativeLibrary.isLoaded()) {
            throw new IllegalStateException("Millstream's native library does not load in this JVM (see its log)");
        }
        handle = open(rule.bits());
    }

    /**
     * Appends a file.
     *
     * @return number of bytes written
     * @throws UnfitFileException if it cannot be joined to the files before it
     * @throws IOException if it cannot be read or written
     */
    public synchronized long append(InputStream in, OutputStream out) throws IOException {
        if (handle == 0) {
            throw new IllegalStateException("the joiner is closed");
        }
        long written = 0;
        boolean first = true;
        boolean last = false;
        while (!last) {
            int length = in.readNBytes(piece, 0, piece.length);
            last = length < piece.length;
            long added = add(handle, piece, length, first, last);
            int before = (int) (added >>> 32);
            int start = (int) added;
            if (before != 0) {
                out.write(before);
                written++;
            }
            out.write(piece, start, length - start);
            written += length - start;
            first = false;
        }
        return written;
    }

    @Override
    public synchronized void close() {
        if (handle != 0) {
            close(handle);
            handle = 0;
        }
    }

    private static native long open(int rule);

    private static native long add(long handle, byte[] piece, int length, boolean first, boolean last)
            throws IOException;

    private static native void close(long handle);
}
