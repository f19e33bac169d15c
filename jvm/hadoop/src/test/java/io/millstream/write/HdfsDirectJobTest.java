package io.millstream.write;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;

/** Over an HDFS of one name node and one data node in this process. */
@Tag("slow")
class HdfsDirectJobTest extends DirectJobContract {
  private static final AtomicInteger TABLES = new AtomicInteger();

  @TempDir static Path directory;

  private static MiniDFSCluster cluster;

  @BeforeAll
  static void start() throws IOException {
    System.setProperty("millstream.test.file.impl", LocalFileSystem.class.getName()); // core-site.xml of the tests asks for it
    Configuration conf = new Configuration();
    conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, directory.toString());
    cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
  }

  @AfterAll
  static void stop() {
    cluster.shutdown();
  }

  @Override
  org.apache.hadoop.fs.Path newTable() throws IOException {
    return new org.apache.hadoop.fs.Path(cluster.getFileSystem().getUri() + "/tables/t" + TABLES.incrementAndGet());
  }

  @Override
  Configuration newConfiguration() {
    return new Configuration();
  }

  @Override
  int shortLeaseMillis() {
    return 500;
  }

  @Override
  boolean hasDirectories() {
    return true;
  }
}
