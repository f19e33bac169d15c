package io.millstream.write;

import java.io.IOException;
import java.util.Arrays;
import java.util.Collection;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.AccessControlException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * {@code hdfs:}: a rename is atomic and does not replace. A closed file is in the memory of every data node of its pipeline, and on
 * their disks as the cluster is configured ({@code dfs.datanode.synconclose}).
 */
final class HdfsStore extends HiddenFileStore {
  private static final Logger LOG = LoggerFactory.getLogger(HdfsStore.class);

  HdfsStore(FileSystem fs, Path table, WriteOptions options) {
    super(fs, table, options);
  }

  @Override
  public boolean create(String entry, byte[] content) throws IOException {
    Path whole = written(entry, content);
    boolean renamed = false;
    try {
      renamed = fs.rename(whole, new Path(journal, entry));
    } finally {
      if (!renamed) {
        fs.delete(whole, false);
      }
    }
    return renamed || Arrays.equals(read(entry), content);
  }

  @Override
  public void replace(String entry, byte[] content) throws IOException {
    write(new Path(journal, entry), content);
  }

  private Path written(String entry, byte[] content) throws IOException {
    Path file = new Path(journal, "." + entry + "." + UUID.randomUUID());
    write(file, content);
    return file;
  }

  /** For whoever may write into the table, though the first job is another user's. */
  private void makeJournal() throws IOException {
    fs.mkdirs(journal);
    try {
      fs.setPermission(journal, fs.getFileStatus(table).getPermission());
    } catch (AccessControlException e) {
      LOG.debug("Another user's job has made {} at the same time", journal, e);
    }
  }

  private void write(Path file, byte[] content) throws IOException {
    if (!fs.exists(journal)) {
      makeJournal();
    }
    try (FSDataOutputStream out = fs.create(file, true)) {
      out.write(content);
      out.hsync();
    }
  }

  @Override
  void sync(Collection<Path> files) { }
}
