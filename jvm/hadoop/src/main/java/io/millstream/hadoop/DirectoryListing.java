package io.millstream.hadoop;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.fs.Path;

/**
 * The entries of one directory (or of a part of a huge one) in columns: about 20 bytes plus the name for each entry.
 * Paths and statuses are created on request.
 *
 * <p>Entries whose names Java cannot express ({@link LocalPaths}) are left out: Java could not open them, and Hadoop's
 * local file system leaves them out, too.
 */
public final class DirectoryListing {
  /** A directory precedes its descendants; siblings are in the order in which their parent lists them. */
  static final Comparator<DirectoryListing> SERIAL_ORDER =
      (a, b) -> Arrays.compareUnsigned(a.position, b.position);

  private static final int HEADER_BYTES = 36;

  private final int root;
  private final int flags;
  private final int errno;
  private final int unexamined;
  private final int listedAtMillis;
  private final int inexpressible;
  private final byte[] position;
  private final String directory;
  private final byte[] directoryBytes;
  private final String uriPrefix;
  private final long[] sizes;
  private final long[] modificationTimes;
  private final BitSet directories;
  private final int[] nameEnds;
  private final byte[] names;

  private DirectoryListing(ByteBuffer in) {
    root = in.getInt();
    flags = in.getInt();
    errno = in.getInt();
    int count = in.getInt();
    byte[] path = new byte[in.getInt()];
    byte[] allNames = new byte[in.getInt()];
    unexamined = in.getInt();
    listedAtMillis = in.getInt();
    position = new byte[in.getInt()];
    in.get(path);
    in.get(position);
    align(in);
    long[] allSizes = longs(in, count);
    long[] allTimes = longs(in, count);
    int[] allEnds = new int[count];
    in.asIntBuffer().get(allEnds);
    in.position(in.position() + 4 * count);
    BitSet allDirectories = new BitSet();
    for (int i = 0; i < count; i++) {
      allDirectories.set(i, in.get() != 0);
    }
    in.get(allNames);
    align(in);

    directory = LocalPaths.decode(path, 0, path.length);
    directoryBytes = path.length == 1 ? new byte[0] : path;
    uriPrefix = directory == null ? null : LocalPaths.uriPrefix(directory);
    int[] kept = directory == null ? new int[0] : expressible(allNames, allEnds);
    if (kept == null) {
      inexpressible = 0;
      sizes = allSizes;
      modificationTimes = allTimes;
      directories = allDirectories;
      nameEnds = allEnds;
      names = allNames;
    } else {
      inexpressible = count - kept.length;
      sizes = Arrays.stream(kept).mapToLong(i -> allSizes[i]).toArray();
      modificationTimes = Arrays.stream(kept).mapToLong(i -> allTimes[i]).toArray();
      directories = new BitSet();
      nameEnds = new int[kept.length];
      ByteBuffer keptNames = ByteBuffer.allocate(allNames.length);
      for (int k = 0; k < kept.length; k++) {
        int start = kept[k] == 0 ? 0 : allEnds[kept[k] - 1];
        keptNames.put(allNames, start, allEnds[kept[k]] - start);
        directories.set(k, allDirectories.get(kept[k]));
        nameEnds[k] = keptNames.position();
      }
      names = Arrays.copyOf(keptNames.array(), keptNames.position());
    }
  }

  /** Indexes of the entries that Java can express; null if it can express all of them. */
  private static int[] expressible(byte[] names, int[] ends) {
    if (LocalPaths.isAscii(names, 0, names.length)) {
      return null;
    }
    int[] kept = new int[ends.length];
    int count = 0;
    for (int i = 0; i < ends.length; i++) {
      int start = i == 0 ? 0 : ends[i - 1];
      if (LocalPaths.decode(names, start, ends[i]) != null) {
        kept[count++] = i;
      }
    }
    return count == ends.length ? null : Arrays.copyOf(kept, count);
  }

  /** Reads all blocks of a buffer; {@link NativeListing} describes their layout. */
  static List<DirectoryListing> parse(byte[] blocks) {
    ByteBuffer in = ByteBuffer.wrap(blocks).order(ByteOrder.LITTLE_ENDIAN);
    List<DirectoryListing> listings = new ArrayList<>();
    while (in.remaining() >= HEADER_BYTES) {
      listings.add(new DirectoryListing(in));
    }
    return listings;
  }

  private static long[] longs(ByteBuffer in, int count) {
    long[] values = new long[count];
    in.asLongBuffer().get(values);
    in.position(in.position() + 8 * count);
    return values;
  }

  private static void align(ByteBuffer in) {
    in.position((in.position() + 7) & ~7);
  }

  /** Index of the root that the directory is, or is below. */
  public int root() {
    return root;
  }

  /**
   * Whether this stands for a root that is a file: its only entry is that file, and {@link #directory} is the parent.
   */
  public boolean isFile() {
    return (flags & NativeListing.FLAG_NOT_DIRECTORY) != 0;
  }

  /** Whether the directory may contain checksum files. For a root that is a file this is not examined. */
  public boolean mayHaveChecksums() {
    return isFile() || (flags & NativeListing.FLAG_CHECKSUMS) != 0;
  }

  /** Whether another part of the same directory follows. */
  boolean hasMore() {
    return (flags & NativeListing.FLAG_MORE) != 0;
  }

  /** 0, or the error that kept the directory from being listed. */
  public int errno() {
    return errno;
  }

  /** Number of entries that exist but are missing here, because the storage did not answer for them. */
  public int unexamined() {
    return unexamined;
  }

  /**
   * Number of entries (at least 1 for a whole directory) that are missing here because Java cannot express their names.
   */
  public int inexpressible() {
    return directory == null ? Math.max(1, inexpressible) : inexpressible;
  }

  /** The directory's absolute path, or null if Java cannot express it. */
  public String directory() {
    return directory;
  }

  /** How long ago the directory was listed. */
  int ageMillis() {
    return (int) (System.nanoTime() / 1_000_000) - listedAtMillis;
  }

  /** Number of entries. */
  public int count() {
    return nameEnds.length;
  }

  /** Length in bytes of an entry. */
  public long size(int i) {
    return sizes[i];
  }

  /** Time of an entry's last modification, in milliseconds since 1970. */
  public long modificationTime(int i) {
    return modificationTimes[i];
  }

  /** Whether an entry is a directory, or a link to one. */
  public boolean isDirectory(int i) {
    return directories.get(i);
  }

  /** An entry's name. */
  public String name(int i) {
    return LocalPaths.decode(names, nameStart(i), nameEnds[i]);
  }

  /** The bytes of an entry's name. */
  byte[] nameBytes(int i) {
    return Arrays.copyOfRange(names, nameStart(i), nameEnds[i]);
  }

  /** The directory's path, without a slash at its end. */
  byte[] directoryBytes() {
    return directoryBytes;
  }

  /** Whether an entry's name begins with an underscore. */
  public boolean hasUnderscore(int i) {
    return names[nameStart(i)] == '_';
  }

  /** An entry's path, equal to the one that Hadoop's local file system returns. */
  public Path path(int i) {
    return LocalPaths.child(uriPrefix, names, nameStart(i), nameEnds[i]);
  }

  /** The directory's path, equal to the one that Hadoop's local file system returns. */
  public Path directoryPath() {
    return LocalPaths.directory(uriPrefix);
  }

  private int nameStart(int i) {
    return i == 0 ? 0 : nameEnds[i - 1];
  }
}
