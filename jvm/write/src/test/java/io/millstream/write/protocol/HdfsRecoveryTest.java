package io.millstream.write.protocol;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Tag;

@Tag("slow")
class HdfsRecoveryTest extends RecoveryContract {
    @Override
    Path newTable() throws IOException {
        return HdfsTestCluster.newTable();
    }

    @Override
    Configuration newConfiguration() {
        return HdfsTestCluster.configuration();
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
