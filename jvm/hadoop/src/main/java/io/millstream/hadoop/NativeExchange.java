package io.millstream.hadoop;

import java.io.IOException;

/** Directories that take the places of others, each at once; {@code millstream_ops::exchange} tells how. */
public final class NativeExchange {
  /** What has become of an exchange; in the native side's order. */
  public enum Outcome {
    /** It is done. */
    EXCHANGED,
    /** Another had done it. */
    DONE_BEFORE,
    /** There is no token: nothing is to be done any more. */
    OVER,
    /** Another process, or thread, holds the token. */
    BUSY
  }

  private NativeExchange() {}

  /**
   * Exchanges two directories below a root, unless the witness is in the place already.
   *
   * @param root absolute path
   * @param token path below it of the file that is locked meanwhile
   * @param made path below it of the directory that is complete
   * @param place path below it of the directory whose place it takes
   * @param witness a name in it that the other never had
   * @return what has become of it
   * @throws IOException if that is not possible; then the directories are as they were
   */
  public static Outcome exchange(String root, String token, String made, String place, String witness) throws IOException {
    if (!NativeLibrary.isLoaded()) {
      throw new IOException("Millstream's native library does not load in this JVM (see its log)");
    }
    return Outcome.values()[exchange(LocalPaths.require(root), LocalPaths.require(token), LocalPaths.require(made),
        LocalPaths.require(place), LocalPaths.require(witness))];
  }

  private static native int exchange(byte[] root, byte[] token, byte[] made, byte[] place, byte[] witness) throws IOException;
}
