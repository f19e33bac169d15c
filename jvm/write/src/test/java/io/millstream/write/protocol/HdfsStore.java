package io.millstream.write.protocol;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** The HDFS of {@link HdfsTestCluster}. */
interface HdfsStore extends TestStore {
    @Override
    default Path newTable() throws IOException {
        return HdfsTestCluster.newTable();
    }

    @Override
    default Configuration newConfiguration() {
        return HdfsTestCluster.configuration();
    }

    @Override
    default int shortLeaseMillis() {
        return 500;
    }

    @Override
    default boolean hasDirectories() {
        return true;
    }
}
