package io.millstream.hadoop.reading;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the small files of a task natively before the task opens them, many at once where the storage is slow.
 *
 * <p>When code inside {@link #serve} opens such a file, its file system returns the bytes already in memory
 * ({@link #stream}). A file that is opened again later, could not be read, differs in size from the listing, or has
 * wrong checksums is opened as usual, so every error is the usual one. One thread at a time may use this class.
 */
public final class FileReadAhead implements AutoCloseable {
    /** Larger local files are opened as usual. */
    private static final long LARGEST_LOCAL = 1 << 20;
    /** The same on other file systems, where each request of a reader takes long. */
    private static final long LARGEST_REMOTE = 8 << 20;

    private static final byte[] NO_SEPARATOR = {};
    private static final byte[] ALL = {'t'};
    private static final Logger LOG = LoggerFactory.getLogger(FileReadAhead.class);
    private static final ThreadLocal<FileReadAhead> SERVING = new ThreadLocal<>();

    private final Configuration conf;
    private final int maxReaders;
    private final BooleanSupplier isCancelled;
    private final boolean showsTimes;
    private final ReadCounter counter;
    private final FileRanges files;
    private final List<String> paths = new ArrayList<>();
    private final Set<String> names;
    /** At or before the file that was returned last, after this number of files. */
    private final FileRanges.Cursor handedOut;

    private int passed;
    /** Index of the next file expected to be opened. */
    private int next;

    private NativeScan scan;
    /** Its files; null if they are local. */
    private RemoteFiles remote;
    /** Index of the file that the scan started with. */
    private int first;
    /** Row of the next file in the scan's current batch; {@code scan.rows()} if it is in a later batch. */
    private int row;

    private boolean closed;
    /** Whether the scan is reading; its reads on this thread also open files, and must not re-enter this class. */
    private boolean fetching;

    private byte[] last;
    /** Whether {@code last} is certainly of the version that was listed. */
    private boolean isAsListed;

    private long served;
    private long waited;
    /** Totals of the scans that have ended. */
    private RequestCounts requests = RequestCounts.NONE;

    /**
     * Prepares to read ahead; nothing is read yet. Parts of files, empty files and large files are never read ahead.
     *
     * @param ranges the files of a task, in the order in which they will be opened
     * @param conf finds their file system
     * @param needed the share of each file's bytes that is expected to be needed, from 0 to 1: the smaller it is, the
     *     smaller the files that are read ahead, because they are read whole; none with 0
     * @param showsTimes whether rows contain the file's modification time, which must belong to the version that is
     *     read
     * @param maxReaders maximum number of native threads that read ahead
     * @param isCancelled whether the files are no longer needed
     * @throws IOException if their file system cannot be reached
     */
    public FileReadAhead(
            FileRanges ranges,
            Configuration conf,
            double needed,
            boolean showsTimes,
            int maxReaders,
            BooleanSupplier isCancelled)
            throws IOException {
        this.conf = conf;
        this.showsTimes = showsTimes;
        this.isCancelled = isCancelled;
        this.maxReaders = maxReaders;
        counter = ranges.isLocal()
                ? ReadCounter.local()
                : ReadCounter.of(new Path(ranges.fileSystem() + "/").getFileSystem(conf));
        long largest = Math.min(ranges.isLocal() ? LARGEST_LOCAL : LARGEST_REMOTE, (long) (LARGEST_REMOTE * needed));
        files = ranges.filter(range -> range.isWhole() && range.size() > 0 && range.size() <= largest);
        for (FileRanges.Cursor file = files.cursor(); file.next(); ) {
            paths.add(file.file());
        }
        names = new HashSet<>(paths);
        handedOut = files.cursor();
    }

    /**
     * Runs a reader that opens files on this thread.
     *
     * @return the reader's result
     */
    public <T> T serve(Supplier<T> reader) {
        FileReadAhead outer = SERVING.get();
        SERVING.set(this);
        try {
            return reader.get();
        } finally {
            SERVING.set(outer);
        }
    }

    /**
     * The bytes of a file that this thread opens; for file systems.
     *
     * @param fileSystem the file system that is asked
     * @param path may lack scheme and authority
     * @return null if it must be opened as usual
     */
    public static FSDataInputStream stream(FileSystem fileSystem, Path path) {
        FileReadAhead ahead = SERVING.get();
        return ahead != null && ahead.isOn(fileSystem) ? ahead.open(path.toUri().getPath()) : null;
    }

    /**
     * The listed status of a file whose bytes the thread will get when it opens it; for file systems. The file may have
     * changed since, but the status matches the bytes.
     *
     * @param fileSystem the file system that is asked
     * @param path may lack scheme and authority
     * @param status creates a status from the listing
     * @return null if the file system must be asked
     */
    public static <T> T status(FileSystem fileSystem, Path path, Function<FileRanges.Cursor, T> status) {
        FileReadAhead ahead = SERVING.get();
        return ahead != null && ahead.isOn(fileSystem)
                ? ahead.status(path.toUri().getPath(), status)
                : null;
    }

    private boolean isOn(FileSystem fileSystem) {
        URI uri = fileSystem.getUri();
        return files.isLocal()
                ? uri.getScheme().equals("file")
                : files.fileSystem().equals(uri.getScheme() + "://" + uri.getAuthority());
    }

    private synchronized <T> T status(String path, Function<FileRanges.Cursor, T> status) {
        return take(path) != null && (isAsListed || !showsTimes) ? status.apply(handedOut) : null;
    }

    /**
     * The next file, for a reader that reads parts of it: only these count as read.
     *
     * @param path its absolute path
     * @return null if it must be opened as usual
     */
    public FSDataInputStream open(String path) {
        byte[] bytes = take(path);
        return bytes == null ? null : new FSDataInputStream(new BytesInputStream(bytes, counter));
    }

    /**
     * The bytes of the next file, for a reader that needs no stream.
     *
     * @param path its absolute path
     * @return null if it must be opened as usual
     */
    public byte[] bytes(String path) {
        return read(path, UnaryOperator.identity());
    }

    /**
     * The result of a reader for the bytes of the next file. They count as read only if there is a result.
     *
     * @param path its absolute path
     * @param reader may return null
     * @return null if the file must be opened as usual, or {@code reader} has returned it
     */
    public byte[] read(String path, UnaryOperator<byte[]> reader) {
        byte[] bytes = take(path);
        byte[] result = bytes == null ? null : reader.apply(bytes);
        if (result != null) {
            counter.count(bytes.length);
        }
        return result;
    }

    private synchronized byte[] take(String path) {
        if (closed || fetching) {
            return null;
        }
        // Some readers open a file twice, first for its footer.
        if (last != null && paths.get(next - 1).equals(path)) {
            return last;
        }
        last = null;
        int index = names.contains(path) ? paths.subList(next, paths.size()).indexOf(path) : -1;
        if (index < 0) {
            return null;
        }
        try {
            // Some readers skip files that a condition on files excludes.
            for (int skipped = 0; skipped < index; skipped++) {
                advance();
            }
            advance();
            last = ofListedSize(scan.row(row - 1));
            isAsListed = remote != null && remote.isAsListed(next - 1 - first);
            served += last == null ? 0 : 1;
            if (next == paths.size()) {
                stop();
            }
        } catch (IOException | IllegalStateException e) {
            LOG.debug("Not read ahead", e);
            skip();
        }
        return last;
    }

    /** Null if the file's size differs from the listing's, because readers rely on that. */
    private byte[] ofListedSize(byte[] bytes) {
        for (; passed < next; passed++) {
            handedOut.next();
        }
        return bytes.length == handedOut.size() ? bytes : null;
    }

    /** Advances to the row of the next file. */
    private void advance() throws IOException {
        if (scan == null) {
            start();
        }
        fetching = true;
        try {
            while (row == scan.rows()) {
                if (!counter.fetching(scan::next)) {
                    throw new IOException("the scan ended before its last file");
                }
                row = 0;
            }
        } finally {
            fetching = false;
        }
        row++;
        next++;
    }

    private void start() throws IOException {
        first = next;
        row = 0;
        FileRanges left = files.slice(first, paths.size());
        remote = ListedFileSystem.filesCountedByCaller(left, conf);
        scan = new NativeScan(
                left,
                remote,
                NO_SEPARATOR,
                ALL,
                NativeScan.WHOLE_ROWS,
                NativeScan.WHOLE_FILES | NativeScan.VERIFY,
                maxReaders,
                isCancelled);
    }

    /** Continues after a file that cannot be read. Files before it in the same batch are opened as usual, too. */
    private void skip() {
        int failed = scan == null ? paths.size() : first + scan.range();
        stop();
        next = Math.min(Math.max(next, failed) + 1, paths.size());
    }

    private void stop() {
        if (scan != null) {
            waited += scan.waitedNanos();
            scan.close();
            requests = requests.plus(scan.requests());
            scan = null;
        }
    }

    /** Number of files served from memory. */
    public synchronized long filesServed() {
        return served;
    }

    /** Nanoseconds for which opening a file waited for the reading threads. */
    public synchronized long waitedNanos() {
        return waited;
    }

    /** The requests to the files' file system, complete only after {@link #close}; none for local files. */
    public synchronized RequestCounts requests() {
        return requests;
    }

    /** Ends reading ahead. Streams stay valid. */
    @Override
    public synchronized void close() {
        closed = true;
        stop();
    }
}
