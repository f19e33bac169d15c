package io.millstream.hadoop.fs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's raw local file system, except that it sets a file's mode with a system call: without its native library,
 * Hadoop starts a {@code chmod} process for each file it creates.
 */
public final class RawLocalFiles extends RawLocalFileSystem {
    private static final int TYPE = 0170000;
    private static final int DIRECTORY = 0040000;
    private static final int SET_IDS = 06000;

    @Override
    public void setPermission(Path p, FsPermission permission) throws IOException {
        java.nio.file.Path file;
        try {
            file = pathToFile(p).toPath();
        } catch (InvalidPathException e) {
            super.setPermission(p, permission);
            return;
        }
        int present = (int) Files.getAttribute(file, "unix:mode");
        // Like chmod(1), which keeps a directory's inherited set-group-ID bit, by which new files get the directory's
        // group.
        int kept = (present & TYPE) == DIRECTORY ? present & SET_IDS : 0;
        Files.setAttribute(file, "unix:mode", permission.toShort() | kept);
    }
}
