package io.millstream.write;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.ThreadLocalRandom;
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
  private static void sleep(long millis) throws IOException {
    try {
      Thread.sleep(ThreadLocalRandom.current().nextLong(millis / 2, millis + 1));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw (IOException) new InterruptedIOException("interrupted while waiting for the turn to commit").initCause(e);
    }
  }

  TableAccess through(Store other) {
    return new TableAccess(root, other, options, metastore, waiting);
  }
}
