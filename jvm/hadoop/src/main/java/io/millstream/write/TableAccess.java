package io.millstream.write;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** A table as a job or a recovery reaches it. */
record TableAccess(Path root, Store store, WriteOptions options, Metastore metastore, Waiting waiting) {
  /** How to wait for others. */
  interface Waiting {
    void pause(long millis) throws IOException;
  }

  static TableAccess of(Path table, Configuration conf, Metastore metastore) throws IOException {
    Path root = table.getFileSystem(conf).makeQualified(table);
    return new TableAccess(root, Store.of(root, conf), new WriteOptions(conf), metastore, TableAccess::sleep);
  }

  /** Not for the same time as others who wait for the same. */
  static void sleep(long millis) throws IOException {
    try {
      Thread.sleep(ThreadLocalRandom.current().nextLong(millis / 2, millis + 1));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw (IOException) new InterruptedIOException("interrupted while waiting for others, or for the store").initCause(e);
    }
  }

  /** Those of these files that nobody has written anew, or removed. */
  List<OldFile> unchanged(List<OldFile> files) throws IOException {
    Set<String> directories = files.stream().map(OldFile::directory).collect(Collectors.toSet());
    Set<OldFile> found = new HashSet<>(store.list(directories, false));
    return files.stream().filter(found::contains).toList();
  }

  TableAccess through(Store other) {
    return new TableAccess(root, other, options, metastore, waiting);
  }
}
