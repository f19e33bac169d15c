package io.millstream.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.hadoop.listing.DirectoryListing;
import io.millstream.hadoop.listing.DirectoryWalk;
import io.millstream.hadoop.listing.ListingOptions;
import io.millstream.hadoop.listing.NativeListing;
import io.millstream.hadoop.listing.SiblingReadAhead;
import io.millstream.hadoop.natives.LocalPaths;
import io.millstream.hadoop.natives.NativeLibrary;
import io.millstream.hadoop.natives.Trees;
import java.io.File;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.file.Files;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class SiblingReadAheadTest {
    @TempDir
    File root;

    @BeforeEach
    void makeTree() throws IOException {
        assertTrue(NativeLibrary.isLoaded());
        for (int i = 0; i < 10; i++) {
            for (int j = 0; j < 4; j++) {
                Trees.write(root.toPath().resolve("d" + i + "/e" + j + "/f"), 1);
            }
        }
        settle(root.toPath());
    }

    /** Makes directories look as if they had not changed recently. */
    private static void settle(java.nio.file.Path top) throws IOException {
        try (Stream<java.nio.file.Path> tree = Files.walk(top)) {
            for (java.nio.file.Path path : tree.filter(Files::isDirectory).toList()) {
                Files.setLastModifiedTime(path, FileTime.fromMillis(System.currentTimeMillis() - 60_000));
            }
        }
    }

    private static SiblingReadAhead readAhead(int directories, int maxAgeMillis) {
        Configuration conf = new Configuration(false);
        conf.setInt(ListingOptions.READ_AHEAD_DIRECTORIES, directories);
        conf.setInt(ListingOptions.READ_AHEAD_MAX_AGE_MILLIS, maxAgeMillis);
        return new SiblingReadAhead(new ListingOptions(conf), NativeListing::new, 200_000, 60_000);
    }

    private static List<DirectoryListing> list(String directory) throws IOException {
        List<DirectoryListing> parts = new ArrayList<>();
        byte[][] roots = {LocalPaths.encode(new File(directory))};
        new NativeListing(roots, NativeListing.DIRECTORIES, 1).forEach(parts::add);
        return parts;
    }

    /** Lists like the file system; returns whether the listing was read ahead. */
    private static boolean ask(SiblingReadAhead ahead, String directory) throws IOException {
        List<DirectoryListing> parts = ahead.take(directory);
        ahead.listed(directory, parts == null ? list(directory) : parts);
        return parts != null;
    }

    private List<Boolean> askForChildren(SiblingReadAhead ahead, int count) throws IOException {
        ask(ahead, root.getPath());
        List<Boolean> served = new ArrayList<>();
        for (DirectoryListing part : list(root.getPath())) {
            for (int i = 0; i < count; i++) {
                served.add(ask(ahead, root + "/" + part.name(i)));
            }
        }
        return served;
    }

    @Test
    void secondSiblingStartsReadAhead() throws IOException {
        List<Boolean> served = askForChildren(readAhead(1024, 60_000), 10);
        List<Boolean> expected = new ArrayList<>(java.util.Collections.nCopies(10, true));
        expected.set(0, false);
        assertEquals(expected, served);
    }

    @Test
    void windowBoundsReadAheadAndTheNextSiblingRestartsIt() throws IOException {
        assertEquals(List.of(false, true, true, true, true, true, true), askForChildren(readAhead(3, 60_000), 7));
    }

    @Test
    void zeroDirectoriesDisablesReadAhead() throws IOException {
        assertEquals(List.of(false, false, false, false), askForChildren(readAhead(0, 60_000), 4));
    }

    @Test
    void descendsIfTheCallerDid() throws IOException {
        SiblingReadAhead ahead = readAhead(1024, 60_000);
        ask(ahead, root.getPath());
        String first = root + "/" + list(root.getPath()).get(0).name(0);
        String second = root + "/" + list(root.getPath()).get(0).name(1);
        ask(ahead, first);
        ask(ahead, first + "/e0");
        assertEquals(true, ask(ahead, second));
        assertEquals(true, ask(ahead, second + "/e3"));
    }

    @Test
    void listingsAreHandedOutOnce() throws IOException {
        SiblingReadAhead ahead = readAhead(1024, 60_000);
        askForChildren(ahead, 3);
        String third = root + "/" + list(root.getPath()).get(0).name(2);
        assertNull(ahead.take(third));
    }

    @Test
    void changesDropListings() throws IOException {
        SiblingReadAhead ahead = readAhead(1024, 60_000);
        askForChildren(ahead, 3);
        String fourth = root + "/" + list(root.getPath()).get(0).name(3);
        ahead.invalidate();
        assertNull(ahead.take(fourth));
    }

    @Test
    void openForWriteStopsReadAhead() throws IOException {
        SiblingReadAhead ahead = readAhead(1024, 60_000);
        ahead.invalidateAndPause();
        assertEquals(List.of(false, false, false), askForChildren(ahead, 3));
    }

    @Test
    void oldListingsAreNotHandedOut() throws Exception {
        SiblingReadAhead ahead = readAhead(1024, 500);
        askForChildren(ahead, 3);
        DirectoryListing names = list(root.getPath()).get(0);
        Thread.sleep(300);
        assertNotNull(ahead.take(root + "/" + names.name(3)));
        Thread.sleep(300);
        assertNull(ahead.take(root + "/" + names.name(4)));
    }

    @Test
    void otherThreadsAreNotServed() throws Exception {
        SiblingReadAhead ahead = readAhead(1024, 60_000);
        askForChildren(ahead, 3);
        DirectoryListing names = list(root.getPath()).get(0);
        FutureTask<List<DirectoryListing>> other = new FutureTask<>(() -> ahead.take(root + "/" + names.name(3)));
        Thread thread = new Thread(other);
        thread.start();
        assertNull(other.get());
        thread.join();
        assertNotNull(ahead.take(root + "/" + names.name(3)));
    }

    @Test
    void callersThatDoSomethingElseMeanwhileAreNotServed() throws Exception {
        List<ObservedWalk> walks = new ArrayList<>();
        SiblingReadAhead ahead = new SiblingReadAhead(
                new ListingOptions(new Configuration(false)),
                (roots, flags, threads) -> {
                    walks.add(new ObservedWalk(new NativeListing(roots, flags, threads)));
                    return walks.get(walks.size() - 1);
                },
                200_000,
                200);
        askForChildren(ahead, 3);
        assertEquals(1, walks.size());
        DirectoryListing names = list(root.getPath()).get(0);
        Thread.sleep(250);
        // Listings by another thread do not count for this one.
        Thread other = new Thread(() -> ahead.listed(root.getPath(), List.of()));
        other.start();
        other.join();
        assertTrue(ask(ahead, root + "/" + names.name(3)), "by a new walk");
        assertEquals(
                List.of(true, false), walks.stream().map(walk -> walk.closed).toList());
    }

    @Test
    void directoriesThatHaveChangedAreNotHandedOut() throws IOException {
        SiblingReadAhead ahead = readAhead(1024, 60_000);
        askForChildren(ahead, 3);
        DirectoryListing names = list(root.getPath()).get(0);
        Files.createFile(root.toPath().resolve(names.name(3)).resolve("new"));
        assertNull(ahead.take(root + "/" + names.name(3)));
        assertNotNull(ahead.take(root + "/" + names.name(4)));
    }

    @Test
    void directoriesThatHadJustChangedAreNotHandedOut() throws IOException {
        DirectoryListing names = list(root.getPath()).get(0);
        Files.setLastModifiedTime(
                root.toPath().resolve(names.name(2)), FileTime.fromMillis(System.currentTimeMillis()));
        assertEquals(List.of(false, true, false, true), askForChildren(readAhead(1024, 60_000), 4));
    }

    /** As in stock Hadoop: a file that is added between two calls is in the second call's result. */
    @Test
    void nothingThatOthersAddIsHidden() throws IOException {
        for (java.nio.file.Path place : List.of(root.toPath(), java.nio.file.Path.of("/dev/shm"))) {
            java.nio.file.Path top = Files.createTempDirectory(place, "siblings");
            try {
                for (int round = 0; round < 2; round++) {
                    // Names in an order other than that of their creation.
                    for (int i = 9; i >= 0; i--) {
                        Trees.write(top.resolve(round + "/e" + i + "/old"), 1);
                    }
                    settle(top);
                    MillstreamLocalFileSystem fs = new MillstreamLocalFileSystem();
                    fs.initialize(FileSystem.getDefaultUri(new Configuration(false)), new Configuration(false));
                    Path all = new Path(top.toUri() + "/" + round + "/*/*");
                    assertEquals(10, fs.globStatus(all).length);
                    List<Integer> found = new ArrayList<>();
                    for (int i = 0; i < 10; i++) {
                        java.nio.file.Path directory = top.resolve(round + "/e" + i);
                        Trees.write(directory.resolve("new"), 1);
                        found.add(
                                round == 0
                                        ? fs.listStatus(new Path(directory.toUri())).length
                                        : fs.globStatus(all).length - i);
                    }
                    assertEquals(java.util.Collections.nCopies(10, round == 0 ? 2 : 11), found);
                }
            } finally {
                FileUtil.fullyDelete(top.toFile());
            }
        }
    }

    @Test
    @Timeout(20)
    void walksThatNobodyAsksForEnd() throws Exception {
        Configuration conf = new Configuration(false);
        conf.setInt(ListingOptions.READ_AHEAD_MAX_AGE_MILLIS, 200);
        List<ObservedWalk> walks = new ArrayList<>();
        SiblingReadAhead ahead = new SiblingReadAhead(new ListingOptions(conf), (roots, flags, threads) -> {
            walks.add(new ObservedWalk(new NativeListing(roots, flags, threads)));
            return walks.get(walks.size() - 1);
        });
        askForChildren(ahead, 2);
        assertEquals(1, walks.size());
        while (!walks.get(0).closed) {
            Thread.sleep(10);
        }
    }

    /** A walk whose storage does not answer until it is closed. */
    private static final class HangingWalk implements DirectoryWalk {
        final CountDownLatch polled = new CountDownLatch(1);
        volatile boolean closed;

        @Override
        public List<DirectoryListing> poll() throws InterruptedIOException {
            polled.countDown();
            try {
                Thread.sleep(10);
            } catch (InterruptedException e) {
                throw new InterruptedIOException();
            }
            return closed ? null : List.of();
        }

        @Override
        public void close() {
            closed = true;
        }
    }

    @Test
    @Timeout(20)
    void callersDoNotWaitForWalksOfOthers() throws Exception {
        HangingWalk hanging = new HangingWalk();
        MillstreamLocalFileSystem fs = new MillstreamLocalFileSystem(
                (roots, flags, threads) -> roots.length > 1 ? hanging : new NativeListing(roots, flags, threads));
        Configuration conf = new Configuration(false);
        conf.setInt(ListingOptions.READ_AHEAD_MAX_AGE_MILLIS, 60_000);
        fs.initialize(FileSystem.getDefaultUri(conf), conf);
        FileStatus[] children = fs.listStatus(new Path(root.toURI()));
        fs.listStatus(children[0].getPath());
        FutureTask<FileStatus[]> waiting = new FutureTask<>(() -> fs.listStatus(children[1].getPath()));
        Thread reader = new Thread(waiting);
        reader.start();
        hanging.polled.await();
        assertEquals(4, fs.listStatus(children[2].getPath()).length);
        assertEquals(10, fs.listStatus(new Path(root.toURI())).length);
        assertFalse(waiting.isDone());
        assertTrue(fs.mkdirs(new Path(children[1].getPath(), "new")));
        assertTrue(List.of(4, 5).contains(waiting.get().length), "it may list before the directory is made");
        assertTrue(hanging.closed);
        reader.join();
    }

    /** A native walk that records whether it was closed. */
    private static final class ObservedWalk implements DirectoryWalk {
        final DirectoryWalk walk;
        volatile boolean closed;

        ObservedWalk(DirectoryWalk walk) {
            this.walk = walk;
        }

        @Override
        public List<DirectoryListing> poll() throws InterruptedIOException {
            return walk.poll();
        }

        @Override
        public void close() {
            closed = true;
            walk.close();
        }
    }

    private interface Change {
        void on(MillstreamLocalFileSystem fs, Path file) throws IOException;
    }

    @Test
    @SuppressWarnings("deprecation")
    void everyChangeThroughTheFileSystemEndsTheWalk() throws IOException {
        String self = Files.getOwner(root.toPath()).getName();
        Map<String, Change> changes = Map.of(
                "rename", (fs, file) -> fs.rename(file, file.suffix("2")),
                "rename with options", (fs, file) -> fs.rename(file, file.suffix("2"), Options.Rename.OVERWRITE),
                "setOwner", (fs, file) -> fs.setOwner(file, self, null),
                "setPermission", (fs, file) -> fs.setPermission(file, new FsPermission("700")),
                "setTimes", (fs, file) -> fs.setTimes(file, 1, 1),
                "delete", (fs, file) -> fs.delete(file, false),
                "mkdirs", (fs, file) -> fs.mkdirs(file.suffix("2")),
                "create", (fs, file) -> fs.create(file).close(),
                "createNonRecursive",
                        (fs, file) -> fs.createNonRecursive(
                                        file, FsPermission.getFileDefault(), true, 100, (short) 1, 512, null)
                                .close(),
                "copyFromLocalFile", (fs, file) -> fs.copyFromLocalFile(file, file.suffix("2")));
        int directory = 0;
        for (Map.Entry<String, Change> change : changes.entrySet()) {
            List<ObservedWalk> ahead = new ArrayList<>();
            MillstreamLocalFileSystem fs = new MillstreamLocalFileSystem((roots, flags, threads) -> {
                ObservedWalk walk = new ObservedWalk(new NativeListing(roots, flags, threads));
                if (roots.length > 1) {
                    ahead.add(walk);
                }
                return walk;
            });
            Configuration conf = new Configuration(false);
            fs.initialize(FileSystem.getDefaultUri(conf), conf);
            FileStatus[] children = fs.listStatus(new Path(root.toURI()));
            fs.listStatus(children[0].getPath());
            fs.listStatus(children[1].getPath());
            assertEquals(List.of(false), ahead.stream().map(walk -> walk.closed).toList(), change.getKey());
            change.getValue().on(fs, new Path(root + "/d" + directory++ + "/e0/f"));
            assertEquals(List.of(true), ahead.stream().map(walk -> walk.closed).toList(), change.getKey());
        }
    }

    @Test
    @Timeout(20)
    void stalledWalkIsAbandoned() throws Exception {
        HangingWalk hanging = new HangingWalk();
        Configuration conf = new Configuration(false);
        conf.setInt(ListingOptions.READ_AHEAD_MAX_AGE_MILLIS, 300);
        SiblingReadAhead ahead = new SiblingReadAhead(new ListingOptions(conf), (roots, flags, threads) -> hanging);
        assertEquals(List.of(false, false), askForChildren(ahead, 2));
        assertEquals(0, hanging.polled.getCount());
        assertTrue(hanging.closed);
    }

    @Test
    void rememberedChildrenAreBounded() throws IOException {
        SiblingReadAhead ahead =
                new SiblingReadAhead(new ListingOptions(new Configuration(false)), NativeListing::new, 11, 60_000);
        ahead.listed(root.getPath(), list(root.getPath()));
        assertEquals(10, ahead.childrenRemembered());
        ahead.listed(root.getPath(), list(root.getPath()));
        assertEquals(10, ahead.childrenRemembered());
        ahead.listed(root + "/d0", list(root + "/d0"));
        assertEquals(4, ahead.childrenRemembered());
        ahead.listed(root + "/d1", list(root + "/d1"));
        assertEquals(8, ahead.childrenRemembered());
        ahead.invalidate();
        assertEquals(0, ahead.childrenRemembered());
    }

    @Test
    void disabledItRemembersNothing() throws IOException {
        SiblingReadAhead ahead = readAhead(0, 60_000);
        askForChildren(ahead, 4);
        assertEquals(0, ahead.childrenRemembered());
    }
}
