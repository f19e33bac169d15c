package io.millstream.hadoop.tree;

import io.millstream.hadoop.natives.NativeLibrary;
import java.io.IOException;

/**
 * What rsync's rules say about entries of source and destination ({@code millstream_rsync_rules::decision}, which
 * explains them), and how lines about changes read ({@code millstream_rsync_rules::itemize}). {@code sync_rules.rs} of
 * {@code millstream-jni} has the encoding of questions, answers and changes.
 */
public final class NativeSyncRules {
    private NativeSyncRules() {}

    /**
     * The answers to questions, of which there may be many.
     *
     * @throws IOException if the native library does not load
     */
    public static byte[] ask(byte[] questions) throws IOException {
        requireLibrary();
        return answers(questions);
    }

    /**
     * The lines about changes, of which there may be many: UTF-8, each ended by a newline.
     *
     * @throws IOException if the native library does not load
     */
    public static byte[] lines(byte[] changes) throws IOException {
        requireLibrary();
        return linesOf(changes);
    }

    private static void requireLibrary() throws IOException {
        if (!NativeLibrary.isLoaded()) {
            throw new IOException("synchronizing needs Millstream's native library, which does not load in this JVM: "
                    + NativeLibrary.whyNot());
        }
    }

    private static native byte[] answers(byte[] questions);

    private static native byte[] linesOf(byte[] changes);
}
