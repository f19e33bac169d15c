package io.millstream.hadoop.natives;

import java.io.File;
import java.io.IOException;

/** Paths of local files for native code, which wants the file system's bytes ({@link FileNames}). */
public final class LocalPaths {
    private LocalPaths() {}

    /** The bytes of a file's path, or null if the locale's encoding cannot express it. */
    public static byte[] encode(File file) {
        byte[] bytes = FileNames.LOCAL.bytes(file.getPath());
        return file.getPath().equals(new String(bytes, FileNames.LOCAL.charset())) ? bytes : null;
    }

    /** The bytes of a path for native code. */
    public static byte[] require(String path) throws IOException {
        byte[] bytes = encode(new File(path));
        if (bytes == null) {
            throw new IOException(path + ": not a valid name in this JVM's encoding; use a UTF-8 locale");
        }
        return bytes;
    }
}
