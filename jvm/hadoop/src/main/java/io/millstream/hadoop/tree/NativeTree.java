package io.millstream.hadoop.tree;

import io.millstream.hadoop.natives.NativeLibrary;
import io.millstream.hadoop.natives.WireReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * A tree of local or mounted files, accessed natively; {@code millstream_transfer::tree} explains how.
 *
 * <p>Paths are bytes, relative to the root; the empty one is the root. Below the root, no symbolic link is ever
 * followed. Owners and groups are numbers. {@link #NONE} means that an owner, group or mode is not set,
 * {@link #NO_TIME} the same for a time.
 *
 * <p>Many threads may use a tree at once, and another may close it meanwhile: running calls end normally, except for
 * copies into the tree, which end early, and later calls fail. An unreachable tree is closed. Objects that it returns,
 * such as a {@link Staged}, are used by one thread at a time and may outlive the tree.
 *
 * <p>Methods throw {@link java.io.FileNotFoundException} if something does not exist,
 * {@link java.nio.file.AccessDeniedException} if the user lacks permission, {@link java.io.InterruptedIOException} if
 * the tree is closed, and another {@link IOException} otherwise.
 */
public final class NativeTree implements AutoCloseable {
    /** Copies preserve extended attributes. */
    public static final int XATTRS = 1;
    /** Copies preserve access control lists. */
    public static final int ACLS = 2;
    /** Copies have holes wherever there are zeros. */
    public static final int SPARSE = 4;

    /** No owner, group or mode. */
    public static final int NONE = -1;
    /** No time. */
    public static final long NO_TIME = Long.MIN_VALUE;

    private static final Cleaner CLEANER = Cleaner.create();

    private final long number;
    private final Cleaner.Cleanable closing;

    /** The kind of an entry; in the native side's order. */
    public enum Kind {
        /** A regular file. */
        FILE,
        /** A directory. */
        DIRECTORY,
        /** A symbolic link. */
        LINK,
        /** A named pipe. */
        PIPE,
        /** A socket. */
        SOCKET,
        /** A character device. */
        CHARACTER_DEVICE,
        /** A block device. */
        BLOCK_DEVICE,
        /** Something that cannot be examined. */
        FAILED
    }

    /**
     * An entry.
     *
     * @param kind its kind
     * @param name its name; empty for a status
     * @param target the target of a link; the error of an entry that cannot be examined; otherwise empty
     * @param size its length in bytes
     * @param mtime when its contents were last modified, in nanoseconds since 1970
     * @param mode the lower twelve bits of its mode
     * @param uid its owner
     * @param gid its group
     * @param isMounted whether something is mounted on it
     * @param device this machine's number for its file system
     * @param inode its inode number
     * @param links its number of hard links
     * @param number the number of a device
     * @param acls checksum of its access control lists; empty if there are none, or if the tree does not preserve them
     * @param xattrs checksum of its other extended attributes; empty if there are none, or if the tree does not
     *     preserve them
     */
    public record Entry(
            Kind kind,
            byte[] name,
            byte[] target,
            long size,
            long mtime,
            int mode,
            int uid,
            int gid,
            boolean isMounted,
            long device,
            long inode,
            long links,
            long number,
            byte[] acls,
            byte[] xattrs) {}

    /** Attributes to set. */
    public record Attributes(int uid, int gid, int mode, long mtime) {
        /** Nothing is set. */
        public static final Attributes NOTHING = new Attributes(NONE, NONE, NONE, NO_TIME);
    }

    /** The result of removing an entry; in the native side's order. */
    public enum Removal {
        /** It was removed. */
        DONE,
        /** It did not exist. */
        GONE,
        /** It is a directory that is not empty. */
        NOT_EMPTY,
        /** It stays, because it is at or below a mount point. */
        MOUNTED
    }

    /** How the source changed while it was copied; in the native side's order. */
    public enum Change {
        /** Not at all: the copy is complete. */
        NONE,
        /** It grew, and the copy is its beginning. */
        GROWN,
        /** It is not the expected version, or was replaced meanwhile. */
        OTHER
    }

    /**
     * The tree below a directory, which need not exist.
     *
     * @param root an absolute path; a symbolic link is followed
     * @param carried sum of {@link #XATTRS}, {@link #ACLS} and {@link #SPARSE}
     * @param bytesPerSecond rate limit of {@link #copy} for all threads together; 0 for no limit
     */
    public NativeTree(byte[] root, int carried, long bytesPerSecond) {
        requireLibrary();
        long opened = open(root, carried, bytesPerSecond);
        number = opened;
        closing = CLEANER.register(this, () -> close(opened));
    }

    private static void requireLibrary() {
        if (!NativeLibrary.isLoaded()) {
            throw new IllegalStateException(
                    "Millstream's native library does not load in this JVM: " + NativeLibrary.whyNot());
        }
    }

    /** The entry at a path; null if there is none. */
    public Entry status(byte[] path) throws IOException {
        byte[] found = status(number, path);
        return found == null ? null : new Entries(found).next();
    }

    /**
     * Lists a directory.
     *
     * @param take receives the entries in batches
     */
    public void list(byte[] path, Consumer<Entries> take) throws IOException {
        long listing = list(number, path);
        try {
            for (byte[] part = nextEntries(listing); part != null; part = nextEntries(listing)) {
                take.accept(new Entries(part));
            }
        } finally {
            closeListing(listing);
        }
    }

    /** Creates a directory and its missing parents. */
    public void makeDirectory(byte[] path) throws IOException {
        makeDirectory(number, path);
    }

    /**
     * Creates a symbolic link, device, pipe or socket, replacing any existing entry except a directory.
     *
     * @param target where a link leads; otherwise empty
     * @param device the number of a device
     * @param temporary its name until it is complete
     * @param from the tree from which extended attributes are copied, if they are preserved; null for none
     * @return which attribute it could not get; null if it has all of them
     */
    public String makeSpecial(
            byte[] path, Kind kind, byte[] target, long device, byte[] temporary, NativeTree from, Attributes wanted)
            throws IOException {
        byte[] lacking = makeSpecial(
                number,
                path,
                kind.ordinal(),
                target,
                device,
                temporary,
                numberOf(from),
                wanted.uid,
                wanted.gid,
                wanted.mode,
                wanted.mtime);
        Reference.reachabilityFence(from);
        return text(lacking);
    }

    private static String text(byte[] message) {
        return message == null ? null : new String(message, StandardCharsets.UTF_8);
    }

    /**
     * Creates a hard link to the entry {@code other}, replacing any existing entry except a directory.
     *
     * @param temporary its name until it is complete
     */
    public void makeHardLink(byte[] path, byte[] other, byte[] temporary) throws IOException {
        makeHardLink(number, path, other, temporary);
    }

    /**
     * Sets those attributes of an entry that differ.
     *
     * @param from the tree from which extended attributes are copied, if they are preserved; null for none
     */
    public void setAttributes(byte[] path, NativeTree from, Attributes wanted) throws IOException {
        setAttributes(number, path, numberOf(from), wanted.uid, wanted.gid, wanted.mode, wanted.mtime);
        Reference.reachabilityFence(from);
    }

    private static long numberOf(NativeTree tree) {
        return tree == null ? 0 : tree.number;
    }

    /** Removes a file, a link, or an empty directory, unless it is in something mounted below the root. */
    public Removal remove(byte[] path) throws IOException {
        return Removal.values()[remove(number, path)];
    }

    /** Removes an entry, if it exists, with all its contents. Mounts in it are not removed, which is an error. */
    public void removeTree(byte[] path) throws IOException {
        removeTree(number, path);
    }

    /** Opens a file for reading. */
    public InputStream open(byte[] path) throws IOException {
        return new FileInput(openFile(number, path));
    }

    /**
     * Creates an empty file in the directory of {@code path}, which gets its name and attributes when it is installed.
     *
     * @param temporary its name until then
     */
    public Staged stage(byte[] path, byte[] temporary, Attributes wanted) throws IOException {
        return new Staged(stage(number, path, temporary, wanted.uid, wanted.gid, wanted.mode, wanted.mtime));
    }

    /**
     * Copies a file from another tree, without any of its data passing through the JVM.
     *
     * @param size the known size of the source
     * @param time the known time of the source, in nanoseconds since 1970
     * @param temporary the name of the copy until it is installed
     * @param verify whether to compare the copy with its source
     */
    public Copy copy(
            NativeTree from, byte[] path, long size, long time, byte[] temporary, Attributes wanted, boolean verify)
            throws IOException {
        long[] out = new long[4];
        long staged = copy(
                number,
                from.number,
                path,
                size,
                time,
                temporary,
                wanted.uid,
                wanted.gid,
                wanted.mode,
                wanted.mtime,
                verify,
                out);
        Reference.reachabilityFence(from);
        String checksum = verify && staged != 0 ? String.format("xxh3-128:%016x%016x", out[2], out[3]) : null;
        return new Copy(staged == 0 ? null : new Staged(staged), out[0], Change.values()[(int) out[1]], checksum);
    }

    /**
     * A staged copy.
     *
     * @param staged null if the source was not the expected version
     * @param bytes its length
     * @param change how the source changed
     * @param checksum of the contents, with its name in front, if it was verified; otherwise null
     */
    public record Copy(Staged staged, long bytes, Change change, String checksum) {}

    /**
     * A native call that uses a tree.
     *
     * @param <T> the type of its result
     */
    @FunctionalInterface
    public interface Use<T> {
        /** Makes the call with the number by which native code knows the tree. */
        T by(long number) throws IOException;
    }

    /** Makes a call and keeps the tree reachable meanwhile. */
    public <T> T using(Use<T> call) throws IOException {
        try {
            return call.by(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The name of a user; its number as text if it has none. */
    public static String userName(int uid) {
        requireLibrary();
        return name(accountName(false, uid), uid);
    }

    /** The name of a group; its number as text if it has none. */
    public static String groupName(int gid) {
        requireLibrary();
        return name(accountName(true, gid), gid);
    }

    private static String name(byte[] name, int id) {
        return name == null ? Integer.toUnsignedString(id) : new String(name, StandardCharsets.UTF_8);
    }

    /** The number of a user, by name or by number. */
    public static int userId(String name) throws IOException {
        requireLibrary();
        return id(accountId(false, name.getBytes(StandardCharsets.UTF_8)), name, "user");
    }

    /** The number of a group, by name or by number. */
    public static int groupId(String name) throws IOException {
        requireLibrary();
        return id(accountId(true, name.getBytes(StandardCharsets.UTF_8)), name, "group");
    }

    private static int id(int id, String name, String what) throws IOException {
        if (id != NONE) {
            return id;
        }
        try {
            return Integer.parseUnsignedInt(name);
        } catch (NumberFormatException e) {
            throw new IOException("there is no " + what + " " + name + " on this machine", e);
        }
    }

    /** Ends running copies into the tree. */
    @Override
    public void close() {
        closing.clean();
    }

    /** Entries of a directory. */
    public static final class Entries {
        private static final Kind[] KINDS = Kind.values();
        private static final byte[] NO_BYTES = {};

        private final WireReader in;
        private final byte[] mount;

        Entries(byte[] bytes) {
            in = new WireReader(bytes);
            mount = in.prefixed();
        }

        /** Path of the mount point at or above the directory; empty if there is none below the root. */
        public byte[] mount() {
            return mount;
        }

        /** The next entry; null at the end. */
        public Entry next() {
            if (!in.hasRemaining()) {
                return null;
            }
            Kind kind = KINDS[in.u8()];
            byte[] name = in.prefixed();
            byte[] target = in.prefixed();
            if (kind == Kind.FAILED) {
                return new Entry(kind, name, target, 0, 0, 0, 0, 0, false, 0, 0, 0, 0, NO_BYTES, NO_BYTES);
            }
            return new Entry(
                    kind,
                    name,
                    target,
                    in.u64(),
                    in.u64(),
                    in.u32(),
                    (int) in.u64(),
                    (int) in.u64(),
                    in.u8() != 0,
                    in.u64(),
                    in.u64(),
                    in.u64(),
                    in.u64(),
                    in.prefixed(),
                    in.prefixed());
        }
    }

    /** A file under a temporary name. Closing removes it unless it has been installed. */
    public static final class Staged extends OutputStream {
        private long handle;
        private long written;

        private Staged(long handle) {
            this.handle = handle;
        }

        @Override
        public void write(int value) throws IOException {
            write(new byte[] {(byte) value});
        }

        @Override
        public void write(byte[] bytes, int start, int length) throws IOException {
            Objects.checkFromIndexSize(start, length, bytes.length);
            NativeTree.write(opened(), written, bytes, start, length);
            written += length;
        }

        /** Reads what has been written, from the beginning. */
        public InputStream read() {
            return new Input() {
                @Override
                int read(long offset, byte[] out, int start, int length) throws IOException {
                    return NativeTree.read(opened(), offset, out, start, length);
                }
            };
        }

        /**
         * The number by which native code knows the file, which must not be installed or closed while native code uses
         * it.
         */
        public long handle() throws IOException {
            return opened();
        }

        /** Sets the time that the file gets when it is installed, in nanoseconds since 1970. */
        public void keepTime(long mtime) throws IOException {
            NativeTree.keepTime(opened(), mtime);
        }

        /**
         * Gives the file its attributes and its name, replacing any existing entry except a directory.
         *
         * @return which attribute it could not get; null if it has all of them
         */
        public String install() throws IOException {
            long installing = opened();
            handle = 0;
            return text(NativeTree.install(installing));
        }

        private long opened() throws IOException {
            if (handle == 0) {
                throw new IOException("the file is closed");
            }
            return handle;
        }

        @Override
        public void close() {
            long discarding = handle;
            handle = 0;
            if (discarding != 0) {
                discard(discarding);
            }
        }
    }

    /** A file that is read from its beginning to its end. */
    private abstract static class Input extends InputStream {
        private long position;

        /** The number of bytes; -1 at the end. */
        abstract int read(long offset, byte[] out, int start, int length) throws IOException;

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] out, int start, int length) throws IOException {
            Objects.checkFromIndexSize(start, length, out.length);
            int read = length == 0 ? 0 : read(position, out, start, length);
            position += Math.max(0, read);
            return read;
        }
    }

    private static final class FileInput extends Input {
        private long handle;

        private FileInput(long handle) {
            this.handle = handle;
        }

        @Override
        int read(long offset, byte[] out, int start, int length) throws IOException {
            if (handle == 0) {
                throw new IOException("the file is closed");
            }
            return readFile(handle, offset, out, start, length);
        }

        @Override
        public void close() {
            long closing = handle;
            handle = 0;
            if (closing != 0) {
                closeFile(closing);
            }
        }
    }

    // Instance methods, so that the tree is not collected and closed while one of them runs.

    private static native long open(byte[] root, int carried, long bytesPerSecond);

    private static native void close(long tree);

    private native byte[] status(long tree, byte[] path) throws IOException;

    private native long list(long tree, byte[] path) throws IOException;

    private static native byte[] nextEntries(long listing) throws IOException;

    private static native void closeListing(long listing);

    private native void makeDirectory(long tree, byte[] path) throws IOException;

    private native byte[] makeSpecial(
            long tree,
            byte[] path,
            int kind,
            byte[] target,
            long device,
            byte[] temporary,
            long from,
            int uid,
            int gid,
            int mode,
            long mtime)
            throws IOException;

    private native void makeHardLink(long tree, byte[] path, byte[] other, byte[] temporary) throws IOException;

    private native void setAttributes(long tree, byte[] path, long from, int uid, int gid, int mode, long mtime)
            throws IOException;

    private native int remove(long tree, byte[] path) throws IOException;

    private native void removeTree(long tree, byte[] path) throws IOException;

    private native long openFile(long tree, byte[] path) throws IOException;

    private static native int readFile(long file, long offset, byte[] out, int start, int length) throws IOException;

    private static native void closeFile(long file);

    private native long stage(long tree, byte[] path, byte[] temporary, int uid, int gid, int mode, long mtime)
            throws IOException;

    private native long copy(
            long tree,
            long from,
            byte[] path,
            long size,
            long time,
            byte[] temporary,
            int uid,
            int gid,
            int mode,
            long mtime,
            boolean verify,
            long[] out)
            throws IOException;

    private static native void write(long staged, long offset, byte[] bytes, int start, int length) throws IOException;

    private static native int read(long staged, long offset, byte[] out, int start, int length) throws IOException;

    private static native void keepTime(long staged, long mtime);

    private static native byte[] install(long staged) throws IOException;

    private static native void discard(long staged);

    private static native byte[] accountName(boolean isGroup, int id);

    private static native int accountId(boolean isGroup, byte[] name);
}
