package io.millstream.hadoop.tree;

import io.millstream.hadoop.natives.NativeLibrary;
import java.io.IOException;

/**
 * What rsync's rules say about entries of source and destination ({@code millstream_rsync_rules::decision}, which
 * explains them). {@code sync_rules.rs} of {@code millstream-jni} has the encoding of questions and answers.
 */
public final class NativeSyncRules {
    private NativeSyncRules() {}

    /**
     * The answers to questions, of which there may be many.
     *
     * @throws IOException if the native library does not load
     */
    public static byte[] ask(byte[] questions) throws IOException {
        if (!NativeLibrary.isLoaded()) {
            throw new IOException("synchronizing needs Millstream's native library, which does not load in this JVM: "
                    + NativeLibrary.whyNot());
        }
        return answers(questions);
    }

    private static native byte[] answers(byte[] questions);
}
