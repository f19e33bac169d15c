package io.millstream.write.protocol;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.io.TempDir;

class LocalRecoveryTest extends RecoveryContract {
    @TempDir
    java.nio.file.Path directory;

    @Override
    Path newTable() {
        return new Path("file://" + directory + "/table");
    }

    @Override
    Configuration newConfiguration() {
        return new Configuration(false);
    }

    @Override
    int shortLeaseMillis() {
        return 150;
    }

    @Override
    boolean hasDirectories() {
        return true;
    }
}
