package io.millstream.hadoop;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Reads numbers and byte strings that native code has encoded, one after the other: the opposite of {@link WireWriter}.
 *
 * <p>All methods throw {@link BufferUnderflowException} if too few bytes are left.
 */
final class WireReader {
  private final ByteBuffer in;

  WireReader(byte[] bytes) {
    in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Whether not everything has been read. */
  boolean hasRemaining() {
    return in.hasRemaining();
  }

  /** Reads a byte. */
  int u8() {
    return in.get() & 0xff;
  }

  /** Reads a number of eight bytes. */
  long u64() {
    return in.getLong();
  }

  /** Reads a prefixed byte string. */
  byte[] prefixed() {
    int length = in.getInt();
    if (length < 0 || length > in.remaining()) {
      throw new BufferUnderflowException();
    }
    byte[] bytes = new byte[length];
    in.get(bytes);
    return bytes;
  }
}
