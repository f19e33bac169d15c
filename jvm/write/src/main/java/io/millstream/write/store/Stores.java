package io.millstream.write.store;

import io.millstream.write.store.hdfs.HdfsStore;
import io.millstream.write.store.local.LocalStore;
import io.millstream.write.store.s3a.S3aStore;
import java.io.IOException;
import java.util.Collection;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** The stores of file systems. */
public final class Stores {
    private Stores() {}

    /** Why there is no store for a file system; empty if there is one. */
    public static Optional<String> whyNot(FileSystem fs) {
        return switch (kind(fs)) {
            case "file", "hdfs" -> Optional.empty();
            case "s3a" -> S3aStore.whyNot(fs);
            default ->
                Optional.of("direct writes support the file systems file, hdfs and s3a, but not "
                        + fs.getUri().getScheme());
        };
    }

    /**
     * The kind of a file system: its scheme, or {@code s3a} for S3A under any scheme, such as {@code s3:} for tables of
     * Glue.
     */
    private static String kind(FileSystem fs) {
        return fs.getClass().getName().equals("org.apache.hadoop.fs.s3a.S3AFileSystem")
                ? "s3a"
                : fs.getUri().getScheme();
    }

    /**
     * Why this process cannot write to directories of some names; empty if it can.
     *
     * @param names paths, or parts of them
     * @param isOpen whether the directories may have any other names as well
     */
    public static Optional<String> whyNoNames(FileSystem fs, Collection<String> names, boolean isOpen) {
        return kind(fs).equals("file") ? LocalStore.whyNoNames(names, isOpen) : Optional.empty();
    }

    /** The store of a table. */
    public static Store of(Path table, Configuration conf) throws IOException {
        FileSystem fs = table.getFileSystem(conf);
        Optional<String> whyNot = whyNot(fs);
        if (whyNot.isPresent()) {
            throw new UnsupportedOperationException(whyNot.get());
        }
        WriteOptions options = new WriteOptions(conf);
        Path root = fs.makeQualified(table);
        return switch (kind(fs)) {
            case "file" -> new LocalStore(root, options);
            case "s3a" -> S3aStore.open(fs, root, options);
            default -> new HdfsStore(fs, root, options);
        };
    }

    /** Why directories of a table cannot be exchanged; empty if they can. */
    public static Optional<String> whyNoExchange(Path table, Configuration conf) throws IOException {
        FileSystem fs = table.getFileSystem(conf);
        return fs.getUri().getScheme().equals("file")
                ? new LocalStore(fs.makeQualified(table), new WriteOptions(conf))
                        .exchange()
                        .whyNot()
                : Optional.of("the file system " + fs.getUri().getScheme() + " does not exchange directories");
    }
}
