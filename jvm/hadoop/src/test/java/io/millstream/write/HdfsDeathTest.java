package io.millstream.write;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Tag;

@Tag("slow")
class HdfsDeathTest extends DeathContract {
  @Override
  Path newTable() throws IOException {
    return HdfsBed.newTable();
  }

  @Override
  Configuration newConfiguration() {
    return HdfsBed.configuration();
  }
}
