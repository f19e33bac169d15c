package io.millstream.write;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** A table as a job or a recovery reaches it. */
record TableAccess(Path root, Store store, WriteOptions options, Metastore metastore) {
  static TableAccess of(Path table, Configuration conf, Metastore metastore) throws IOException {
    Path root = table.getFileSystem(conf).makeQualified(table);
    return new TableAccess(root, Store.of(root, conf), new WriteOptions(conf), metastore);
  }
}
