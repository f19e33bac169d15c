package io.millstream.hadoop;

import io.millstream.hadoop.fs.FileSystemInitializers;
import io.millstream.hadoop.fs.FileSystemService;
import io.millstream.hadoop.fs.PlainInputStream;
import io.millstream.hadoop.fs.RawLocalFiles;
import io.millstream.hadoop.listing.DirectoryListing;
import io.millstream.hadoop.listing.DirectoryWalk;
import io.millstream.hadoop.listing.ListedFileStatus;
import io.millstream.hadoop.listing.ListingOptions;
import io.millstream.hadoop.listing.NativeListing;
import io.millstream.hadoop.listing.SiblingReadAhead;
import io.millstream.hadoop.natives.LocalPaths;
import io.millstream.hadoop.natives.NativeLibrary;
import io.millstream.hadoop.reading.FileRanges;
import io.millstream.hadoop.reading.FileReadAhead;
import io.millstream.hadoop.reading.ListedFileSystem;
import io.millstream.hadoop.reading.RemoteFiles;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.NoSuchElementException;
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
 * <p>Hadoop uses it for {@code file:} wherever the jar is on the class path ({@link FileSystemService}).
 * {@code listStatus} lists one directory natively, and so do the methods built on it: {@code listLocatedStatus},
 * {@code listStatusIterator}, {@code globStatus}. {@code listFiles} recurses natively. A directory that cannot be
 * listed, a root that is a file and a loop of links are left to the superclass, whose answers and exceptions are the
 * contract.
 */
public class MillstreamLocalFileSystem extends LocalFileSystem implements ListedFileSystem {
    private static final Logger LOG = LoggerFactory.getLogger(MillstreamLocalFileSystem.class);
    private static final int ENOENT = 2;
    private static final AtomicBoolean WARNED_OF_FAILURE = new AtomicBoolean();

    /**
     * Paths with at least this many names are left to the superclass. They may lead through more links than the kernel
     * follows in one path (40): native code, which opens one handle from the other, would then list entries that Java
     * cannot open.
     */
    private static final int DEEP_NAMES = 24;

    /** A call that lists or changes the tree. */
    private interface Call<T> {
        T run() throws IOException;
    }

    /** A change of the tree without a result. */
    private interface Action {
        void run() throws IOException;
    }

    /** Initialized when Hadoop looks for file systems. */
    private static final boolean STANDS_IN_FOR_HIVES = FileSystemService.replaceHives(MillstreamLocalFileSystem.class);

    private final DirectoryWalk.Starter walks;
    private ListingOptions options;
    private SiblingReadAhead readAhead;

    /** For Hadoop, which then calls {@link #initialize}. */
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
        FileSystemInitializers.start();
    }

    private void setOptions(Configuration conf) {
        options = new ListingOptions(conf);
        readAhead = new SiblingReadAhead(options, walks);
    }

    /** Whether directories are listed natively: native listing is enabled and the native library is loaded. */
    @Override
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
     * Opens a file. If its bytes are in memory already ({@link FileReadAhead}), no system call is made. If it has no
     * checksum file, which is the normal case, the verifying reader is bypassed: that reader requests the file's status
     * twice, with five system calls each.
     */
    @Override
    public FSDataInputStream open(Path f, int bufferSize) throws IOException {
        FSDataInputStream ahead = FileReadAhead.stream(this, f);
        if (ahead != null) {
            return ahead;
        }
        boolean plain = options.enabled() && !pathToFile(getChecksumFile(f)).exists();
        return plain ? new PlainInputStream(getRawFileSystem().open(f, bufferSize)) : super.open(f, bufferSize);
    }

    /** {@inheritDoc} If a file's bytes are already in memory, the status comes from the listing, so that both match. */
    @Override
    public FileStatus getFileStatus(Path f) throws IOException {
        FileStatus ahead = FileReadAhead.status(
                this,
                f,
                file -> new ListedFileStatus(
                        file.size(), false, getDefaultBlockSize(f), file.modificationTime(), file.path()));
        return ahead == null ? super.getFileStatus(f) : ahead;
    }

    private List<DirectoryListing> walk(byte[][] roots, int flags) throws IOException {
        List<DirectoryListing> listings = new ArrayList<>();
        walks.start(roots, flags, options.threads).forEach(listings::add);
        return listings;
    }

    /** The call's result, or null if native code fails because it cannot start a thread or by an internal error. */
    private static List<DirectoryListing> nullIfItFails(Call<List<DirectoryListing>> listing) throws IOException {
        try {
            return listing.run();
        } catch (IllegalStateException | LinkageError e) {
            if (WARNED_OF_FAILURE.compareAndSet(false, true)) {
                LOG.warn(
                        "Native listing failed, so directories were listed by Hadoop, at its usual speed; results are the same. "
                                + "Further failures are not logged. Cause: {}",
                        e.toString());
            }
            return null;
        }
    }

    /** Lists one directory; null if the superclass must answer. */
    private List<DirectoryListing> list(File directory) throws IOException {
        byte[] root = LocalPaths.encode(directory);
        if (root == null || directory.toPath().getNameCount() >= DEEP_NAMES) {
            return null;
        }
        List<DirectoryListing> parts = nullIfItFails(() -> {
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

    /** Lists all directories of a tree, in serial order; null if the superclass must answer. */
    private List<DirectoryListing> listTree(File directory) throws IOException {
        byte[] root = LocalPaths.encode(directory);
        if (root == null) {
            return null;
        }
        List<DirectoryListing> tree = nullIfItFails(() -> walk(new byte[][] {root}, NativeListing.RECURSIVE));
        String top = directory.getPath();
        if (tree == null
                || tree.stream()
                        .anyMatch(d ->
                                d.isFile() || d.errno() != 0 && (d.errno() != ENOENT || top.equals(d.directory())))) {
            return null;
        }
        warnAboutMissing(top, tree);
        tree.removeIf(d -> d.directory() == null);
        tree.sort(DirectoryListing.SERIAL_ORDER);
        return tree;
    }

    /**
     * {@inheritDoc} The order is that of a serial traversal, since some of Spark's decisions depend on the first file.
     * Null if a root's name cannot be expressed or native listing fails.
     */
    @Override
    public List<DirectoryListing> listDataset(List<Path> roots) throws IOException {
        List<DirectoryListing> listings = listDatasetAndInexpressible(roots);
        if (listings != null) {
            warnAboutMissing(roots.size() == 1 ? roots.get(0).toString() : roots.size() + " roots", listings);
            listings.removeIf(d -> d.directory() == null);
        }
        return listings;
    }

    @Override
    public String transport() {
        return "native";
    }

    /** Native code reads local files itself. */
    @Override
    public RemoteFiles files(FileRanges ranges) {
        return null;
    }

    /**
     * Like {@link #listDataset}, but includes directories whose paths Java cannot express, and logs no warning about
     * them.
     */
    public List<DirectoryListing> listDatasetAndInexpressible(List<Path> roots) throws IOException {
        byte[][] names = new byte[roots.size()][];
        for (int i = 0; i < names.length; i++) {
            names[i] = LocalPaths.encode(pathToFile(roots.get(i)));
            if (names[i] == null) {
                return null;
            }
        }
        List<DirectoryListing> listings =
                nullIfItFails(() -> walk(names, NativeListing.RECURSIVE | NativeListing.SKIP_HIDDEN));
        if (listings == null) {
            return null;
        }
        listings.sort(DirectoryListing.SERIAL_ORDER);
        return listings;
    }

    /** Logs the number of existing entries that a listing lacks. Stock Hadoop leaves out the same entries silently. */
    static void warnAboutMissing(String directory, List<DirectoryListing> listings) {
        long inexpressible =
                listings.stream().mapToLong(DirectoryListing::inexpressible).sum();
        if (inexpressible > 0) {
            LOG.warn(
                    "Entries skipped under {}: {}; their names are not valid in this JVM's encoding ({}), so Java cannot "
                            + "open them",
                    directory,
                    inexpressible,
                    System.getProperty("sun.jnu.encoding"));
        }
        long unexamined =
                listings.stream().mapToLong(DirectoryListing::unexamined).sum();
        if (unexamined > 0) {
            LOG.warn("Entries skipped under {}: {}; the file system returned errors for them", directory, unexamined);
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
        return new ListedFileStatus(
                part.size(i), part.isDirectory(i), blockSize, part.modificationTime(i), part.path(i));
    }

    /** Entries of listings, created as the caller proceeds. */
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

    // The methods below change the tree. Listings read ahead are dropped before and after, since a walk may run
    // meanwhile.

    /** To be called after native code has changed the tree. */
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
    public FSDataOutputStream create(
            Path f,
            FsPermission permission,
            boolean overwrite,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress)
            throws IOException {
        return opening(() -> super.create(f, permission, overwrite, bufferSize, replication, blockSize, progress));
    }

    @Override
    public FSDataOutputStream create(
            Path f,
            FsPermission permission,
            EnumSet<CreateFlag> flags,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress,
            org.apache.hadoop.fs.Options.ChecksumOpt checksumOpt)
            throws IOException {
        return opening(
                () -> super.create(f, permission, flags, bufferSize, replication, blockSize, progress, checksumOpt));
    }

    @Override
    public FSDataOutputStream createNonRecursive(
            Path f,
            FsPermission permission,
            EnumSet<CreateFlag> flags,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress)
            throws IOException {
        return opening(
                () -> super.createNonRecursive(f, permission, flags, bufferSize, replication, blockSize, progress));
    }

    @Override
    @SuppressWarnings("deprecation")
    public FSDataOutputStream createNonRecursive(
            Path f,
            FsPermission permission,
            boolean overwrite,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress)
            throws IOException {
        return opening(
                () -> super.createNonRecursive(f, permission, overwrite, bufferSize, replication, blockSize, progress));
    }

    @Override
    public FSDataOutputStream append(Path f, int bufferSize, Progressable progress) throws IOException {
        return opening(() -> super.append(f, bufferSize, progress));
    }

    @Override
    public boolean truncate(Path f, long newLength) throws IOException {
        return changing(() -> super.truncate(f, newLength));
    }

    /** {@inheritDoc} Hive's class, where it would be used, does not replace a file; Hadoop's does. */
    @Override
    public boolean rename(Path src, Path dst) throws IOException {
        return changing(() -> !(STANDS_IN_FOR_HIVES && isOtherThanDirectory(dst)) && super.rename(src, dst));
    }

    private boolean isOtherThanDirectory(Path path) {
        File file = pathToFile(path);
        return file.exists() && !file.isDirectory();
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
