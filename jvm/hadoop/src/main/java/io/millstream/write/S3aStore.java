package io.millstream.write;

import java.util.Optional;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Not yet. */
final class S3aStore {
  private S3aStore() { }

  static Optional<String> whyNot(FileSystem fs) {
    return Optional.of("direct writes to s3a are not there yet");
  }

  static Store open(FileSystem fs, Path table, WriteOptions options) {
    throw new UnsupportedOperationException();
  }
}
