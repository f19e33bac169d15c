package io.millstream.hadoop.reading;

import io.millstream.hadoop.listing.Version;
import io.millstream.hadoop.natives.UnfitFileException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.fs.FileSystem;

/**
 * The files of a scan on a file system other than the local one, which native threads read through that file system's
 * own client, many at once: the client knows the credentials, encryption and proxies.
 *
 * <p>Exceptions do not pass through native code. The first one of each range is kept here, and thrown by the thread
 * that runs the scan.
 */
public abstract class RemoteFiles {
    private static final int ENOENT = 2;
    private static final int EIO = 5;

    private final List<ListedFile> entries = new ArrayList<>();
    private final ConcurrentHashMap<Integer, IOException> failures = new ConcurrentHashMap<>();
    private final AtomicLong requests = new AtomicLong();
    private final AtomicLong retries = new AtomicLong();
    private final AtomicLong throttled = new AtomicLong();
    private final AtomicLong nativeRequests = new AtomicLong();
    private boolean onlyAsListed;
    /** The caller's byte counter; null if it does not count. */
    private FileSystem.Statistics statisticsOfCaller;

    /** The files of these ranges. */
    protected RemoteFiles(FileRanges ranges) {
        for (FileRanges.Cursor range = ranges.cursor(); range.next(); ) {
            entries.add(new ListedFile(range.path(), range.version()));
        }
    }

    /** Has bytes counted in these statistics by the caller ({@link ReadCounter}). */
    final RemoteFiles countedByCallerIn(FileSystem.Statistics statistics) {
        statisticsOfCaller = statistics;
        return this;
    }

    /** Whether the caller counts bytes in the statistics of the file system. */
    protected final boolean areCountedByCaller() {
        return statisticsOfCaller != null;
    }

    /** Number of bytes that the file system's client has counted on this thread, if the caller counts them. */
    private long countedByClient() {
        return statisticsOfCaller == null
                ? 0
                : statisticsOfCaller.getThreadStatistics().getBytesRead();
    }

    /** Allows only the listed versions to be read: another one is an error. */
    final RemoteFiles onlyAsListed() {
        onlyAsListed = true;
        return this;
    }

    /** The file of a range; called by native threads. It is not opened before it is read. */
    final File open(int range) {
        return file(range, entries.get(range));
    }

    /** The file of a range, not opened yet. */
    protected abstract File file(int range, ListedFile entry);

    /** Why the file of a range could not be read; null if it could. */
    final IOException failure(int range) {
        return failures.get(range);
    }

    /**
     * Why the first of the ranges that could not be read could not be, with the path of its file; null if all could.
     */
    public final IOException firstFailure() {
        if (failures.isEmpty()) {
            return null;
        }
        Map.Entry<Integer, IOException> first = new TreeMap<>(failures).firstEntry();
        IOException failure = first.getValue();
        String message = entries.get(first.getKey()).path() + ": " + failure.getMessage();
        boolean isFinal = failure instanceof FileNotFoundException || UnfitFileException.isCauseOf(failure);
        return isFinal ? new UnfitFileException(message, failure) : new IOException(message, failure);
    }

    /** Whether the bytes read of a range are certainly of the listed version. */
    protected boolean isAsListed(int range) {
        return false;
    }

    /** Whether only the listed version of a file may be read ({@link #requireListed}). */
    protected final boolean isOnlyAsListed() {
        return onlyAsListed;
    }

    /**
     * Checks a file after it was opened.
     *
     * @throws UnfitFileException if it is not the listed version
     */
    protected static void requireListed(ListedFile listed, ListedFile opened) throws UnfitFileException {
        if (!opened.version().isSame(listed.version())) {
            throw new UnfitFileException("has changed since it was listed");
        }
    }

    /** The requests so far. */
    final RequestCounts requests() {
        return new RequestCounts(requests.get(), nativeRequests.get(), retries.get(), throttled.get());
    }

    /** The number of the native client that reads files of known version; 0 if there is none. Called by native code. */
    protected long nativeBucket() {
        return 0;
    }

    /**
     * Counts native reads; called by native threads.
     *
     * @param retried requests that repeated another one
     * @param turnedAway requests that the server throttled
     * @param refusal why this file has to be read here; null if it need not be
     */
    final void readNatively(int made, int retried, int turnedAway, long bytes, String refusal) {
        requests.addAndGet(made);
        retries.addAndGet(retried);
        throttled.addAndGet(turnedAway);
        nativeRequests.addAndGet(made);
        hasReadNatively(made, turnedAway, bytes, refusal);
    }

    /** Counts native reads in the statistics of the file system, and reports why native code does not read. */
    protected void hasReadNatively(int made, int turnedAway, long bytes, String refusal) {}

    /** Counts a request. */
    protected final void countRequest() {
        requests.incrementAndGet();
    }

    /** Counts a repeated request. */
    protected final void countRetry() {
        retries.incrementAndGet();
    }

    /** A file that several native threads may read at once. */
    protected abstract class File {
        /** The range of the file. */
        protected final int range;

        /** The file of a range. */
        protected File(int range) {
            this.range = range;
        }

        /**
         * Reads bytes; called by native threads.
         *
         * @param buffer native memory, valid during the call
         * @return their number, 0 at the end of the file; or a negative errno
         */
        final int read(long offset, ByteBuffer buffer) {
            long counted = countedByClient();
            try {
                return Math.max(0, fill(offset, buffer));
            } catch (FileNotFoundException e) {
                return failed(e, ENOENT);
            } catch (IOException e) {
                return failed(e, EIO);
            } catch (RuntimeException e) {
                return failed(new IOException(e), EIO);
            } finally {
                long twice = countedByClient() - counted;
                if (twice != 0) {
                    statisticsOfCaller.incrementBytesRead(-twice);
                }
            }
        }

        private int failed(IOException e, int errno) {
            failures.putIfAbsent(range, e);
            return -errno;
        }

        /**
         * Reads bytes at an offset, at least one if there are any.
         *
         * @return their number; 0 or -1 at the end of the file
         */
        protected abstract int fill(long offset, ByteBuffer buffer) throws IOException;

        /**
         * Records that bytes of the listed version are used; called by native threads.
         *
         * @return false if another version has been read here meanwhile, so these bytes must not be used
         */
        protected boolean accept() {
            return true;
        }

        /**
         * Greatest offset at which a reader may begin without an error, or a negative errno; called by native threads.
         */
        final long lastStart() {
            return endsQuietly() ? Long.MAX_VALUE : stamp()[0];
        }

        /** Whether the file system's own streams return end of file, not an error, for an offset beyond the end. */
        protected boolean endsQuietly() {
            return false;
        }

        /**
         * Length in bytes, or a negative errno, and modification time, in milliseconds since 1970, of the version that
         * is read; called by native threads.
         */
        final long[] stamp() {
            try {
                Version now = now().version();
                return new long[] {now.size(), now.modificationTime()};
            } catch (FileNotFoundException e) {
                return new long[] {failed(e, ENOENT), 0};
            } catch (IOException | RuntimeException e) {
                return new long[] {failed(e instanceof IOException known ? known : new IOException(e), EIO), 0};
            }
        }

        /** What is known of the version that is read. */
        protected abstract ListedFile now() throws IOException;

        /** Called by a native thread when the file is no longer read. */
        protected abstract void close();
    }
}
