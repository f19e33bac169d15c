package io.millstream.hadoop;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hadoop's local file system with native, parallel listing.
 *
 * <p>Set {@code fs.file.impl} to this class. {@code listStatus} lists one directory natively, and with it all that is
 * built on it: {@code listLocatedStatus}, {@code listStatusIterator}, {@code globStatus}. {@code listFiles} recurses
 * natively. A directory that cannot be listed, a root that is a file, a loop of links: all of that is left to the
 * superclass, whose answers and exceptions are the contract.
 */
public class MillstreamLocalFileSystem extends LocalFileSystem {
  private static final Logger LOG = LoggerFactory.getLogger(MillstreamLocalFileSystem.class);
  private static final int ENOENT = 2;
  private static final AtomicBoolean WARNED_OF_FAILURE = new AtomicBoolean();
  private static final AtomicBoolean COMPANIONS_STARTED = new AtomicBoolean();
  @SuppressWarnings("deprecation")
  private static final Statistics STATISTICS = getStatistics("file", MillstreamLocalFileSystem.class);
  /**
   * A path of so many names may lead through as many links as the kernel follows in one path (40). What is below it then
   * exists for the native side, which goes from handle to handle, but not for Java, so such paths are the superclass's.
   */
  private static final int DEEP_NAMES = 24;

  /** Listing, or changing the tree. */
  private interface Call<T> {
    T run() throws IOException;
  }

  /** Changing the tree, without an answer. */
  private interface Action {
    void run() throws IOException;
  }

  private final DirectoryWalk.Starter walks;
  private ListingOptions options;
  private SiblingReadAhead readAhead;

  /** As Hadoop makes it; {@link #initialize} follows. */
  public MillstreamLocalFileSystem() {
    this(NativeListing::new);
  }

  MillstreamLocalFileSystem(DirectoryWalk.Starter walks) {
    super(new RawLocalFiles());
    this.walks = walks;
    setOptions(new Configuration(false));
  }

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    setOptions(conf);
    if (COMPANIONS_STARTED.compareAndSet(false, true)) {
      startCompanions();
    }
  }

  private static void startCompanions() {
    try {
      ServiceLoader.load(Companion.class, MillstreamLocalFileSystem.class.getClassLoader()).forEach(Companion::start);
    } catch (ServiceConfigurationError | LinkageError e) {
      LOG.debug("This JVM lacks what a companion of the file system needs, such as Spark", e);
    }
  }

  /**
   * Counts bytes that this thread has read without the file system, as Spark's input metrics ask for them.
   *
   * @param count how many more
   */
  public static void countBytesRead(long count) {
    STATISTICS.incrementBytesRead(count);
  }

  private void setOptions(Configuration conf) {
    options = new ListingOptions(conf);
    readAhead = new SiblingReadAhead(options, walks);
  }

  /** Whether directories are listed natively: it is enabled, and the native library is loaded. */
  public boolean listsNatively() {
    return options.enabled() && NativeLibrary.isLoaded();
  }

  @Override
  public FileStatus[] listStatus(Path f) throws IOException {
    List<DirectoryListing> parts = listsNatively() ? list(pathToFile(f)) : null;
    return parts == null ? super.listStatus(f) : statuses(parts).toArray(new FileStatus[0]);
  }

  @Override
  public RemoteIterator<LocatedFileStatus> listLocatedStatus(Path f) throws IOException {
    List<DirectoryListing> parts = listsNatively() ? list(pathToFile(f)) : null;
    return parts == null ? super.listLocatedStatus(f) : new ListedEntries(f, parts);
  }

  @Override
  public RemoteIterator<LocatedFileStatus> listFiles(Path f, boolean recursive) throws IOException {
    List<DirectoryListing> tree = listsNatively() && recursive ? listTree(pathToFile(f)) : null;
    return tree == null ? super.listFiles(f, recursive) : new ListedEntries(f, tree);
  }

  /**
   * Opens a file: one whose bytes are there already ({@link FileReadAhead}) without a call, and one that has no checksums beside it, as
   * hardly one has, without the reader that would verify them: that asks twice for the file's status, in five calls each.
   */
  @Override
  public FSDataInputStream open(Path f, int bufferSize) throws IOException {
    FSDataInputStream ahead = FileReadAhead.stream(f);
    if (ahead != null) {
      return ahead;
    }
    boolean plain = options.enabled() && !pathToFile(getChecksumFile(f)).exists();
    return plain ? getRawFileSystem().open(f, bufferSize) : super.open(f, bufferSize);
  }

  private List<DirectoryListing> walk(byte[][] roots, int flags) throws IOException {
    List<DirectoryListing> listings = new ArrayList<>();
    walks.start(roots, flags, options.threads).forEach(listings::add);
    return listings;
  }

  /** What the call gives, or null if native code fails: without a thread to run on, or by an error of its own. */
  private static List<DirectoryListing> unlessItFails(Call<List<DirectoryListing>> listing) throws IOException {
    try {
      return listing.run();
    } catch (IllegalStateException | LinkageError e) {
      if (WARNED_OF_FAILURE.compareAndSet(false, true)) {
        LOG.warn("Native listing fails, so directories are listed as slowly as without Millstream when it does; results "
            + "are the same. This is said once. Cause: {}", e.toString());
      }
      return null;
    }
  }

  /** One directory; null if the superclass must answer. */
  private List<DirectoryListing> list(File directory) throws IOException {
    byte[] root = LocalPaths.encode(directory);
    if (root == null || directory.toPath().getNameCount() >= DEEP_NAMES) {
      return null;
    }
    List<DirectoryListing> parts = unlessItFails(() -> {
      List<DirectoryListing> ahead = readAhead.take(directory.getPath());
      return ahead != null ? ahead : walk(new byte[][] {root}, NativeListing.DIRECTORIES);
    });
    if (parts == null || parts.stream().anyMatch(p -> p.errno() != 0 || p.isFile())) {
      return null;
    }
    warnAboutMissing(directory.getPath(), parts);
    readAhead.listed(directory.getPath(), parts);
    return parts;
  }

  /** All directories of a tree, in serial order; null if the superclass must answer. */
  private List<DirectoryListing> listTree(File directory) throws IOException {
    byte[] root = LocalPaths.encode(directory);
    if (root == null) {
      return null;
    }
    List<DirectoryListing> tree = unlessItFails(() -> walk(new byte[][] {root}, NativeListing.RECURSIVE));
    String top = directory.getPath();
    if (tree == null || tree.stream().anyMatch(d -> d.isFile() || d.errno() != 0 && (d.errno() != ENOENT || top.equals(d.directory())))) {
      return null;
    }
    warnAboutMissing(top, tree);
    tree.removeIf(d -> d.directory() == null);
    tree.sort(DirectoryListing.SERIAL_ORDER);
    return tree;
  }

  /**
   * Lists data sets: all files below the roots, without the names that Spark ignores, as Spark's own index would find them.
   * What could not be listed is in the result with its error.
   *
   * @return listings in the order of a serial traversal, since Spark takes some decisions by the first file; several for a
   *     huge directory or overlapping roots; null if a root's name cannot be expressed or native
   *     listing fails
   */
  public List<DirectoryListing> listDataset(List<Path> roots) throws IOException {
    List<DirectoryListing> listings = listDatasetAndInexpressible(roots);
    if (listings != null) {
      warnAboutMissing(roots.size() == 1 ? roots.get(0).toString() : roots.size() + " roots", listings);
      listings.removeIf(d -> d.directory() == null);
    }
    return listings;
  }

  /** As {@link #listDataset}, but with directories whose paths Java cannot express, and without a warning about them. */
  public List<DirectoryListing> listDatasetAndInexpressible(List<Path> roots) throws IOException {
    byte[][] names = new byte[roots.size()][];
    for (int i = 0; i < names.length; i++) {
      names[i] = LocalPaths.encode(pathToFile(roots.get(i)));
      if (names[i] == null) {
        return null;
      }
    }
    List<DirectoryListing> listings =
        unlessItFails(() -> walk(names, NativeListing.RECURSIVE | NativeListing.SKIP_HIDDEN));
    if (listings == null) {
      return null;
    }
    listings.sort(DirectoryListing.SERIAL_ORDER);
    return listings;
  }

  /** Logs what a listing lacks that is there. Stock Hadoop leaves the same entries out, without a word. */
  static void warnAboutMissing(String directory, List<DirectoryListing> listings) {
    long inexpressible = listings.stream().mapToLong(DirectoryListing::inexpressible).sum();
    if (inexpressible > 0) {
      LOG.warn("Entries left out under {}: {}, with names that are not valid in this JVM's encoding ({}), so that Java "
          + "cannot open them", directory, inexpressible, System.getProperty("sun.jnu.encoding"));
    }
    long unexamined = listings.stream().mapToLong(DirectoryListing::unexamined).sum();
    if (unexamined > 0) {
      LOG.warn("Entries left out under {}: {}, for which the file system gave errors", directory, unexamined);
    }
  }

  private List<LocatedFileStatus> statuses(List<DirectoryListing> parts) {
    List<LocatedFileStatus> statuses = new ArrayList<>();
    for (DirectoryListing part : parts) {
      long blockSize = getDefaultBlockSize(part.directoryPath());
      for (int i = 0; i < part.count(); i++) {
        statuses.add(status(part, i, blockSize));
      }
    }
    return statuses;
  }

  private static LocatedFileStatus status(DirectoryListing part, int i, long blockSize) {
    return new ListedFileStatus(part.size(i), part.isDirectory(i), blockSize, part.modificationTime(i), part.path(i));
  }

  /** Entries of listings, made as the caller proceeds. */
  private final class ListedEntries implements RemoteIterator<LocatedFileStatus> {
    private final Path top;
    private final List<DirectoryListing> listings;
    private int listing;
    private int entry;

    ListedEntries(Path top, List<DirectoryListing> listings) {
      this.top = top;
      this.listings = listings;
    }

    @Override
    public boolean hasNext() {
      while (listing < listings.size() && entry == listings.get(listing).count()) {
        listings.set(listing, null);
        listing++;
        entry = 0;
      }
      return listing < listings.size();
    }

    @Override
    public LocatedFileStatus next() {
      if (!hasNext()) {
        throw new NoSuchElementException("No more entries in " + top);
      }
      DirectoryListing current = listings.get(listing);
      return status(current, entry++, getDefaultBlockSize(top));
    }
  }

  // What follows changes the tree: what was listed ahead is dropped, before and after, since a listing may run meanwhile.

  /** Native code has changed the tree. */
  public void treeChanged() {
    readAhead.invalidate();
  }

  private <T> T changing(Call<T> change) throws IOException {
    readAhead.invalidate();
    try {
      return change.run();
    } finally {
      readAhead.invalidate();
    }
  }

  private void changing(Action change) throws IOException {
    changing(() -> {
      change.run();
      return null;
    });
  }

  private FSDataOutputStream opening(Call<FSDataOutputStream> open) throws IOException {
    readAhead.invalidateAndPause();
    return open.run();
  }

  @Override
  public FSDataOutputStream create(Path f, FsPermission permission, boolean overwrite, int bufferSize,
      short replication, long blockSize, Progressable progress) throws IOException {
    return opening(() -> super.create(f, permission, overwrite, bufferSize, replication, blockSize, progress));
  }

  @Override
  public FSDataOutputStream create(Path f, FsPermission permission, EnumSet<CreateFlag> flags, int bufferSize,
      short replication, long blockSize, Progressable progress,
      org.apache.hadoop.fs.Options.ChecksumOpt checksumOpt) throws IOException {
    return opening(() -> super.create(f, permission, flags, bufferSize, replication, blockSize, progress, checksumOpt));
  }

  @Override
  public FSDataOutputStream createNonRecursive(Path f, FsPermission permission, EnumSet<CreateFlag> flags,
      int bufferSize, short replication, long blockSize, Progressable progress) throws IOException {
    return opening(() -> super.createNonRecursive(f, permission, flags, bufferSize, replication, blockSize, progress));
  }

  @Override
  public FSDataOutputStream append(Path f, int bufferSize, Progressable progress) throws IOException {
    return opening(() -> super.append(f, bufferSize, progress));
  }

  @Override
  public boolean truncate(Path f, long newLength) throws IOException {
    return changing(() -> super.truncate(f, newLength));
  }

  @Override
  public boolean rename(Path src, Path dst) throws IOException {
    return changing(() -> super.rename(src, dst));
  }

  @Override
  @SuppressWarnings("deprecation")
  protected void rename(Path src, Path dst, org.apache.hadoop.fs.Options.Rename... flags) throws IOException {
    changing(() -> super.rename(src, dst, flags));
  }

  @Override
  public boolean delete(Path f, boolean recursive) throws IOException {
    return changing(() -> super.delete(f, recursive));
  }

  @Override
  public boolean mkdirs(Path f) throws IOException {
    return changing(() -> super.mkdirs(f));
  }

  @Override
  public boolean mkdirs(Path f, FsPermission permission) throws IOException {
    return changing(() -> super.mkdirs(f, permission));
  }

  @Override
  public void setTimes(Path p, long mtime, long atime) throws IOException {
    changing(() -> super.setTimes(p, mtime, atime));
  }

  @Override
  public void setPermission(Path p, FsPermission permission) throws IOException {
    changing(() -> super.setPermission(p, permission));
  }

  @Override
  public void setOwner(Path p, String username, String groupname) throws IOException {
    changing(() -> super.setOwner(p, username, groupname));
  }

  @Override
  public void createSymlink(Path target, Path link, boolean createParent) throws IOException {
    changing(() -> super.createSymlink(target, link, createParent));
  }

  @Override
  public void copyFromLocalFile(boolean delSrc, Path src, Path dst) throws IOException {
    changing(() -> super.copyFromLocalFile(delSrc, src, dst));
  }

  @Override
  public void close() throws IOException {
    readAhead.invalidate();
    super.close();
  }
}
