package io.millstream.write.protocol;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Tag;

@Tag("s3")
class S3aJobDirectoriesTest extends JobDirectoriesContract {
    @Override
    Path newTable() {
        return S3TestServer.newTable();
    }

    @Override
    Configuration newConfiguration() {
        return S3TestServer.configuration();
    }
}
