package io.millstream.hadoop;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Small files that a task is about to open, read natively before it does: many at once where the storage is slow.
 *
 * <p>While a reader opens one inside of {@link #serve}, {@link MillstreamLocalFileSystem} gives it the bytes that are there. A file
 * that is opened again later on, that could not be read, or whose checksums differ is opened as usual, so every error is the usual
 * one. One thread at a time may use it.
 */
public final class FileReadAhead implements AutoCloseable {
  /** A larger file is worth an open of its own. */
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
  /** The file that should be opened next. */
  private int next;

  private NativeScan scan;
  /** The file that the scan began with. */
  private int first;
  /** The row of the scan's batch that is the next file, unless that is in another batch. */
  private int row;
  private boolean closed;
  private byte[] last;
  private long served;
  private long waited;

  /**
   * Nothing is read yet. Parts of files, empty and large ones never are.
   *
   * @param ranges the files of a task, in the order in which they will be opened
   * @param maxReaders most native threads that read ahead
   * @param isCancelled whether nobody wants the files any more
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
   * Runs code of a reader that opens files on this thread.
   *
   * @return what it returns
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

  /** The bytes of a file that is opened on this thread, or null if it is to be opened as usual. */
  static FSDataInputStream stream(Path path) {
    FileReadAhead ahead = SERVING.get();
    byte[] bytes = ahead == null ? null : ahead.take(path.toUri().getPath());
    return bytes == null ? null : new FSDataInputStream(new BytesInputStream(bytes));
  }

  /**
   * The bytes of the next file, for a reader that needs no stream.
   *
   * @param path its absolute path
   * @return null if it is to be opened as usual
   */
  public byte[] bytes(String path) {
    byte[] bytes = take(path);
    if (bytes != null) {
      MillstreamLocalFileSystem.countBytesRead(bytes.length);
    }
    return bytes;
  }

  private synchronized byte[] take(String path) {
    if (closed) {
      return null;
    }
    // Some readers open a file for its footer, and again.
    if (last != null && paths.get(next - 1).equals(path)) {
      return last;
    }
    last = null;
    int index = names.contains(path) ? paths.subList(next, paths.size()).indexOf(path) : -1;
    if (index < 0) {
      return null;
    }
    try {
      // Some readers do not open what a condition on files leaves out.
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

  /** Goes to the row of the next file. */
  private void advance() throws IOException {
    if (scan == null) {
      start();
    }
    while (row == scan.rows()) {
      if (!scan.next()) {
        throw new IOException("the scan is over before its files are");
      }
      row = 0;
    }
    row++;
    next++;
  }

  private void start() {
    first = next;
    row = 0;
    scan = new NativeScan(files.slice(first, paths.size()), NO_SEPARATOR, ALL, NativeScan.WHOLE_FILES | NativeScan.VERIFY, maxReaders, isCancelled);
  }

  /** Goes on after a file that cannot be read; those before it that were to be read with it are opened as usual, too. */
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

  /** Files that were served from memory. */
  public synchronized long filesServed() {
    return served;
  }

  /** Nanoseconds for which opening waited for those that read ahead. */
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
