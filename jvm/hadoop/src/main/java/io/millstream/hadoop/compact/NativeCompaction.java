package io.millstream.hadoop.compact;

import io.millstream.hadoop.natives.FileNames;
import io.millstream.hadoop.natives.LocalPaths;
import io.millstream.hadoop.natives.NativeLibrary;
import io.millstream.hadoop.natives.WireReader;
import io.millstream.hadoop.reading.FileRanges;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.BooleanSupplier;

/**
 * The staging directory of a compaction. Outputs are written to it; native code moves them into place after a single
 * commit. If the process is killed at any moment, the next one that opens the directory finishes or undoes the
 * compaction: see {@code millstream_compact::compact}.
 */
public final class NativeCompaction implements AutoCloseable {
    /** Directory of the outputs, below the staging directory. */
    public static final String OUT = "out";

    private long handle;

    /**
     * Opens a staging directory, creating it if necessary, and locks it.
     *
     * @param path absolute path
     * @throws IOException if it cannot be opened, or another compaction is using it
     */
    public NativeCompaction(String path) throws IOException {
        requireLibrary();
        handle = open(LocalPaths.require(path));
    }

    static void requireLibrary() {
        if (!NativeLibrary.isLoaded()) {
            throw new IllegalStateException(
                    "Millstream's native library does not load in this JVM (see its log); compaction needs it");
        }
    }

    /** Whether an earlier compaction was committed here but not finished. */
    public synchronized boolean isCommitted() throws IOException {
        return isCommitted(handle());
    }

    /** Removes the uncommitted leftovers of an earlier compaction. */
    public synchronized void clear() throws IOException {
        clear(handle());
    }

    /** Commits. After this the compaction is always finished, if necessary by the next one. */
    public synchronized void commit(Journal journal) throws IOException {
        commit(handle(), journal.packed());
    }

    /** Moves the committed outputs into place that are not there yet. */
    public synchronized Applied apply(int threads) throws IOException {
        return new Applied(apply(handle(), threads));
    }

    /**
     * Whether a compaction is committed but not finished. Nothing is changed.
     *
     * @param staging absolute path of its staging directory, which need not exist
     */
    public static boolean hasJournal(String staging) throws IOException {
        requireLibrary();
        return hasJournal(LocalPaths.require(staging));
    }

    /**
     * Whether files that an earlier compaction replaced are kept. Nothing is changed.
     *
     * @param staging absolute path of its staging directory, which need not exist
     */
    public static boolean hasKept(String staging) throws IOException {
        requireLibrary();
        return hasKept(LocalPaths.require(staging));
    }

    /**
     * Undoes the latest compaction whose replaced files are kept, or the rest of it if an earlier call was interrupted.
     * No compaction may be committed but unfinished.
     *
     * @return the outputs removed, the files put back in place of {@link Applied#replaced}, and the files that were put
     *     back under other names or not at all
     * @throws IOException if nothing is kept, or files have changed since
     */
    public synchronized Applied undo() throws IOException {
        return new Applied(undo(handle()));
    }

    /**
     * What {@link #undo} would do. Nothing is changed.
     *
     * @param staging absolute path of the staging directory, which need not exist
     * @throws IOException if it could not be done, or another compaction is using the staging directory
     */
    public static Applied predictUndo(String staging) throws IOException {
        requireLibrary();
        return new Applied(predictUndo(LocalPaths.require(staging)));
    }

    /**
     * The shell command that undoes the latest compaction of a tree.
     *
     * @param tree absolute path
     */
    public static String undoCommand(String tree) throws IOException {
        requireLibrary();
        return new String(undoCommand(LocalPaths.require(tree)), FileNames.LOCAL.charset());
    }

    /**
     * Removes the kept files of compactions whose keep time has passed.
     *
     * @param nowSeconds the time since 1970
     */
    public synchronized void purgeExpired(long nowSeconds) throws IOException {
        purge(handle(), nowSeconds);
    }

    /**
     * Removes all kept files.
     *
     * @return the number of compactions that can no longer be undone
     */
    public synchronized long purgeAll() throws IOException {
        return purge(handle(), -1);
    }

    /**
     * The number of compactions whose kept files {@link #purgeAll} would remove. Nothing is changed.
     *
     * @param staging absolute path of their staging directory, which need not exist
     * @throws IOException if another compaction is using it
     */
    public static long predictPurge(String staging) throws IOException {
        requireLibrary();
        return predictPurge(LocalPaths.require(staging));
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

    /** Closes the staging directory and keeps it for the next compaction. */
    @Override
    public synchronized void close() throws IOException {
        if (handle != 0) {
            long opened = handle;
            handle = 0;
            close(opened, false);
        }
    }

    /**
     * Concatenates text files to a new file, and writes its manifest. The file is on disk when this returns.
     *
     * @param inputs the files, each as a whole
     * @param rule what the files have in common
     * @param output the new file
     * @param maxReaders maximum number of native threads that read ahead
     * @param isCancelled whether to stop
     * @return the length of the output
     * @throws IOException if it could not be written; then the output does not exist. The message names the file
     *     concerned
     */
    public static long concatenate(
            FileRanges inputs, JoinRule rule, String output, int maxReaders, BooleanSupplier isCancelled)
            throws IOException {
        requireLibrary();
        return concatenate(inputs.packed(), rule.bits(), LocalPaths.require(output), maxReaders, isCancelled);
    }

    /**
     * Returns the names of the files in a directory that a compaction in place would not replace, such as symbolic
     * links, each with the reason, except names that this JVM cannot express.
     *
     * @param directory absolute path
     */
    public static Map<String, String> obstacles(String directory) throws IOException {
        requireLibrary();
        return decodedObstacles(obstacles(LocalPaths.require(directory)));
    }

    static Map<String, String> decodedObstacles(byte[] encoded) {
        Map<String, String> found = new HashMap<>();
        for (WireReader in = new WireReader(encoded); in.hasRemaining(); ) {
            byte[] name = in.prefixed();
            byte[] reason = in.prefixed();
            found.put(FileNames.LOCAL.decode(name, 0, name.length), new String(reason, StandardCharsets.UTF_8));
        }
        found.remove(null);
        return found;
    }

    /**
     * Writes the manifest of an output, before the output itself.
     *
     * @throws IOException if it cannot be written, or an input has changed since it was listed
     */
    public static void stamp(FileRanges inputs, String output) throws IOException {
        requireLibrary();
        stamp(inputs.packed(), LocalPaths.require(output));
    }

    /** Records where each output goes. */
    public static final class Journal {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        private Journal(String kind, String root) throws IOException {
            field("millstream compact 1".getBytes(StandardCharsets.US_ASCII));
            field(kind.getBytes(StandardCharsets.US_ASCII));
            field(LocalPaths.require(root));
        }

        /** A journal without outputs, for a new tree at this absolute path without links. */
        public static Journal ofNewTree(String root) throws IOException {
            return new Journal("new", root);
        }

        /**
         * A journal without outputs. They replace their inputs.
         *
         * @param root absolute path of the tree, without links
         * @param keepUntilSeconds when the replaced files may be removed, since 1970; empty if immediately
         */
        public static Journal inPlace(String root, OptionalLong keepUntilSeconds) throws IOException {
            boolean isKept = keepUntilSeconds.isPresent();
            return new Journal(
                    isKept ? "in place, keeping what is replaced until " + keepUntilSeconds.getAsLong() : "in place",
                    root);
        }

        /**
         * Adds an output. Outputs of the same directory must be added consecutively.
         *
         * @param staged its name in the staging directory; hidden, as patterns match that directory
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

    /** Result of {@link #apply}. */
    public static final class Applied {
        private final long outputs;
        private final long replaced;
        private final List<Left> left = new ArrayList<>();

        Applied(byte[] encoded) {
            WireReader in = new WireReader(encoded);
            outputs = in.u64();
            replaced = in.u64();
            while (in.hasRemaining()) {
                left.add(new Left(text(in.prefixed()), in.u64(), text(in.prefixed())));
            }
        }

        private static String text(byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }

        /** Number of outputs moved into place. */
        public long outputs() {
            return outputs;
        }

        /** Number of files that they replaced. */
        public long replaced() {
            return replaced;
        }

        /** Inputs that were left unchanged. */
        public List<Left> left() {
            return left;
        }
    }

    /**
     * Inputs that were left unchanged.
     *
     * @param directory path of their directory
     * @param files their number
     * @param reason the reason
     */
    public record Left(String directory, long files, String reason) {}

    private static native long concatenate(
            byte[] inputs, int rule, byte[] output, int maxReaders, BooleanSupplier isCancelled) throws IOException;

    private static native byte[] obstacles(byte[] directory) throws IOException;

    private static native void stamp(byte[] inputs, byte[] output) throws IOException;

    private static native long open(byte[] path) throws IOException;

    private static native boolean isCommitted(long handle) throws IOException;

    private static native void clear(long handle) throws IOException;

    private static native void commit(long handle, byte[] journal) throws IOException;

    private static native byte[] apply(long handle, int threads) throws IOException;

    private static native boolean hasJournal(byte[] staging) throws IOException;

    private static native boolean hasKept(byte[] staging) throws IOException;

    private static native byte[] undo(long handle) throws IOException;

    private static native byte[] predictUndo(byte[] staging) throws IOException;

    private static native byte[] undoCommand(byte[] tree);

    private static native long purge(long handle, long now) throws IOException;

    private static native long predictPurge(byte[] staging) throws IOException;

    private static native void close(long handle, boolean remove) throws IOException;
}
