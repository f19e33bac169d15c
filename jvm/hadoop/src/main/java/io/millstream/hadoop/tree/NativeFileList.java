package io.millstream.hadoop.tree;

import io.millstream.hadoop.natives.NativeLibrary;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Lists of paths, as in rsync's {@code --files-from} ({@code millstream_rsync_rules::files}, which explains them). */
public final class NativeFileList {
    private static final byte CONTENTS = '/';

    private NativeFileList() {}

    /**
     * A path of a list.
     *
     * @param path relative to the source, without a slash at either end; empty for the source itself
     * @param withContents whether the list includes the contents of that directory
     */
    public record Listed(byte[] path, boolean withContents) {}

    /**
     * A list.
     *
     * @param paths each once
     * @param namesRoot whether the source itself is included because a path is listed with {@code ./} before it
     */
    public record Paths(List<Listed> paths, boolean namesRoot) {}

    /**
     * The paths of a list.
     *
     * @param content of the list
     * @param isNulSeparated whether NULs, not newlines, end the paths
     * @throws IllegalArgumentException if a path cannot be used; the message is for the user
     * @throws IOException if the native library does not load
     */
    public static Paths of(byte[] content, boolean isNulSeparated) throws IOException {
        if (!NativeLibrary.isLoaded()) {
            throw new IOException("lists of files need Millstream's native library, which does not load in this JVM: "
                    + NativeLibrary.whyNot());
        }
        byte[] packed = resolve(content, isNulSeparated);
        List<Listed> paths = new ArrayList<>();
        for (int start = 1, end = 1; end < packed.length; end++) {
            if (packed[end] == 0) {
                paths.add(new Listed(Arrays.copyOfRange(packed, start + 1, end), packed[start] == CONTENTS));
                start = end + 1;
            }
        }
        return new Paths(paths, packed[0] != 0);
    }

    /**
     * A byte that says whether the source is included; then each path, preceded by {@code /} if its contents are
     * included, otherwise by {@code .}, and followed by a NUL.
     */
    private static native byte[] resolve(byte[] content, boolean isNulSeparated);
}
