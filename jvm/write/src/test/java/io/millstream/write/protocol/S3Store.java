package io.millstream.write.protocol;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** The bucket of {@link S3TestServer}. */
interface S3Store extends TestStore {
    @Override
    default Path newTable() {
        return S3TestServer.newTable();
    }

    @Override
    default Configuration newConfiguration() {
        return S3TestServer.configuration();
    }

    /** S3's timestamps have a resolution of one second. */
    @Override
    default int shortLeaseMillis() {
        return 2000;
    }

    @Override
    default boolean hasDirectories() {
        return false;
    }
}
