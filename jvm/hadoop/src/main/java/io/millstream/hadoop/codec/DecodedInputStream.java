package io.millstream.hadoop.codec;

import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.Cleaner;
import java.util.Objects;
import org.apache.hadoop.io.compress.CompressionInputStream;

/**
 * The decoded bytes of a whole compressed file ({@code millstream_codec::Decoder}). Truncated or damaged data causes an
 * {@link IOException}, never a silent end of file.
 */
public final class DecodedInputStream extends CompressionInputStream {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final int BYTE = 0xff;

    private final TextCodec codec;
    private final byte[] one = new byte[1];
    private long handle;
    private Cleaner.Cleanable memory;

    /** Requires the native library. */
    public DecodedInputStream(TextCodec codec, InputStream compressed) throws IOException {
        super(compressed);
        this.codec = codec;
        start();
    }

    private void start() {
        long opened = open(codec.code(), in);
        handle = opened;
        memory = CLEANER.register(this, () -> close(opened));
    }

    @Override
    public int read() throws IOException {
        return read(one, 0, 1) < 0 ? -1 : one[0] & BYTE;
    }

    @Override
    public synchronized int read(byte[] bytes, int offset, int length) throws IOException {
        Objects.checkFromIndexSize(offset, length, bytes.length);
        if (handle == 0) {
            throw new IOException("the stream is closed");
        }
        return length == 0 ? 0 : read(handle, bytes, offset, length);
    }

    @Override
    public synchronized void resetState() throws IOException {
        if (handle == 0) {
            throw new IOException("the stream is closed");
        }
        // Until it is open again, which may fail.
        handle = 0;
        memory.clean();
        start();
    }

    @Override
    public synchronized void close() throws IOException {
        handle = 0;
        memory.clean();
        super.close();
    }

    private static native long open(int codec, InputStream compressed);

    private static native int read(long handle, byte[] out, int offset, int length) throws IOException;

    private static native void close(long handle);
}
