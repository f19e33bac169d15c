package io.millstream.hadoop.natives;

import java.io.IOException;

/** Exchanges directories, each atomically; {@code millstream_compact::exchange} explains how. */
public final class NativeExchange {
    /** The outcome of an exchange; in the native side's order. */
    public enum Outcome {
        /** The directories were exchanged. */
        EXCHANGED,
        /** Another process had exchanged them before. */
        DONE_BEFORE,
        /** The token does not exist: the job is over, with nothing left to do. */
        OVER,
        /** Another process or thread holds the token. */
        BUSY
    }

    private NativeExchange() {}

    /**
     * Exchanges two directories below a root, unless the target directory already contains the witness.
     *
     * @param root absolute path
     * @param token path below the root of the file that is locked during the exchange
     * @param made path below the root of the new, complete directory
     * @param target path below the root of the directory that it replaces
     * @param witness a name in the new directory that the old one never contained
     * @return the outcome
     * @throws IOException if they cannot be exchanged; then both are unchanged
     */
    public static Outcome exchange(String root, String token, String made, String target, String witness)
            throws IOException {
        if (!NativeLibrary.isLoaded()) {
            throw new IOException("Millstream's native library does not load in this JVM (see its log)");
        }
        return Outcome.values()[
                exchange(
                        LocalPaths.require(root),
                        LocalPaths.require(token),
                        LocalPaths.require(made),
                        LocalPaths.require(target),
                        LocalPaths.require(witness))];
    }

    private static native int exchange(byte[] root, byte[] token, byte[] made, byte[] target, byte[] witness)
            throws IOException;
}
