package io.millstream.write;

import java.io.IOException;
import java.util.Arrays;
import java.util.Collection;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * {@code hdfs:}: a rename is atomic and does not replace. A closed file is in the memory of every data node of its pipeline, and on
 * their disks as the cluster is configured ({@code dfs.datanode.synconclose}).
 */
final class HdfsStore extends HiddenFileStore {
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

  private void write(Path file, byte[] content) throws IOException {
    try (FSDataOutputStream out = fs.create(file, true)) {
      out.write(content);
      out.hsync();
    }
  }

  @Override
  void sync(Collection<Path> files) { }
}
