package io.millstream.hadoop.listing;

import io.millstream.hadoop.natives.FileNames;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.Path;

/**
 * The entries of one directory (or of a part of a huge one) in columns: about 20 bytes plus the name for each entry,
 * and on some file systems its version and block locations. Paths and statuses are created on request.
 *
 * <p>Local entries whose names Java cannot express ({@link FileNames}) are left out: Java could not open them, and
 * Hadoop's local file system leaves them out, too.
 */
public final class DirectoryListing {
    static final int FLAG_MORE = 1;
    static final int FLAG_NOT_DIRECTORY = 2;
    static final int FLAG_CHECKSUMS = 4;

    /** A directory precedes its descendants; siblings are in the order in which their parent lists them. */
    public static final Comparator<DirectoryListing> SERIAL_ORDER =
            (a, b) -> Arrays.compareUnsigned(a.position, b.position);

    private static final int HEADER_BYTES = 36;
    private static final byte[] NOTHING = {};
    private static final int ENOENT = 2;

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
    private final FileNames naming;
    /** Null if the file system knows no versions. */
    private final byte[][] versions;
    /** Null if the file system does not report block locations. */
    private final BlockHosts blocks;

    /** Files of a file system other than the local one; Java can express all their names. */
    private DirectoryListing(Builder files) {
        root = files.root;
        flags = files.isFile ? FLAG_NOT_DIRECTORY : 0;
        errno = files.errno;
        unexamined = 0;
        listedAtMillis = (int) (System.nanoTime() / 1_000_000);
        inexpressible = 0;
        position = ByteBuffer.allocate(Integer.BYTES).putInt(root).array();
        directory = files.directory;
        directoryBytes = directory.length() == 1 ? NOTHING : files.naming.bytes(directory);
        naming = files.naming;
        uriPrefix = naming.uriPrefix(directory);
        sizes = Arrays.copyOf(files.sizes, files.count);
        modificationTimes = Arrays.copyOf(files.modificationTimes, files.count);
        directories = new BitSet();
        nameEnds = Arrays.copyOf(files.nameEnds, files.count);
        names = files.names.toByteArray();
        versions = files.versions == null ? null : Arrays.copyOf(files.versions, files.count);
        blocks = files.blocks;
    }

    private DirectoryListing(ByteBuffer in) {
        naming = FileNames.LOCAL;
        versions = null;
        blocks = null;
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

        directory = naming.decode(path, 0, path.length);
        directoryBytes = path.length == 1 ? NOTHING : path;
        uriPrefix = directory == null ? null : naming.uriPrefix(directory);
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
        if (FileNames.isAscii(names, 0, names.length)) {
            return null;
        }
        int[] kept = new int[ends.length];
        int count = 0;
        for (int i = 0; i < ends.length; i++) {
            int start = i == 0 ? 0 : ends[i - 1];
            if (FileNames.LOCAL.decode(names, start, ends[i]) != null) {
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
     * Whether this represents a root that is a file: its only entry is that file, and {@link #directory} is the parent.
     */
    public boolean isFile() {
        return (flags & FLAG_NOT_DIRECTORY) != 0;
    }

    /** Whether this is a root, and not a directory below one. */
    public boolean isRoot() {
        return position.length == Integer.BYTES;
    }

    /** Whether the directory may contain checksum files. For a root that is a file this is not examined. */
    public boolean mayHaveChecksums() {
        return naming.isLocal() && (isFile() || (flags & FLAG_CHECKSUMS) != 0);
    }

    /** Whether another part of the same directory follows. */
    boolean hasMore() {
        return (flags & FLAG_MORE) != 0;
    }

    /** Whether the directory does not exist; then it has no entries. */
    public boolean isMissing() {
        return errno == ENOENT;
    }

    /** 0, or the error that kept the directory from being listed. */
    public int errno() {
        return errno;
    }

    /** Number of existing entries that are missing here because the storage did not return their status. */
    public int unexamined() {
        return unexamined;
    }

    /**
     * Number of entries (at least 1 for a whole directory) that are missing here because Java cannot express their
     * names.
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
        return naming.decode(names, nameStart(i), nameEnds[i]);
    }

    /** The bytes of an entry's name. */
    public byte[] nameBytes(int i) {
        return Arrays.copyOfRange(names, nameStart(i), nameEnds[i]);
    }

    /** The directory's path, without a slash at its end. */
    public byte[] directoryBytes() {
        return directoryBytes;
    }

    /** Whether an entry's name begins with an underscore. */
    public boolean hasUnderscore(int i) {
        return names[nameStart(i)] == '_';
    }

    /** The version of a file, as {@link Versions} packs it; empty if the file system knows none. */
    public byte[] version(int i) {
        return versions == null ? NOTHING : versions[i];
    }

    /** The block locations of a file; null if the file system does not report them. */
    public BlockLocation[] blockLocations(int i) {
        return blocks == null ? null : blocks.locations(i, sizes[i]);
    }

    /** Whether the file system reports block locations. */
    public boolean knowsHosts() {
        return blocks != null;
    }

    /** An entry's path, equal to the one that its file system returns. */
    public Path path(int i) {
        return naming.child(uriPrefix, names, nameStart(i), nameEnds[i]);
    }

    /** The directory's path, equal to the one that its file system returns. */
    public Path directoryPath() {
        return naming.directory(uriPrefix);
    }

    private int nameStart(int i) {
        return i == 0 ? 0 : nameEnds[i - 1];
    }

    /** Collects the files of one directory of a file system other than the local one. */
    public static final class Builder {
        private static final int FIRST_CAPACITY = 16;

        private final FileNames naming;
        private final String directory;
        private final int root;
        private boolean isFile;
        private int errno;
        private int count;
        private long[] sizes = new long[FIRST_CAPACITY];
        private long[] modificationTimes = new long[FIRST_CAPACITY];
        private int[] nameEnds = new int[FIRST_CAPACITY];
        private final ByteArrayOutputStream names = new ByteArrayOutputStream();
        private byte[][] versions;
        private BlockHosts blocks;

        /**
         * A directory without files.
         *
         * @param fileSystem the URI of the file system
         * @param directory its absolute path
         * @param root the index of the root that it is, or is below
         */
        public Builder(URI fileSystem, String directory, int root) {
            this.naming = FileNames.of(fileSystem);
            this.directory = directory;
            this.root = root;
        }

        /** The directory is the parent of a root that is a file; returns this. */
        public Builder ofFile() {
            isFile = true;
            return this;
        }

        /** The directory is a root that does not exist; returns this. */
        public Builder missing() {
            errno = ENOENT;
            return this;
        }

        /**
         * Adds a file.
         *
         * @param version as {@link Versions} packs it; null if the file system knows none
         */
        public void add(String name, long size, long modificationTime, byte[] version) {
            if (count == sizes.length) {
                int capacity = count + (count >> 1);
                sizes = Arrays.copyOf(sizes, capacity);
                modificationTimes = Arrays.copyOf(modificationTimes, capacity);
                nameEnds = Arrays.copyOf(nameEnds, capacity);
                versions = versions == null ? null : Arrays.copyOf(versions, capacity);
            }
            sizes[count] = size;
            modificationTimes[count] = modificationTime;
            names.writeBytes(naming.bytes(name));
            nameEnds[count] = names.size();
            if (version != null) {
                versions = versions == null ? new byte[sizes.length][] : versions;
                versions[count] = version;
            }
            count++;
        }

        /** Adds a file with its blocks. */
        public void add(String name, long size, long modificationTime, BlockLocation[] located) throws IOException {
            add(name, size, modificationTime, (byte[]) null);
            blocks = blocks == null ? new BlockHosts() : blocks;
            blocks.add(located);
        }

        /** The listing. */
        public DirectoryListing build() {
            return new DirectoryListing(this);
        }
    }
}
