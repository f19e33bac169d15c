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
    Configuration conf = configuration();
    conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, Files.createTempDirectory(directory, "hdfs").toString());
    cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
  }

  static Configuration configuration() {
    Configuration conf = new Configuration();
    // A client that closes a file sleeps 400 ms if the name node has not heard of its block, as in here it never has.
    conf.setInt("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", 2);
    return conf;
  }

  Path newTable() throws IOException {
    return new Path(cluster.getFileSystem().getUri() + "/tables/t" + tables.incrementAndGet());
  }

  @Override
  public void close() {
    cluster.shutdown();
  }
}
