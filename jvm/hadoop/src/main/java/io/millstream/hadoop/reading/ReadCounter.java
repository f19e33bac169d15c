package io.millstream.hadoop.reading;

import java.io.IOException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;

/**
 * Counts the bytes that native threads have read for this thread in the statistics of a file system, from which Spark
 * takes its input metrics. Some file systems count bytes themselves, but for the thread that reads: bytes that this
 * thread has read while it fetched native results are not counted again. Not thread-safe.
 */
public final class ReadCounter {
    private final FileSystem.Statistics statistics;
    private long countedAlready;

    /** A call that may read on the current thread. */
    @FunctionalInterface
    public interface Fetch {
        /** Fetches results; returns whether there were any. */
        boolean run() throws IOException;
    }

    private ReadCounter(FileSystem.Statistics statistics) {
        this.statistics = statistics;
    }

    /** For local files. */
    @SuppressWarnings("deprecation")
    public static ReadCounter local() {
        return new ReadCounter(FileSystem.getStatistics("file", LocalFileSystem.class));
    }

    /** For the files of a file system. */
    public static ReadCounter of(FileSystem fileSystem) {
        return new ReadCounter(statistics(fileSystem));
    }

    /** The statistics of a file system. */
    @SuppressWarnings("deprecation")
    static FileSystem.Statistics statistics(FileSystem fileSystem) {
        return FileSystem.getStatistics(fileSystem.getUri().getScheme(), fileSystem.getClass());
    }

    /** Runs a call in which this thread may read itself. */
    public boolean fetching(Fetch fetch) throws IOException {
        long before = statistics.getThreadStatistics().getBytesRead();
        try {
            return fetch.run();
        } finally {
            countedAlready += statistics.getThreadStatistics().getBytesRead() - before;
        }
    }

    /** Counts bytes that this thread has received. */
    public void count(long bytes) {
        long covered = Math.min(bytes, countedAlready);
        countedAlready -= covered;
        statistics.incrementBytesRead(bytes - covered);
    }
}
