package io.millstream.write.protocol;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** Local files, by Hadoop's own file system. */
interface LocalStore extends TestStore {
    /** A path that does not exist. */
    java.nio.file.Path newLocalTable();

    @Override
    default Path newTable() {
        return new Path("file://" + newLocalTable());
    }

    @Override
    default Configuration newConfiguration() {
        return new Configuration(false);
    }

    @Override
    default int shortLeaseMillis() {
        return 150;
    }

    @Override
    default boolean hasDirectories() {
        return true;
    }
}
