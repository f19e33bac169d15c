package io.millstream.write;

import java.io.IOException;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;

@Tag("slow")
class HdfsDeathTest extends DeathContract {
  @TempDir static Path directory;

  private static HdfsBed hdfs;

  @BeforeAll
  static void start() throws IOException {
    hdfs = new HdfsBed(directory);
  }

  @AfterAll
  static void stop() {
    hdfs.close();
  }

  @Override
  org.apache.hadoop.fs.Path newTable() throws IOException {
    return hdfs.newTable();
  }

  @Override
  Configuration newConfiguration() {
    return HdfsBed.configuration();
  }
}
