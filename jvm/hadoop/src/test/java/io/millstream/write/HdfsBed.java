package io.millstream.write;

import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** An HDFS of one name node and one data node in this process. */
final class HdfsBed implements AutoCloseable {
  private final MiniDFSCluster cluster;
  private final AtomicInteger tables = new AtomicInteger();

  HdfsBed(java.nio.file.Path directory) throws IOException {
    System.setProperty("millstream.test.file.impl", LocalFileSystem.class.getName()); // core-site.xml of the tests asks for it
    Configuration conf = new Configuration();
    conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, Files.createTempDirectory(directory, "hdfs").toString());
    cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
  }

  Path newTable() throws IOException {
    return new Path(cluster.getFileSystem().getUri() + "/tables/t" + tables.incrementAndGet());
  }

  @Override
  public void close() {
    cluster.shutdown();
  }
}
