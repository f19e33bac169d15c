package io.millstream.hadoop.natives;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Reads consecutive numbers and byte strings that native code has encoded: the counterpart of {@link WireWriter}.
 *
 * <p>All methods throw {@link BufferUnderflowException} if too few bytes are left.
 */
public final class WireReader {
    private final ByteBuffer in;

    /** Reads from the first of {@code bytes}. */
    public WireReader(byte[] bytes) {
        in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Whether bytes are left. */
    public boolean hasRemaining() {
        return in.hasRemaining();
    }

    /** Reads a byte. */
    public int u8() {
        return in.get() & 0xff;
    }

    /** Reads a number of four bytes, which must be less than 2<sup>31</sup>. */
    public int u32() {
        int value = in.getInt();
        if (value < 0) {
            throw new BufferUnderflowException();
        }
        return value;
    }

    /** Reads a number of eight bytes. */
    public long u64() {
        return in.getLong();
    }

    /** Reads a prefixed byte string. */
    public byte[] prefixed() {
        int length = u32();
        if (length > in.remaining()) {
            throw new BufferUnderflowException();
        }
        byte[] bytes = new byte[length];
        in.get(bytes);
        return bytes;
    }
}
