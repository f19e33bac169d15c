package io.millstream.hadoop.reading;

import io.millstream.hadoop.listing.DirectoryListing;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** A {@link FileSystem} whose data sets Millstream lists and reads. */
public interface ListedFileSystem {
    /** Whether data sets are listed by Millstream: that is enabled, and possible in this JVM. */
    boolean listsNatively();

    /**
     * Lists data sets: all files below the roots except names that Spark ignores, as Spark's own index would find them.
     * A directory that could not be listed is in the result with its error.
     *
     * @param roots paths of this file system, qualified
     * @return listings in an order in which a directory's parts follow one another's; several for a huge directory or
     *     overlapping roots; null if Spark must list them by itself
     * @throws IOException if the thread is interrupted
     */
    List<DirectoryListing> listDataset(List<Path> roots) throws IOException;

    /** How the bytes of files reach native threads, and why not in a faster way; for people. */
    String transport();

    /**
     * The files of ranges on this file system, for native threads to read.
     *
     * @return null if native code reads them by itself
     * @throws IOException if they cannot be read
     */
    RemoteFiles files(FileRanges ranges) throws IOException;

    /**
     * The files of ranges on any file system.
     *
     * @param conf finds the file system; unused for local files
     * @return null for files that native code reads by itself
     * @throws IOException if the file system cannot be reached
     */
    static RemoteFiles files(FileRanges ranges, Configuration conf) throws IOException {
        if (ranges.isLocal()) {
            return null;
        }
        FileSystem fileSystem = of(ranges, conf);
        return fileSystem instanceof ListedFileSystem ours ? ours.files(ranges) : StreamFiles.of(fileSystem, ranges);
    }

    /**
     * The files of ranges like {@link #files(FileRanges, Configuration)}, for a caller that counts their bytes in the
     * statistics of the file system ({@link ReadCounter}).
     */
    static RemoteFiles filesCountedByCaller(FileRanges ranges, Configuration conf) throws IOException {
        RemoteFiles files = files(ranges, conf);
        return files == null ? null : files.countedByCallerIn(ReadCounter.statistics(of(ranges, conf)));
    }

    /**
     * The files of ranges like {@link #files(FileRanges, Configuration)}, of which only the listed versions may be
     * read: another one is an error.
     */
    static RemoteFiles filesAsListed(FileRanges ranges, Configuration conf) throws IOException {
        RemoteFiles files = files(ranges, conf);
        return files == null ? null : files.onlyAsListed();
    }

    private static FileSystem of(FileRanges ranges, Configuration conf) throws IOException {
        return new Path(ranges.fileSystem() + "/").getFileSystem(conf);
    }
}
