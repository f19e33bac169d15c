package io.millstream.write.protocol;

import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.SwapDirectories;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import java.util.zip.CheckedOutputStream;

/**
 * The content of a job's {@code commit} entry: everything that any process needs to finish the commit, or
 * {@link #ABORTED}. It consists of length-prefixed strings and stores each directory once; a checksum at the end
 * reveals damage.
 *
 * @param number of the commit lock that the job holds
 * @param begunMillis when the begin entry was written, by the store's clock; where a rename copies files, the copy has
 *     another time
 * @param root the table's directory when the job was committed; it may have been renamed since
 * @param owner the process that runs the job
 * @param below the directory that contains all files of the job; "" if unknown
 * @param kind the job's effect on the table
 * @param targets directories whose files the job replaces, including all below them
 * @param hollow directories below the targets that had no files; they are removed, as by stock Spark's overwrite
 * @param exchanges for an exchange, the destination directory of each directory that gets files; otherwise empty
 */
public record CommitRecord(
        long number,
        long begunMillis,
        String root,
        String owner,
        String below,
        Journal.Kind kind,
        List<String> targets,
        List<StagedFile> added,
        List<OldFile> deleted,
        List<String> overwritten,
        List<String> hollow,
        MetastoreChange change,
        Map<String, String> exchanges) {
    /** States that a job is not committed and never will be. */
    public static final byte[] ABORTED = "millstream direct write: aborted\n".getBytes(StandardCharsets.UTF_8);

    private static final byte[] MAGIC = "millstream direct write: commit 5\n".getBytes(StandardCharsets.UTF_8);
    private static final int SUM_BYTES = 8;
    private static final int BYTES_A_FILE = 256;
    private static final long LARGEST_GUESS = 1 << 30;

    public boolean isExchange() {
        return !exchanges.isEmpty();
    }

    public boolean isSwap() {
        return change != null && change.isSwap();
    }

    /** Whether replaced files stay after the commit, for queries that found them before. */
    public boolean hasReplaced() {
        return isSwap() && (!deleted.isEmpty() || change.emptyDirectory() != null);
    }

    /** The job's effect on readers that listed the table meanwhile. */
    Journal.Kind kindOf(Ending ending) {
        return ending.outcome() == Ending.Outcome.REVOKED ? Journal.Kind.OVER : kind;
    }

    /** The destination directory of a new file. */
    String destination(StagedFile file) {
        return exchanges.getOrDefault(file.directory(), file.directory());
    }

    /**
     * The record for a table that has been renamed since. Where a rename copies files, they have new modification
     * times.
     *
     * @param found the files that are now in the directories of the old files
     */
    CommitRecord moved(List<OldFile> found) {
        Map<String, OldFile> now = new HashMap<>();
        found.forEach(file -> now.put(file.toString(), file));
        List<OldFile> present = deleted.stream()
                .map(file -> {
                    OldFile there = now.get(file.toString());
                    return there != null && there.bytes() == file.bytes() ? there : file;
                })
                .toList();
        return new CommitRecord(
                number,
                begunMillis,
                root,
                owner,
                below,
                kind,
                targets,
                added,
                present,
                overwritten,
                hollow,
                change,
                exchanges);
    }

    /** The record without any change in some directories. */
    CommitRecord without(Set<String> directories) {
        if (directories.isEmpty()) {
            return this;
        }
        // A partition may be in the directory of an earlier swap, while its new files are in another.
        Set<String> partitions =
                directories.stream().map(SwapDirectories::partition).collect(Collectors.toSet());
        Map<String, String> kept = new HashMap<>(exchanges);
        kept.values().removeIf(directory -> partitions.contains(SwapDirectories.partition(directory)));
        return new CommitRecord(
                number,
                begunMillis,
                root,
                owner,
                below,
                kind,
                targets,
                added.stream()
                        .filter(file -> !partitions.contains(SwapDirectories.partition(destination(file))))
                        .toList(),
                deleted.stream()
                        .filter(file -> !partitions.contains(SwapDirectories.partition(file.directory())))
                        .toList(),
                overwritten,
                hollow.stream()
                        .filter(directory -> directories.stream().noneMatch(other -> isIn(directory, other)))
                        .toList(),
                change == null ? null : change.without(partitions),
                kept);
    }

    /** Whether a directory equals another or is below it. */
    static boolean isIn(String directory, String other) {
        return other.isEmpty() || directory.equals(other) || directory.startsWith(other + "/");
    }

    public byte[] toBytes() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(
                (int) Math.min(LARGEST_GUESS, BYTES_A_FILE * (4L + added.size() + deleted.size())));
        CheckedOutputStream checked = new CheckedOutputStream(bytes, new CRC32());
        try (DataOutputStream out = new DataOutputStream(checked)) {
            out.write(MAGIC);
            Map<String, Integer> directories = new LinkedHashMap<>();
            added.forEach(f -> directories.putIfAbsent(f.directory(), directories.size()));
            deleted.forEach(f -> directories.putIfAbsent(f.directory(), directories.size()));
            out.writeLong(number);
            out.writeLong(begunMillis);
            string(out, root);
            string(out, owner);
            string(out, below);
            string(out, kind.name());
            strings(out, targets);
            strings(out, directories.keySet());
            strings(out, overwritten);
            strings(out, hollow);
            map(out, exchanges);
            out.writeInt(added.size());
            for (StagedFile file : added) {
                out.writeInt(directories.get(file.directory()));
                string(out, file.name());
                out.writeLong(file.bytes());
                string(out, file.stagedAs());
                out.writeBoolean(file.isUpload());
                if (file.isUpload()) {
                    strings(out, file.parts());
                }
            }
            out.writeInt(deleted.size());
            for (OldFile file : deleted) {
                out.writeInt(directories.get(file.directory()));
                string(out, file.name());
                out.writeLong(file.bytes());
                out.writeLong(file.modifiedMillis());
            }
            out.writeBoolean(change != null);
            if (change != null) {
                write(out, change);
            }
            out.writeLong(checked.getChecksum().getValue());
        } catch (IOException e) {
            throw new AssertionError("an array cannot be written to", e);
        }
        return bytes.toByteArray();
    }

    public static boolean isAborted(byte[] content) {
        return Arrays.equals(content, ABORTED);
    }

    /**
     * Reads a record. Any user with write access to the table may have written it, so it must not name anything outside
     * the table, except for directories of partitions elsewhere that a swap replaces.
     *
     * @throws IOException if it is damaged or names a forbidden path
     */
    public static CommitRecord of(byte[] content) throws IOException {
        try {
            CommitRecord record = parsed(content);
            record.checkNames();
            return record;
        } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
            throw new IOException("the commit record is damaged: " + e.getMessage(), e);
        }
    }

    private void checkNames() {
        added.forEach(file -> {
            checkDirectory(file.directory(), false);
            checkName(file.name());
            if (!file.isUpload()) {
                checkName(file.stagedAs());
            }
        });
        deleted.forEach(file -> {
            checkDirectory(file.directory(), isSwap());
            checkName(file.name());
        });
        targets.forEach(directory -> checkDirectory(directory, isSwap()));
        overwritten.forEach(directory -> checkDirectory(directory, isSwap()));
        hollow.forEach(directory -> checkDirectory(directory, isSwap()));
        exchanges.forEach((made, destination) -> {
            checkDirectory(made, false);
            checkDirectory(destination, false);
        });
        checkDirectory(below, false);
    }

    private static void checkName(String name) {
        if (name.isEmpty() || name.equals("..") || name.equals(".") || name.contains("/")) {
            throw new IllegalArgumentException("not the name of a file: " + name);
        }
    }

    private static void checkDirectory(String directory, boolean mayBeElsewhere) {
        boolean isElsewhere = directory.startsWith("/");
        if (isElsewhere && !mayBeElsewhere || List.of(directory.split("/", -1)).contains("..")) {
            throw new IllegalArgumentException("not a directory of the table: " + directory);
        }
    }

    private static CommitRecord parsed(byte[] content) throws IOException {
        int end = content.length - SUM_BYTES;
        if (end < MAGIC.length || !Arrays.equals(content, 0, MAGIC.length, MAGIC, 0, MAGIC.length)) {
            throw new IOException("not a commit record that this version of Millstream can read");
        }
        if (ByteBuffer.wrap(content, end, SUM_BYTES).getLong() != sum(content, end)) {
            throw new IOException("the commit record is damaged");
        }
        DataInputStream in =
                new DataInputStream(new ByteArrayInputStream(content, MAGIC.length, content.length - MAGIC.length));
        long number = in.readLong();
        long begunMillis = in.readLong();
        String root = string(in);
        String owner = string(in);
        String below = string(in);
        Journal.Kind kind = Journal.Kind.valueOf(string(in));
        List<String> targets = strings(in);
        List<String> directories = strings(in);
        List<String> overwritten = strings(in);
        List<String> hollow = strings(in);
        Map<String, String> exchanges = map(in);
        List<StagedFile> added = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            String directory = directories.get(in.readInt());
            String name = string(in);
            long bytes = in.readLong();
            String stagedAs = string(in);
            added.add(
                    in.readBoolean()
                            ? StagedFile.upload(directory, name, bytes, stagedAs, strings(in))
                            : StagedFile.hidden(directory, name, bytes, stagedAs));
        }
        List<OldFile> deleted = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            deleted.add(new OldFile(directories.get(in.readInt()), string(in), in.readLong(), in.readLong()));
        }
        return new CommitRecord(
                number,
                begunMillis,
                root,
                owner,
                below,
                kind,
                targets,
                added,
                deleted,
                overwritten,
                hollow,
                in.readBoolean() ? change(in) : null,
                exchanges);
    }

    private static long sum(byte[] bytes, int length) {
        CRC32 crc = new CRC32();
        crc.update(bytes, 0, length);
        return crc.getValue();
    }

    private static void write(DataOutputStream out, MetastoreChange change) throws IOException {
        string(out, change.database());
        string(out, change.table());
        out.writeInt(change.partitions().size());
        for (MetastoreChange.Partition partition : change.partitions()) {
            string(out, partition.name());
            optional(out, partition.location());
            map(out, partition.parameters());
        }
        strings(out, change.droppedPartitions());
        map(out, change.tableParameters());
        strings(out, change.removedParameters());
        out.writeBoolean(change.isSwap());
        optional(out, change.emptyDirectory());
        optional(out, change.tableLocation());
        optional(out, change.tableId());
    }

    private static MetastoreChange change(DataInputStream in) throws IOException {
        String database = string(in);
        String table = string(in);
        List<MetastoreChange.Partition> partitions = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            String name = string(in);
            partitions.add(new MetastoreChange.Partition(name, optional(in), map(in)));
        }
        return new MetastoreChange(
                database,
                table,
                partitions,
                strings(in),
                map(in),
                Set.copyOf(strings(in)),
                in.readBoolean(),
                optional(in),
                optional(in),
                optional(in));
    }

    private static void optional(DataOutputStream out, String string) throws IOException {
        strings(out, string == null ? List.of() : List.of(string));
    }

    private static String optional(DataInputStream in) throws IOException {
        List<String> one = strings(in);
        return one.isEmpty() ? null : one.get(0);
    }

    private static void map(DataOutputStream out, Map<String, String> map) throws IOException {
        strings(out, map.keySet());
        strings(out, map.values());
    }

    private static Map<String, String> map(DataInputStream in) throws IOException {
        List<String> keys = strings(in);
        List<String> values = strings(in);
        Map<String, String> map = new HashMap<>();
        for (int i = 0; i < keys.size(); i++) {
            map.put(keys.get(i), values.get(i));
        }
        return map;
    }

    static void strings(DataOutputStream out, Collection<String> strings) throws IOException {
        out.writeInt(strings.size());
        for (String string : strings) {
            string(out, string);
        }
    }

    static List<String> strings(DataInputStream in) throws IOException {
        List<String> strings = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            strings.add(string(in));
        }
        return strings;
    }

    private static void string(DataOutputStream out, String string) throws IOException {
        byte[] bytes = string.getBytes(StandardCharsets.UTF_8);
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    private static String string(DataInputStream in) throws IOException {
        return new String(in.readNBytes(in.readInt()), StandardCharsets.UTF_8);
    }
}
