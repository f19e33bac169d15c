package io.millstream.write.protocol;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Tag;

@Tag("s3")
class S3aRecoveryTest extends RecoveryContract {
    @Override
    Path newTable() {
        return S3TestServer.newTable();
    }

    @Override
    Configuration newConfiguration() {
        return S3TestServer.configuration();
    }

    /** S3's timestamps have a resolution of one second. */
    @Override
    int shortLeaseMillis() {
        return 2000;
    }

    @Override
    boolean hasDirectories() {
        return false;
    }
}
