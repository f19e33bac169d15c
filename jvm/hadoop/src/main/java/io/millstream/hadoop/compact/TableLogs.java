package io.millstream.hadoop.compact;

import io.millstream.hadoop.listing.DatasetNames;
import io.millstream.hadoop.natives.LocalPaths;
import io.millstream.hadoop.natives.WireReader;
import io.millstream.hadoop.natives.WireWriter;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.security.AccessControlException;

/**
 * Finds metadata that references the files of a tree, such as the log of a table:
 * {@code millstream_compact::table_logs} has the rule. Native code lists local trees itself. Trees of other file
 * systems are listed here, and native code judges the listing.
 */
public final class TableLogs {
    /** Maximum number of concurrent calls to the file system. */
    private static final int THREADS = 32;
    /** Number of paths per native call. */
    private static final int BATCH = 10_000;

    /**
     * Metadata that references the tree's files.
     *
     * @param isKnown whether it is the log of a known format, not only similar to one
     * @param isUnfinished whether it belongs to a running or killed compaction or undo
     * @param message its description for the user
     */
    public record Evidence(boolean isKnown, boolean isUnfinished, String message) {}

    private final FileSystem fs;
    private final Path root;
    private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);
    private final long handle;

    private TableLogs(FileSystem fs, Path root) {
        this.fs = fs;
        this.root = root;
        handle = open(bytes(root));
    }

    /**
     * Examines a local tree and the directories above it.
     *
     * @param root absolute path without symbolic links
     * @param given absolute path as the user gave it
     * @param isReplaced whether its files will be replaced; more files are searched then
     */
    public static Optional<Evidence> ofLocal(String root, String given, boolean isReplaced) throws IOException {
        NativeCompaction.requireLibrary();
        return decoded(ofLocal(LocalPaths.require(root), LocalPaths.require(given), isReplaced));
    }

    /**
     * Examines a tree and the directories above it. Anything that the user may neither list nor stat counts as absent.
     *
     * @param root qualified
     * @throws IOException if the tree cannot be listed
     */
    public static Optional<Evidence> of(FileSystem fs, Path root) throws IOException {
        NativeCompaction.requireLibrary();
        TableLogs logs = new TableLogs(fs, root);
        try {
            return logs.search();
        } finally {
            logs.threads.shutdownNow();
            close(logs.handle);
        }
    }

    static Optional<Evidence> decoded(byte[] encoded) {
        WireReader in = new WireReader(encoded);
        if (!in.hasRemaining()) {
            return Optional.empty();
        }
        int certainty = in.u8();
        return Optional.of(
                new Evidence(certainty != 0, certainty == 2, new String(in.prefixed(), StandardCharsets.UTF_8)));
    }

    private Optional<Evidence> search() throws IOException {
        if (root.toUri().getScheme().startsWith("s3")) {
            addAllFiles();
        } else {
            addTree();
        }
        List<Callable<Void>> above = new ArrayList<>();
        for (Path directory = root.getParent(); directory != null; directory = directory.getParent()) {
            Path listed = directory;
            above.add(() -> addAbove(listed));
        }
        all(above);
        List<Callable<Void>> suspects = new ArrayList<>();
        for (String path : strings(suspects(handle))) {
            suspects.add(() -> examine(path));
        }
        all(suspects);
        return decoded(evidence(handle));
    }

    /** One flat listing also contains the names of hidden directories. */
    private void addAllFiles() throws IOException {
        RemoteIterator<LocatedFileStatus> files = fs.listFiles(root, true);
        while (files.hasNext()) {
            WireWriter batch = new WireWriter();
            for (int count = 0; count < BATCH && files.hasNext(); count++) {
                batch.prefixed(bytes(files.next().getPath()));
            }
            addFiles(handle, batch.toByteArray());
        }
    }

    /**
     * Directory by directory, breadth first. Hidden directories are seen but not entered: nothing in them counts as
     * data.
     */
    private void addTree() throws IOException {
        List<Path> level = List.of(root);
        while (!level.isEmpty()) {
            List<Callable<List<Path>>> calls = new ArrayList<>();
            for (Path directory : level) {
                calls.add(() -> addInside(directory));
            }
            List<Path> next = new ArrayList<>();
            for (List<Path> below : all(calls)) {
                below.stream()
                        .filter(path -> !DatasetNames.isHidden(path.getName()))
                        .forEach(next::add);
            }
            level = next;
        }
    }

    /**
     * Files that cannot be listed are not inputs. The listing of the tree reports them, and fails if the root cannot be
     * listed.
     */
    private List<Path> addInside(Path directory) throws IOException {
        List<Path> below = new ArrayList<>();
        try {
            addEntries(directory, Integer.MAX_VALUE, below);
        } catch (FileNotFoundException | AccessDeniedException | AccessControlException e) {
            return List.of();
        }
        return below;
    }

    /**
     * Adds a directory's entries.
     *
     * @param below receives the directories among them
     * @return whether there are no more than {@code most}
     */
    private boolean addEntries(Path directory, int most, List<Path> below) throws IOException {
        WireWriter packed = new WireWriter().prefixed(bytes(directory));
        RemoteIterator<FileStatus> entries = fs.listStatusIterator(directory);
        int count = 0;
        while (entries.hasNext() && count++ < most) {
            FileStatus entry = entries.next();
            add(packed, entry, entry.getPath().getName());
            if (entry.isDirectory()) {
                below.add(entry.getPath());
            }
        }
        synchronized (this) {
            addEntries(handle, packed.toByteArray());
        }
        return count <= most;
    }

    /** Looks for logs by name in a directory that has too many entries or may not be listed. */
    private void probe(Path directory) throws IOException {
        WireWriter packed = new WireWriter().prefixed(bytes(directory));
        for (String name : strings(probes())) {
            try {
                add(packed, fs.getFileStatus(new Path(directory, name)), name);
            } catch (FileNotFoundException
                    | AccessDeniedException
                    | AccessControlException
                    | ParentNotDirectoryException e) {
                // HDFS denies access below a file.
                continue;
            }
        }
        synchronized (this) {
            addEntries(handle, packed.toByteArray());
        }
    }

    private static void add(WireWriter packed, FileStatus entry, String name) {
        packed.u8(entry.isDirectory() ? 1 : 0).prefixed(name.getBytes(StandardCharsets.UTF_8));
    }

    private Void addAbove(Path directory) throws IOException {
        addOutside(directory);
        List<String> beside;
        synchronized (this) {
            beside = strings(beside(handle, bytes(directory)));
        }
        for (String name : beside) {
            addOutside(new Path(directory, name));
        }
        return null;
    }

    /** Adds what is known about a directory outside the tree. Credentials may cover only the tree. */
    private void addOutside(Path directory) throws IOException {
        try {
            if (!addEntries(directory, listedEntries(), new ArrayList<>())) {
                probe(directory);
            }
        } catch (FileNotFoundException e) {
            return;
        } catch (AccessDeniedException | AccessControlException e) {
            probe(directory);
        }
    }

    private Void examine(String path) throws IOException {
        byte[] content;
        try (FSDataInputStream in =
                fs.open(new Path(root.toUri().getScheme(), root.toUri().getAuthority(), path))) {
            content = in.readNBytes(searchedBytes());
        } catch (FileNotFoundException | AccessDeniedException | AccessControlException e) {
            return null;
        }
        synchronized (this) {
            examine(handle, path.getBytes(StandardCharsets.UTF_8), content);
        }
        return null;
    }

    private <T> List<T> all(List<Callable<T>> calls) throws IOException {
        List<T> results = new ArrayList<>();
        try {
            for (Future<T> result : threads.invokeAll(calls)) {
                results.add(result.get());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw (IOException) new InterruptedIOException("interrupted").initCause(e);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof IOException cause ? cause : new IOException(e.getCause());
        }
        return results;
    }

    private static byte[] bytes(Path path) {
        String text = path.toUri().getPath();
        return (text.endsWith("/") ? text.substring(0, text.length() - 1) : text).getBytes(StandardCharsets.UTF_8);
    }

    private static List<String> strings(byte[] encoded) {
        List<String> found = new ArrayList<>();
        for (WireReader in = new WireReader(encoded); in.hasRemaining(); ) {
            found.add(new String(in.prefixed(), StandardCharsets.UTF_8));
        }
        return found;
    }

    private static native byte[] ofLocal(byte[] root, byte[] given, boolean isReplaced);

    private static native int listedEntries();

    private static native int searchedBytes();

    private static native byte[] probes();

    private static native long open(byte[] root);

    private static native void addEntries(long handle, byte[] packed);

    private static native void addFiles(long handle, byte[] packed);

    private static native byte[] beside(long handle, byte[] directory);

    private static native byte[] suspects(long handle);

    private static native void examine(long handle, byte[] path, byte[] content);

    private static native byte[] evidence(long handle);

    private static native void close(long handle);
}
