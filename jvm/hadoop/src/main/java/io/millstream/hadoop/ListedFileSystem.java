package io.millstream.hadoop;

import java.io.IOException;
import java.util.List;
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
}
