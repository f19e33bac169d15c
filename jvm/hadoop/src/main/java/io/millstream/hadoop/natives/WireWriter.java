package io.millstream.hadoop.natives;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Appends numbers and byte strings to an array that native code decodes.
 *
 * <p>Numbers are little-endian. A <em>prefixed</em> byte string is its length, a {@code u32}, and its bytes. The Rust
 * crate {@code millstream_wire} is the other half, and states all conventions; each format is documented where native
 * code decodes it.
 */
public final class WireWriter {
    private static final int INITIAL_BYTES = 64;
    /** The largest array that all JVMs can allocate. */
    private static final int MAX_BYTES = Integer.MAX_VALUE - 8;

    private ByteBuffer out = ByteBuffer.allocate(INITIAL_BYTES).order(ByteOrder.LITTLE_ENDIAN);

    /** Appends the lowest byte of a number. */
    public WireWriter u8(int value) {
        withRoom(Byte.BYTES).put((byte) value);
        return this;
    }

    /** Appends a number of four bytes. */
    public WireWriter u32(int value) {
        withRoom(Integer.BYTES).putInt(value);
        return this;
    }

    /** Appends a number of eight bytes. */
    public WireWriter u64(long value) {
        withRoom(Long.BYTES).putLong(value);
        return this;
    }

    /** Appends bytes as they are. */
    public WireWriter bytes(byte[] bytes) {
        withRoom(bytes.length).put(bytes);
        return this;
    }

    /** Appends a prefixed byte string. */
    public WireWriter prefixed(byte[] bytes) {
        return u32(bytes.length).bytes(bytes);
    }

    /** A copy of what has been appended. */
    public byte[] toByteArray() {
        byte[] bytes = new byte[out.position()];
        out.get(0, bytes);
        return bytes;
    }

    private ByteBuffer withRoom(int count) {
        if (out.remaining() < count) {
            long needed = (long) out.position() + count;
            if (needed > MAX_BYTES) {
                throw new OutOfMemoryError("more than " + MAX_BYTES + " bytes for native code");
            }
            int size = (int) Math.min(MAX_BYTES, Math.max(needed, 2L * out.capacity()));
            out = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN).put(out.flip());
        }
        return out;
    }
}
