package io.millstream.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.Seed;
import io.millstream.hadoop.listing.DirectoryListing;
import io.millstream.hadoop.listing.DirectoryWalk;
import io.millstream.hadoop.listing.ListingOptions;
import io.millstream.hadoop.natives.Trees;
import java.io.EOFException;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.functional.FutureIO;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Every listing call returns the same as in stock Hadoop. */
class MillstreamLocalFileSystemTest {
    @TempDir
    File temp;

    private final FileSystem stock = new LocalFileSystem();
    private final MillstreamLocalFileSystem ours = new MillstreamLocalFileSystem();

    @BeforeEach
    void initialize() throws IOException {
        Configuration conf = new Configuration(false);
        stock.initialize(FileSystem.getDefaultUri(conf), conf);
        ours.initialize(FileSystem.getDefaultUri(conf), conf);
        assertTrue(ours.listsNatively(), "the native library does not load");
    }

    private interface Listing {
        List<? extends FileStatus> of(FileSystem fs) throws IOException;
    }

    private static <T extends FileStatus> List<T> drain(RemoteIterator<T> statuses) throws IOException {
        List<T> list = new ArrayList<>();
        while (statuses.hasNext()) {
            list.add(statuses.next());
        }
        return list;
    }

    /** All properties of a status except the access time, which listing itself may change. */
    private static String describe(FileStatus status) {
        String blocks = "";
        if (status instanceof LocatedFileStatus located && located.getBlockLocations() != null) {
            for (BlockLocation block : located.getBlockLocations()) {
                blocks += block;
            }
        }
        return String.join(
                " ",
                status.getPath().toString(),
                status.getPath().toUri().toString(),
                "" + status.getLen(),
                "" + status.isDirectory(),
                "" + status.isFile(),
                "" + status.isSymlink(),
                "" + status.getModificationTime(),
                "" + status.getBlockSize(),
                "" + status.getReplication(),
                status.getPermission().toString(),
                status.getOwner(),
                status.getGroup(),
                blocks);
    }

    /** Stock listStatus gives no locations, so they are compared only where both have them. */
    private void assertSame(String call, Listing listing) throws IOException {
        assertEquals(
                outcome(call, listing, stock),
                outcome(call, listing, ours),
                call + " in " + Arrays.toString(temp.list()));
    }

    /** The sorted listing, or the exception: Hadoop's Globber does not accept every name. */
    private static String outcome(String call, Listing listing, FileSystem fs) throws IOException {
        try {
            return listing.of(fs).stream()
                    .map(s -> describe(plainUnlessLocated(call, s)))
                    .sorted()
                    .collect(Collectors.joining("\n"));
        } catch (IllegalArgumentException e) {
            return e.toString();
        }
    }

    private static FileStatus plainUnlessLocated(String call, FileStatus status) {
        try {
            return call.startsWith("located") ? status : new FileStatus(status);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private void assertEveryCallSame(Path directory) throws IOException {
        assertSame("listStatus", fs -> Arrays.asList(fs.listStatus(directory)));
        assertSame("listStatusIterator", fs -> drain(fs.listStatusIterator(directory)));
        assertSame("located listLocatedStatus", fs -> drain(fs.listLocatedStatus(directory)));
        assertSame("located listFiles", fs -> drain(fs.listFiles(directory, false)));
        assertSame("located listFiles recursive", fs -> drain(fs.listFiles(directory, true)));
        assertSame("globStatus", fs -> Arrays.asList(fs.globStatus(new Path(directory, "*"))));
    }

    /** The seed is in the names of the trees, and so in the message of a failure. */
    @Test
    void randomTreesWithNastyNames() throws IOException {
        long seed = Seed.printed();
        Random random = new Random(seed);
        for (int number = 0; number < 3; number++) {
            File root = new File(temp, "tree %é " + number + " MILLSTREAM_SEED=" + seed);
            Trees.random(root.toPath(), random);
            assertEveryCallSame(new Path(root.toURI()));
        }
    }

    @Test
    void everyNastyNameAsFileAndDirectory() throws IOException {
        for (String name : Trees.NASTY_NAMES) {
            Trees.write(temp.toPath().resolve("files").resolve(name), 1);
            Trees.write(temp.toPath().resolve("directories").resolve(name).resolve("f"), 1);
        }
        assertEveryCallSame(new Path(temp.toURI()));
        for (FileStatus directory : stock.listStatus(new Path(new Path(temp.toURI()), "directories"))) {
            assertSame("listStatus", fs -> Arrays.asList(fs.listStatus(directory.getPath())));
        }
    }

    @Test
    void relativePathsAndTrailingSlashes() throws IOException {
        Trees.write(temp.toPath().resolve("d/f"), 1);
        ours.setWorkingDirectory(new Path(temp.toURI()));
        stock.setWorkingDirectory(new Path(temp.toURI()));
        for (String path :
                List.of("d", "./d", "d/", "d/../d", temp + "/d", "file:" + temp + "/d", "file://" + temp + "//d/")) {
            assertSame("listStatus " + path, fs -> Arrays.asList(fs.listStatus(new Path(path))));
            assertSame("located recursive " + path, fs -> drain(fs.listFiles(new Path(path), true)));
        }
    }

    @Test
    void filesMissingPathsAndForeignPathsAnswerAsStockDoes() throws IOException {
        Trees.write(temp.toPath().resolve("f"), 7);
        Path file = new Path(temp.toString(), "f");
        assertSame("listStatus", fs -> Arrays.asList(fs.listStatus(file)));
        assertSame("located listFiles", fs -> drain(fs.listFiles(file, true)));
        assertSame("globStatus", fs -> Arrays.asList(fs.globStatus(file)));
        assertSameFailure(fs -> fs.listStatus(new Path(temp.toString(), "gone")));
        assertSameFailure(fs -> drain(fs.listFiles(new Path(temp.toString(), "gone"), true)));
        assertSameFailure(fs -> fs.listStatus(new Path("hdfs://host/x")));
    }

    private interface Call {
        void on(FileSystem fs) throws IOException;
    }

    private void assertSameFailure(Call call) {
        Exception expected = assertThrows(Exception.class, () -> call.on(stock));
        Exception found = assertThrows(Exception.class, () -> call.on(ours));
        assertEquals(expected.getClass(), found.getClass());
        // For foreign paths, the message names the file system.
        assertEquals(expected.getMessage(), found.getMessage());
    }

    @Test
    void loopOfLinksIsListedAsStockListsIt() throws IOException {
        Trees.write(temp.toPath().resolve("d/f"), 1);
        Files.createSymbolicLink(temp.toPath().resolve("d/up"), java.nio.file.Path.of(".."));
        Listing listing = fs -> drain(fs.listFiles(new Path(temp.toString()), true));
        // On a busy machine the kernel may follow a path anew, and counts the links before that, too: the listing then
        // ends before the fortieth link.
        String call = "located listFiles";
        int attempts = 5;
        while (--attempts > 0 && !outcome(call, listing, stock).equals(outcome(call, listing, ours))) {
            Thread.yield();
        }
        assertSame(call, listing);
    }

    @Test
    void namesThatJavaCannotExpressAreLeftOutAsStockLeavesThem() throws Exception {
        Trees.write(temp.toPath().resolve("ok"), 1);
        String script = "cd \"$0\" && touch $'bad\\xff' && mkdir $'dir\\xfe' && touch $'dir\\xfe/in'";
        assertEquals(
                0,
                new ProcessBuilder("bash", "-c", script, temp.toString())
                        .start()
                        .waitFor());
        assertEveryCallSame(new Path(temp.toURI()));
    }

    @Test
    void changesThroughTheFileSystemAreVisibleAtOnce() throws IOException {
        Path root = new Path(temp.toURI());
        for (int i = 0; i < 20; i++) {
            Trees.write(temp.toPath().resolve("d" + i + "/f"), 1);
        }
        List<Path> directories =
                Arrays.stream(ours.listStatus(root)).map(FileStatus::getPath).toList();
        for (Path directory : directories) {
            int before = ours.listStatus(directory).length;
            ours.rename(new Path(directory, "f"), new Path(directory, "g"));
            ours.mkdirs(new Path(directory, "sub"));
            assertEquals(before + 1, ours.listStatus(directory).length);
            ours.delete(new Path(directory, "g"), false);
            assertEquals(before, ours.listStatus(directory).length);
            ours.create(new Path(directory, "h")).close();
            assertEquals(before + 1, ours.listStatus(directory).length);
        }
    }

    @Test
    void recursionByTheCallerListsAsStockDoes() throws IOException {
        for (int i = 0; i < 400; i++) {
            Trees.write(temp.toPath().resolve("a" + i % 5 + "/b" + i % 20 + "/c" + i % 100 + "/f" + i), i % 7);
        }
        assertSame("depth first", fs -> depthFirst(fs, new Path(temp.toURI())));
        assertSame("globStatus", fs -> Arrays.asList(fs.globStatus(new Path(temp.toString(), "*/*/*/f*"))));
    }

    private static List<FileStatus> depthFirst(FileSystem fs, Path directory) throws IOException {
        List<FileStatus> all = new ArrayList<>();
        for (FileStatus status : fs.listStatus(directory)) {
            all.add(status);
            if (status.isDirectory()) {
                all.addAll(depthFirst(fs, status.getPath()));
            }
        }
        return all;
    }

    @Test
    void checksumsAreVerifiedIfPresent() throws IOException {
        Path plain = new Path(temp.getPath(), "plain");
        Files.writeString(new File(temp, "plain").toPath(), "without checksums");
        Path written = new Path(temp.getPath(), "written");
        try (FSDataOutputStream out = ours.create(written)) {
            out.writeBytes("with checksums");
        }
        Files.writeString(new File(temp, "written").toPath(), "with changed ones");
        for (FileSystem fs : List.of(stock, ours)) {
            try (FSDataInputStream in = fs.open(plain)) {
                assertEquals("without checksums", new String(in.readAllBytes(), StandardCharsets.UTF_8));
            }
            try (FSDataInputStream in =
                    FutureIO.awaitFuture(fs.openFile(written).build())) {
                assertThrows(ChecksumException.class, in::readAllBytes);
            }
            Path missing = new Path(temp.getPath(), "missing");
            assertEquals(
                    "File " + missing + " does not exist",
                    assertThrows(FileNotFoundException.class, () -> fs.open(missing))
                            .getMessage());
        }
    }

    @Test
    void modesAreSetAsInStock() throws IOException {
        for (String umask : List.of("022", "077", "000")) {
            List<String> modes = new ArrayList<>();
            for (FileSystem fs : List.of(stock, ours)) {
                fs.getConf().set("fs.permissions.umask-mode", umask);
                Path file = new Path(temp.toURI() + "modes-" + umask + fs.hashCode());
                fs.create(file, true).close();
                modes.add(mode(file));
                fs.setPermission(file, new FsPermission((short) 01640));
                modes.add(mode(file));
                Path missing = new Path(file + "-missing");
                assertThrows(IOException.class, () -> fs.setPermission(missing, new FsPermission((short) 0600)));
            }
            assertEquals(modes.subList(0, 2), modes.subList(2, 4));
        }
    }

    @Test
    void seeksBeyondTheEndFailAsInStock() throws IOException {
        Trees.write(temp.toPath().resolve("short"), 3);
        Path file = new Path(temp.toURI() + "short");
        for (FileSystem fs : List.of(stock, ours)) {
            try (FSDataInputStream in = fs.open(file)) {
                in.seek(3);
                assertEquals(-1, in.read());
                assertThrows(EOFException.class, () -> in.seek(4));
                in.seek(1);
                assertEquals(2, in.read(new byte[9]));
            }
        }
    }

    @Test
    void directoriesKeepTheInheritedGroup() throws IOException {
        java.nio.file.Path shared = Files.createDirectory(temp.toPath().resolve("shared"));
        Files.setAttribute(shared, "unix:mode", 02775);
        List<List<String>> modes = new ArrayList<>();
        for (FileSystem fs : List.of(stock, ours)) {
            Path top = new Path(shared.toUri() + "/" + fs.hashCode());
            List<String> own = new ArrayList<>();
            fs.mkdirs(new Path(top, "a"));
            fs.mkdirs(new Path(top, "b"), new FsPermission((short) 0770));
            fs.create(new Path(top, "c/file")).close();
            fs.mkdirs(new Path(top, "d"));
            fs.setPermission(new Path(top, "d"), new FsPermission((short) 01700));
            for (String name : List.of("a", "b", "c", "c/file", "d")) {
                own.add(name + " " + mode(new Path(top, name)));
            }
            modes.add(own);
        }
        assertEquals(modes.get(0), modes.get(1));
        assertEquals("a 42755", modes.get(1).get(0));
    }

    private static String mode(Path file) throws IOException {
        return Integer.toOctalString((int) Files.getAttribute(java.nio.file.Path.of(file.toUri()), "unix:mode"));
    }

    @Test
    void disabledItBehavesAsTheSuperclass() throws IOException {
        Configuration conf = new Configuration(false);
        conf.setBoolean("fs.millstream.list.enabled", false);
        MillstreamLocalFileSystem off = new MillstreamLocalFileSystem();
        off.initialize(FileSystem.getDefaultUri(conf), conf);
        Trees.write(temp.toPath().resolve("f"), 1);
        assertEquals(false, off.listsNatively());
        assertEquals(
                stock.listStatus(new Path(temp.toURI()))[0].getClass(),
                off.listStatus(new Path(temp.toURI()))[0].getClass());
        conf.setInt("fs.millstream.list.threads", -1);
        assertThrows(
                IllegalArgumentException.class,
                () -> new MillstreamLocalFileSystem().initialize(FileSystem.getDefaultUri(conf), conf));
    }

    /** In a driver, Spark's settings are system properties. */
    @Test
    void disabledInSparkItBehavesAsTheSuperclass() throws IOException {
        Configuration conf = new Configuration(false);
        conf.setBoolean(ListingOptions.ENABLED, true);
        MillstreamLocalFileSystem fs = new MillstreamLocalFileSystem();
        fs.initialize(FileSystem.getDefaultUri(conf), conf);
        try {
            for (String value : List.of("false", "FALSE", " False ", "true", "TRUE")) {
                System.setProperty("spark.millstream.list.enabled", value);
                assertEquals(value.equalsIgnoreCase("true"), fs.listsNatively(), value);
            }
            System.setProperty("spark.millstream.list.enabled", "no");
            Exception refused = assertThrows(IllegalArgumentException.class, fs::listsNatively);
            assertEquals("spark.millstream.list.enabled should be boolean, but was no", refused.getMessage());
        } finally {
            System.clearProperty("spark.millstream.list.enabled");
        }
    }

    /** A walk that starts but fails when polled. */
    private static final class FailingWalk implements DirectoryWalk {
        @Override
        public List<DirectoryListing> poll() {
            throw new IllegalStateException("native code panicked");
        }

        @Override
        public void close() {}
    }

    @Test
    void theSuperclassAnswersIfNativeCodeFails() throws IOException {
        Trees.write(temp.toPath().resolve("d/e/f"), 1);
        Trees.write(temp.toPath().resolve("d/g"), 1);
        DirectoryWalk.Starter noThread = (roots, flags, threads) -> {
            throw new IllegalStateException("no thread");
        };
        DirectoryWalk.Starter noSymbol = (roots, flags, threads) -> {
            throw new UnsatisfiedLinkError("open");
        };
        DirectoryWalk.Starter panic = (roots, flags, threads) -> new FailingWalk();
        Path root = new Path(temp.toURI());
        for (DirectoryWalk.Starter failing : List.of(noThread, noSymbol, panic)) {
            MillstreamLocalFileSystem fs = new MillstreamLocalFileSystem(failing);
            Configuration conf = new Configuration(false);
            fs.initialize(FileSystem.getDefaultUri(conf), conf);
            assertEquals(null, fs.listDataset(List.of(root)));
            for (Listing call : List.<Listing>of(
                    any -> Arrays.asList(any.listStatus(root)),
                    any -> drain(any.listFiles(root, true)),
                    any -> drain(any.listLocatedStatus(new Path(root, "d"))),
                    any -> Arrays.asList(any.globStatus(new Path(root, "*/*"))))) {
                assertEquals(outcome("plain", call, stock), outcome("plain", call, fs));
            }
        }
    }
}
