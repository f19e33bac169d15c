package io.millstream.hadoop;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the small files of a task natively before the task opens them, many at once where the storage is slow.
 *
 * <p>When code inside {@link #serve} opens such a file, {@link MillstreamLocalFileSystem} hands out the bytes already in memory. A
 * file that is opened again later, that could not be read, or whose checksums differ is opened as usual, so every error is the
 * usual one. One thread at a time may use this class.
 */
public final class FileReadAhead implements AutoCloseable {
  /** Larger files are opened as usual. */
  private static final long LARGEST = 1 << 20;

  private static final byte[] NO_SEPARATOR = {};
  private static final byte[] ALL = {'t'};
  private static final Logger LOG = LoggerFactory.getLogger(FileReadAhead.class);
  private static final ThreadLocal<FileReadAhead> SERVING = new ThreadLocal<>();

  private final int maxReaders;
  private final BooleanSupplier isCancelled;
  private final FileRanges files;
  private final List<String> paths = new ArrayList<>();
  private final Set<String> names;
  /** Index of the file that is expected to be opened next. */
  private int next;

  private NativeScan scan;
  /** Index of the file that the scan started with. */
  private int first;
  /** Row of the next file in the scan's current batch; {@code scan.rows()} if it is in a later batch. */
  private int row;
  private boolean closed;
  private byte[] last;
  private long served;
  private long waited;

  /**
   * Prepares to read ahead; nothing is read yet. Parts of files, empty files and large files are never read ahead.
   *
   * @param ranges the files of a task, in the order in which they will be opened
   * @param maxReaders maximum number of native threads that read ahead
   * @param isCancelled whether the files are no longer wanted
   */
  public FileReadAhead(FileRanges ranges, int maxReaders, BooleanSupplier isCancelled) {
    this.isCancelled = isCancelled;
    this.maxReaders = maxReaders;
    files = ranges.filter(range -> range.isWhole() && range.size() > 0 && range.size() <= LARGEST);
    for (FileRanges.Cursor file = files.cursor(); file.next(); ) {
      paths.add(file.file());
    }
    names = new HashSet<>(paths);
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

  /** The bytes of a file that this thread opens, or null if it must be opened as usual. */
  static FSDataInputStream stream(Path path) {
    FileReadAhead ahead = SERVING.get();
    return ahead == null ? null : ahead.open(path.toUri().getPath());
  }

  /**
   * The next file, for a reader that reads parts of it: only these count as read.
   *
   * @param path its absolute path
   * @return null if it must be opened as usual
   */
  public FSDataInputStream open(String path) {
    byte[] bytes = take(path);
    return bytes == null ? null : new FSDataInputStream(new BytesInputStream(bytes));
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
   * What a reader makes of the bytes of the next file. Only if it makes something do they count as read.
   *
   * @param path its absolute path
   * @param reader may return null
   * @return null if the file must be opened as usual, or {@code reader} has returned it
   */
  public byte[] read(String path, UnaryOperator<byte[]> reader) {
    byte[] bytes = take(path);
    byte[] result = bytes == null ? null : reader.apply(bytes);
    if (result != null) {
      MillstreamLocalFileSystem.countBytesRead(bytes.length);
    }
    return result;
  }

  private synchronized byte[] take(String path) {
    if (closed) {
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
      last = scan.row(row - 1);
      served++;
      if (next == paths.size()) {
        stop();
      }
    } catch (IOException | IllegalStateException e) {
      LOG.debug("Not read ahead", e);
      skip();
    }
    return last;
  }

  /** Advances to the row of the next file. */
  private void advance() throws IOException {
    if (scan == null) {
      start();
    }
    while (row == scan.rows()) {
      if (!scan.next()) {
        throw new IOException("the scan ended before its last file");
      }
      row = 0;
    }
    row++;
    next++;
  }

  private void start() {
    first = next;
    row = 0;
    scan = new NativeScan(files.slice(first, paths.size()), NO_SEPARATOR, ALL, NativeScan.WHOLE_ROWS, NativeScan.WHOLE_FILES | NativeScan.VERIFY, maxReaders,
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

  /** Ends reading ahead. Streams stay valid. */
  @Override
  public synchronized void close() {
    closed = true;
    stop();
  }
}
