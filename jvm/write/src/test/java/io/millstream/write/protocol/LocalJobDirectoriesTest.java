package io.millstream.write.protocol;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.io.TempDir;

class LocalJobDirectoriesTest extends JobDirectoriesContract {
    @TempDir
    java.nio.file.Path directory;

    private int tables;

    @Override
    Path newTable() {
        return new Path("file://" + directory + "/table" + tables++);
    }

    @Override
    Configuration newConfiguration() {
        return new Configuration(false);
    }
}
