package io.millstream.hadoop;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * The staging directory of a compaction, in which outputs are made before they take the place of their inputs, natively and
 * all at once. Killed at any moment, it is finished or undone by whoever opens it next; {@code millstream_ops::compact} tells how.
 */
public final class NativeCompaction implements AutoCloseable {
  /** Where outputs are made, below the staging directory. */
  public static final String OUT = "out";

  private long handle;

  /**
   * Opens a staging directory, makes it if it is not there, and locks it.
   *
   * @param path absolute path
   * @throws IOException if it cannot be opened, or another compaction is at work in it
   */
  public NativeCompaction(String path) throws IOException {
    requireLibrary();
    handle = open(LocalPaths.require(path));
  }

  private static void requireLibrary() {
    if (!NativeLibrary.isLoaded()) {
      throw new IllegalStateException("Millstream's native library does not load in this JVM (see its log), and there is no compaction "
          + "without it");
    }
  }

  /** Whether an earlier compaction was committed here, and not finished. */
  public synchronized boolean isCommitted() throws IOException {
    return isCommitted(handle());
  }

  /** Removes what an earlier one left that was not committed. */
  public synchronized void clear() throws IOException {
    clear(handle());
  }

  /** Commits: from now on it is finished, whatever happens. */
  public synchronized void commit(Journal journal) throws IOException {
    commit(handle(), journal.packed());
  }

  /** Does what was committed, or the rest of it. */
  public synchronized Applied apply(int threads) throws IOException {
    return new Applied(new String(apply(handle(), threads), StandardCharsets.UTF_8));
  }

  private long handle() throws IOException {
    if (handle == 0) {
      throw new IOException("the compaction is closed");
    }
    return handle;
  }

  /** Removes the staging directory. */
  public synchronized void remove() throws IOException {
    long opened = handle();
    handle = 0;
    close(opened, true);
  }

  /** Closes it and leaves it to the next one. */
  @Override
  public synchronized void close() throws IOException {
    if (handle != 0) {
      long opened = handle;
      handle = 0;
      close(opened, false);
    }
  }

  /**
   * Writes files of lines one after the other to a new file that is on disk when this returns, and its manifest.
   *
   * @param inputs the files, in whole
   * @param header whether their first lines are the same, and wanted once
   * @param output the new file
   * @param maxReaders most native threads that read ahead
   * @param isCancelled whether nobody wants the output any more
   * @return its length
   * @throws IOException if it could not be made; then it is not there. The message names the file that it is about
   */
  public static long concatenate(FileRanges inputs, boolean header, String output, int maxReaders, BooleanSupplier isCancelled)
      throws IOException {
    requireLibrary();
    return concatenate(inputs.packed(), header, LocalPaths.require(output), maxReaders, isCancelled);
  }

  /**
   * Looks whether files of lines could be concatenated, as far as their beginnings say.
   *
   * @throws IOException if they could not; the message names the file that it is about
   */
  public static void check(FileRanges inputs, boolean header, int maxReaders, BooleanSupplier isCancelled) throws IOException {
    requireLibrary();
    check(inputs.packed(), header, maxReaders, isCancelled);
  }

  /**
   * Names of the symbolic links in a directory that this JVM can express.
   *
   * @param directory absolute path
   */
  public static Set<String> links(String directory) throws IOException {
    requireLibrary();
    byte[] names = links(LocalPaths.require(directory));
    Set<String> found = new HashSet<>();
    int start = 0;
    for (int i = 0; i < names.length; i++) {
      if (names[i] == 0) {
        found.add(LocalPaths.decode(names, start, i));
        start = i + 1;
      }
    }
    found.remove(null);
    return found;
  }

  /**
   * Writes the manifest of an output that is still to be made.
   *
   * @throws IOException if it cannot be written, or an input is not what it was when it was listed
   */
  public static void stamp(FileRanges inputs, String output) throws IOException {
    requireLibrary();
    stamp(inputs.packed(), LocalPaths.require(output));
  }

  /** Which output goes where. */
  public static final class Journal {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    /**
     * Begins one.
     *
     * @param inPlace whether the outputs replace their inputs
     * @param root absolute path of the tree that they go to, without links
     */
    public Journal(boolean inPlace, String root) throws IOException {
      field("millstream compact 1".getBytes(StandardCharsets.US_ASCII));
      field((inPlace ? "in place" : "new").getBytes(StandardCharsets.US_ASCII));
      field(LocalPaths.require(root));
    }

    /**
     * Adds an output; those of a directory follow each other.
     *
     * @param staged its name in the staging directory
     * @param directory path of its directory below the root
     * @param name its name there
     */
    public void add(String staged, String directory, String name) throws IOException {
      field(LocalPaths.require(staged));
      field(directory.isEmpty() ? new byte[0] : LocalPaths.require(directory));
      field(LocalPaths.require(name));
    }

    private void field(byte[] field) {
      bytes.writeBytes(field);
      bytes.write(0);
    }

    private byte[] packed() {
      ByteArrayOutputStream all = new ByteArrayOutputStream();
      all.writeBytes(bytes.toByteArray());
      all.writeBytes("end\0".getBytes(StandardCharsets.US_ASCII));
      return all.toByteArray();
    }
  }

  /** What {@link #apply} has done. */
  public static final class Applied {
    private final long outputs;
    private final long replaced;
    private final List<Left> left = new ArrayList<>();

    private Applied(String text) {
      String[] fields = text.split("\0", -1);
      outputs = Long.parseLong(fields[0]);
      replaced = Long.parseLong(fields[1]);
      for (int i = 2; i + 2 < fields.length; i += 3) {
        left.add(new Left(fields[i], Long.parseLong(fields[i + 1]), fields[i + 2]));
      }
    }

    /** Outputs that are in their places. */
    public long outputs() {
      return outputs;
    }

    /** Files that they took the place of. */
    public long replaced() {
      return replaced;
    }

    /** Inputs that are as they were. */
    public List<Left> left() {
      return left;
    }
  }

  /**
   * Inputs that were left as they were.
   *
   * @param directory path of their directory
   * @param files how many
   * @param reason why
   */
  public record Left(String directory, long files, String reason) {}

  private static native long concatenate(byte[] inputs, boolean header, byte[] output, int maxReaders, BooleanSupplier isCancelled)
      throws IOException;

  private static native void check(byte[] inputs, boolean header, int maxReaders, BooleanSupplier isCancelled) throws IOException;

  private static native byte[] links(byte[] directory) throws IOException;

  private static native void stamp(byte[] inputs, byte[] output) throws IOException;

  private static native long open(byte[] path) throws IOException;

  private static native boolean isCommitted(long handle) throws IOException;

  private static native void clear(long handle) throws IOException;

  private static native void commit(long handle, byte[] journal) throws IOException;

  private static native byte[] apply(long handle, int threads) throws IOException;

  private static native void close(long handle, boolean remove) throws IOException;
}
