package io.millstream.hadoop.reading;

import io.millstream.hadoop.codec.TextCodec;
import io.millstream.hadoop.listing.DirectoryListing;
import io.millstream.hadoop.listing.Version;
import io.millstream.hadoop.listing.Versions;
import io.millstream.hadoop.natives.FileNames;
import io.millstream.hadoop.natives.WireReader;
import io.millstream.hadoop.natives.WireWriter;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.io.Serializable;
import java.net.URI;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * Ranges of the files of one file system in one array of bytes. A task gets thousands of ranges; one object for each
 * would inflate the task's message and the driver's memory.
 *
 * <p>Names are kept as the file system's bytes, so they stay correct in a JVM with another locale; decoded, they are
 * the strings of the JVM that packed them.
 *
 * <p>The ranges are encoded for native code ({@link WireWriter}; {@code crates/front/jni/src/ranges.rs}). A directory
 * precedes its files; strings are prefixed:
 *
 * <pre>
 *  u8 'd' path, u8 mayHaveChecksums
 *  u8 'f' name, u64 start, u64 length, u64 size, i64 mtimeMillis, version
 *  u8 'c' as 'f', u8 codec, index
 * </pre>
 *
 * <p>A compressed file ({@code 'c'}, {@link TextCodec}) has an empty index if it is decoded from its first byte to its
 * last; the range is then the whole file. 0x80 added to the codec means that an index is built. 0x40 in place of a
 * codec means a bzip2 file, and the range is any part of it. With an index ({@link NativeIndex#slice}), start and
 * length count decoded bytes.
 */
public final class FileRanges implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final byte DIRECTORY = 'd';
    private static final byte FILE = 'f';
    private static final byte COMPRESSED = 'c';

    private static final int PLAIN = 0;
    /** Added to a codec. */
    private static final int INDEXING = 0x80;

    private static final int BZIP2_PART = 0x40;
    private static final byte[] NO_INDEX = {};

    private final byte[] packed;
    /** Scheme and authority of the file system. */
    private final String fileSystem;
    /** Encoding of file names in the JVM that packed the ranges. */
    private final String encoding;

    private FileRanges(byte[] packed, String fileSystem, String encoding) {
        this.packed = packed;
        this.fileSystem = fileSystem;
        this.encoding = encoding;
    }

    private FileNames naming() {
        return new FileNames(fileSystem, Charset.forName(encoding));
    }

    /** Scheme and authority of the file system that the files are on. */
    public String fileSystem() {
        return fileSystem;
    }

    /** Whether the files are local. */
    public boolean isLocal() {
        return naming().isLocal();
    }

    /** Writes the ranges for {@link #read}. */
    public void write(DataOutput out) throws IOException {
        out.writeUTF(fileSystem);
        out.writeUTF(encoding);
        out.writeInt(packed.length);
        out.write(packed);
    }

    /** Reads ranges that {@link #write} wrote, possibly in another JVM. */
    public static FileRanges read(DataInput in) throws IOException {
        String fileSystem = in.readUTF();
        String encoding = in.readUTF();
        byte[] packed = new byte[in.readInt()];
        in.readFully(packed);
        return new FileRanges(packed, fileSystem, encoding);
    }

    /** The array itself; callers must not change it. */
    public byte[] packed() {
        return packed;
    }

    /** A cursor before the first range. */
    public Cursor cursor() {
        return new Cursor();
    }

    /**
     * A cursor at one range.
     *
     * @param range its index, from 0
     */
    public Cursor at(int range) {
        Cursor cursor = cursor();
        for (int i = 0; i <= range; i++) {
            cursor.next();
        }
        return cursor;
    }

    /** The ranges from index {@code from} up to, but not including, {@code until}. */
    public FileRanges slice(int from, int until) {
        Builder some = new Builder(naming());
        Cursor cursor = cursor();
        for (int i = 0; i < until && cursor.next(); i++) {
            if (i >= from) {
                some.add(cursor);
            }
        }
        return some.build();
    }

    /** Each range by itself. */
    public List<FileRanges> each() {
        List<FileRanges> all = new ArrayList<>();
        for (Cursor cursor = cursor(); cursor.next(); ) {
            Builder one = new Builder(naming());
            one.add(cursor);
            all.add(one.build());
        }
        return all;
    }

    /** The ranges that satisfy a condition. */
    public FileRanges filter(Predicate<Cursor> isWanted) {
        Builder some = new Builder(naming());
        for (Cursor cursor = cursor(); cursor.next(); ) {
            if (isWanted.test(cursor)) {
                some.add(cursor);
            }
        }
        return some.build();
    }

    /** Reads the ranges one after the other. */
    public final class Cursor {
        private final WireReader in = new WireReader(packed);
        private final FileNames naming = naming();
        private byte[] directoryBytes;
        private String directory;
        private String uriPrefix;
        private boolean mayHaveChecksums;
        private byte[] name;
        private long start;
        private long length;
        private long size;
        private long modificationTime;
        /** As {@link Versions} packs it. */
        private byte[] tag;

        private int codec;
        private byte[] index;

        private Cursor() {}

        /**
         * Advances to the next range.
         *
         * @return whether there is one
         */
        public boolean next() {
            while (in.hasRemaining()) {
                int kind = in.u8();
                name = in.prefixed();
                if (kind == FILE || kind == COMPRESSED) {
                    start = in.u64();
                    length = in.u64();
                    size = in.u64();
                    modificationTime = in.u64();
                    tag = in.prefixed();
                    codec = kind == COMPRESSED ? in.u8() : PLAIN;
                    index = kind == COMPRESSED ? in.prefixed() : NO_INDEX;
                    return true;
                }
                directoryBytes = name;
                directory = text(name);
                uriPrefix = naming.uriPrefix(directory);
                mayHaveChecksums = in.u8() != 0;
            }
            return false;
        }

        /** The absolute path of the file. */
        public String file() {
            return directory + "/" + text(name);
        }

        /** The file's name. */
        public String name() {
            return text(name);
        }

        /** Its URI in its file system's spelling. */
        public String uri() {
            return FileNames.childUri(uriPrefix, text(name));
        }

        /** Its path in its file system's spelling. */
        public Path path() {
            return naming.child(uriPrefix, name, 0, name.length);
        }

        /** The range's first byte. */
        public long start() {
            return start;
        }

        /** The range's length in bytes. */
        public long length() {
            return length;
        }

        /** The file's length in bytes when it was listed; -1 if unknown. */
        public long size() {
            return size;
        }

        /** When the file was modified, in milliseconds since 1970. */
        public long modificationTime() {
            return modificationTime;
        }

        /** The listed version, whose size is -1 if it is not known. */
        public Version version() {
            return new Version(size, modificationTime, Versions.unpack(tag));
        }

        /** Whether a status is of the listed version, as far as the file system distinguishes versions. */
        public boolean isStill(FileStatus now) {
            return Version.of(now).isSame(version());
        }

        /** Whether the range is the whole file and is not decoded. */
        public boolean isWhole() {
            return start == 0 && length == size && codec == PLAIN;
        }

        /** The codec with which native code decodes the file; null if the file is not decoded. */
        public TextCodec codec() {
            if (codec == PLAIN) {
                return null;
            }
            return codec == BZIP2_PART ? TextCodec.BZIP2 : TextCodec.values()[(codec & ~INDEXING) - 1];
        }

        /** Whether decoding the file also builds its index. */
        public boolean isIndexing() {
            return (codec & INDEXING) != 0;
        }

        /** Whether the rows come from decoded bytes. */
        public boolean isDecoded() {
            return codec != PLAIN;
        }

        private String text(byte[] bytes) {
            return new String(
                    bytes, FileNames.isAscii(bytes, 0, bytes.length) ? StandardCharsets.ISO_8859_1 : naming.charset());
        }
    }

    /** Packs ranges. */
    public static final class Builder {
        private final WireWriter out = new WireWriter();
        private final FileNames naming;
        private byte[] directory;
        private boolean directoryMayHaveChecksums;
        private int count;

        /** Packs ranges of local files, with names in this JVM's encoding. */
        public Builder() {
            this(FileNames.LOCAL);
        }

        /** Packs ranges of the files of another file system. */
        public Builder(URI fileSystem) {
            this(fileSystem.getScheme().equals("file") ? FileNames.LOCAL : FileNames.of(fileSystem));
        }

        private Builder(FileNames naming) {
            this.naming = naming;
        }

        /**
         * Adds a range of a file that was listed.
         *
         * @param mayHaveChecksums whether the listing found checksum files next to it
         */
        public void add(DirectoryListing listing, int entry, boolean mayHaveChecksums, long start, long length) {
            add(
                    listing.directoryBytes(),
                    mayHaveChecksums,
                    listing.nameBytes(entry),
                    start,
                    length,
                    listing.size(entry),
                    listing.modificationTime(entry),
                    listing.version(entry),
                    PLAIN,
                    NO_INDEX);
        }

        /** Adds a whole compressed file that was listed, which is decoded from its first byte to its last. */
        public void addCompressed(DirectoryListing listing, int entry, boolean mayHaveChecksums, TextCodec codec) {
            add(
                    listing.directoryBytes(),
                    mayHaveChecksums,
                    listing.nameBytes(entry),
                    0,
                    listing.size(entry),
                    listing.size(entry),
                    listing.modificationTime(entry),
                    listing.version(entry),
                    codec.code(),
                    NO_INDEX);
        }

        /**
         * Adds a whole compressed file at an absolute path; decoding it also builds its index
         * ({@link TextCodec#hasIndex}).
         */
        public void addIndexing(String path, Version version, TextCodec codec) {
            add(path, 0, version.size(), version, codec.code() + INDEXING, NO_INDEX);
        }

        /**
         * Adds a part of a bzip2 file at an absolute path: the lines of the blocks that begin in it.
         *
         * @param start the first byte of the file
         * @param length the number of bytes of the file
         */
        public void addBzip2Part(String path, long start, long length, Version version) {
            add(path, start, length, version, BZIP2_PART, NO_INDEX);
        }

        /**
         * Adds decoded bytes of a compressed file at an absolute path.
         *
         * @param start the first of the decoded bytes
         * @param length the number of decoded bytes; of the file's bytes if there is no index
         * @param index the result of {@link NativeIndex#slice} for the decoded bytes; empty if the whole file is
         *     decoded
         */
        public void addCompressed(
                String path, long start, long length, Version version, TextCodec codec, byte[] index) {
            add(path, start, length, version, codec.code(), index);
        }

        /**
         * Adds a range of the file at an absolute path, which may have checksums; its size and modification time are
         * unknown.
         */
        public void add(String path, long start, long length) {
            add(path, start, length, new Version(-1, 0, null));
        }

        /** Adds a range of the file at an absolute path, which may have checksums. */
        public void add(String path, long start, long length, Version version) {
            add(path, start, length, version, PLAIN, NO_INDEX);
        }

        private void add(String path, long start, long length, Version version, int codec, byte[] index) {
            int slash = path.lastIndexOf('/');
            add(
                    naming.bytes(path.substring(0, slash)),
                    naming.isLocal(),
                    naming.bytes(path.substring(slash + 1)),
                    start,
                    length,
                    version.size(),
                    version.modificationTime(),
                    Versions.pack(version.tag()),
                    codec,
                    index);
        }

        private void add(Cursor range) {
            add(
                    range.directoryBytes,
                    range.mayHaveChecksums,
                    range.name,
                    range.start,
                    range.length,
                    range.size,
                    range.modificationTime,
                    range.tag,
                    range.codec,
                    range.index);
        }

        private void add(
                byte[] parent,
                boolean mayHaveChecksums,
                byte[] name,
                long start,
                long length,
                long size,
                long time,
                byte[] tag,
                int codec,
                byte[] index) {
            if (mayHaveChecksums != directoryMayHaveChecksums || !Arrays.equals(parent, directory)) {
                out.u8(DIRECTORY).prefixed(parent).u8(mayHaveChecksums ? 1 : 0);
                directory = parent;
                directoryMayHaveChecksums = mayHaveChecksums;
            }
            out.u8(codec == PLAIN ? FILE : COMPRESSED)
                    .prefixed(name)
                    .u64(start)
                    .u64(length)
                    .u64(size)
                    .u64(time)
                    .prefixed(tag);
            if (codec != PLAIN) {
                out.u8(codec).prefixed(index);
            }
            count++;
        }

        /** Number of ranges added so far. */
        public int count() {
            return count;
        }

        /** The ranges added so far. */
        public FileRanges build() {
            return new FileRanges(
                    out.toByteArray(), naming.fileSystem(), naming.charset().name());
        }
    }
}
