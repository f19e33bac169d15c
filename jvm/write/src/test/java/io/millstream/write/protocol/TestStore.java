package io.millstream.write.protocol;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** A store that contracts are tested on: {@link LocalStore}, {@link HdfsStore} or {@link S3Store}. */
interface TestStore {
    /** A directory for one table only, which does not exist. */
    Path newTable() throws IOException;

    /** The file system's configuration. */
    Configuration newConfiguration();

    /** A lease that is longer than the resolution of the store's clock. */
    int shortLeaseMillis();

    /** Whether directories exist even if they are empty, and staged files are deleted with them. */
    boolean hasDirectories();
}
