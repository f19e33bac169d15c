package io.millstream.hadoop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's, but a file's mode is set by a call: without Hadoop's own native library, each file created costs a {@code chmod} process. */
final class RawLocalFiles extends RawLocalFileSystem {
  @Override
  public void setPermission(Path p, FsPermission permission) throws IOException {
    java.nio.file.Path file;
    try {
      file = pathToFile(p).toPath();
    } catch (InvalidPathException e) {
      super.setPermission(p, permission);
      return;
    }
    Files.setAttribute(file, "unix:mode", (int) permission.toShort());
  }
}
