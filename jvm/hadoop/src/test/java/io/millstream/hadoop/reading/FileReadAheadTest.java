package io.millstream.hadoop.reading;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.millstream.hadoop.MillstreamLocalFileSystem;
import io.millstream.hadoop.listing.Version;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileReadAheadTest {
    private static final int READERS = 4;
    private static final int LARGE = (1 << 20) + 1;

    @TempDir
    Path directory;

    private FileSystem fileSystem;

    @BeforeEach
    void makeFileSystem() throws IOException {
        fileSystem = new MillstreamLocalFileSystem();
        fileSystem.initialize(URI.create("file:///"), new Configuration(false));
    }

    private String path(String name) {
        return directory.resolve(name).toString();
    }

    private void write(String name, int size) throws IOException {
        byte[] bytes = new byte[size];
        java.util.Arrays.fill(bytes, (byte) name.charAt(0));
        Files.write(directory.resolve(name), bytes);
    }

    private FileReadAhead ahead(String... names) throws IOException {
        FileRanges.Builder ranges = new FileRanges.Builder();
        for (String name : names) {
            Path file = directory.resolve(name);
            long size = Files.exists(file) ? Files.size(file) : 1;
            ranges.add(file.toString(), 0, size, new Version(size, 0, null));
        }
        return new FileReadAhead(ranges.build(), null, 1, false, READERS, () -> false);
    }

    private byte[] open(FileReadAhead ahead, String name) {
        return ahead.serve(() -> {
            try (FSDataInputStream in = fileSystem.open(new org.apache.hadoop.fs.Path(path(name)))) {
                return in.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    @Test
    void filesAreReadBeforeTheyAreOpened() throws Exception {
        String[] names = new String[200];
        for (int i = 0; i < names.length; i++) {
            names[i] = (char) ('a' + i % 26) + "-" + i;
            write(names[i], i + 1);
        }
        try (FileReadAhead ahead = ahead(names)) {
            for (String name : names) {
                assertArrayEquals(Files.readAllBytes(directory.resolve(name)), open(ahead, name), name);
            }
            assertEquals(names.length, ahead.filesServed());
        }
    }

    @Test
    void aFileMayBeOpenedAgain() throws Exception {
        write("a", 3);
        write("b", 4);
        try (FileReadAhead ahead = ahead("a", "b")) {
            assertEquals(3, open(ahead, "a").length);
            assertEquals(3, open(ahead, "a").length);
            assertEquals(4, open(ahead, "b").length);
            assertEquals(2, ahead.filesServed());
        }
    }

    @Test
    void emptyAndLargeFilesAndOthersAreOpenedAsUsual() throws Exception {
        write("a", 1);
        write("empty", 0);
        write("large", LARGE);
        write("other", 2);
        write("z", 5);
        try (FileReadAhead ahead = ahead("a", "empty", "large", "z")) {
            for (String name : new String[] {"a", "empty", "other", "large", "z"}) {
                assertArrayEquals(Files.readAllBytes(directory.resolve(name)), open(ahead, name), name);
            }
            assertEquals(2, ahead.filesServed());
        }
    }

    @Test
    void filesThatAreNotOpenedAreSkipped() throws Exception {
        String[] names = new String[100];
        for (int i = 0; i < names.length; i++) {
            names[i] = (char) ('a' + i % 26) + "-" + i;
            write(names[i], i + 1);
        }
        try (FileReadAhead ahead = ahead(names)) {
            for (int i = 3; i < names.length; i += 7) {
                assertArrayEquals(Files.readAllBytes(directory.resolve(names[i])), open(ahead, names[i]), names[i]);
            }
            assertEquals(1, open(ahead, names[0]).length);
            assertEquals(14, ahead.filesServed());
        }
    }

    @Test
    void aFileOfAnotherSizeThanListedIsOpenedAsUsual() throws Exception {
        for (String name : new String[] {"a", "b", "c"}) {
            write(name, 3);
        }
        try (FileReadAhead ahead = ahead("a", "b", "c")) {
            write("b", 9);
            assertEquals(3, open(ahead, "a").length);
            assertEquals(9, status(ahead, "b").getLen());
            assertEquals(9, open(ahead, "b").length);
            assertEquals(3, open(ahead, "c").length);
            assertEquals(2, ahead.filesServed());
        }
    }

    @Test
    void theStatusFitsTheBytesOfAFileThatIsReplacedMeanwhile() throws Exception {
        write("a", 3);
        write("b", 4);
        try (FileReadAhead ahead = ahead("a", "b")) {
            assertEquals(3, open(ahead, "a").length);
            write("b", 9);
            assertEquals(4, status(ahead, "b").getLen());
            assertEquals(4, open(ahead, "b").length);
        }
    }

    private FileStatus status(FileReadAhead ahead, String name) {
        return ahead.serve(() -> {
            try {
                return fileSystem.getFileStatus(new org.apache.hadoop.fs.Path(path(name)));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    @Test
    void continuesAfterAMissingFile() throws Exception {
        write("a", 1);
        write("c", 3);
        write("d", 4);
        try (FileReadAhead ahead = ahead("a", "b", "c", "d")) {
            assertEquals(1, open(ahead, "a").length);
            var failure = assertThrows(UncheckedIOException.class, () -> open(ahead, "b"));
            assertEquals(FileNotFoundException.class, failure.getCause().getClass());
            assertEquals(3, open(ahead, "c").length);
            assertEquals(4, open(ahead, "d").length);
            // Files in the same batch as the missing one are opened as usual.
            assertEquals(2, ahead.filesServed());
        }
    }

    @Test
    void wrongChecksumsFailAsUsual() throws Exception {
        try (var out = fileSystem.create(new org.apache.hadoop.fs.Path(path("summed")))) {
            out.writeBytes("some text");
        }
        Files.writeString(directory.resolve("summed"), "Some text");
        try (FileReadAhead ahead = ahead("summed")) {
            var failure = assertThrows(UncheckedIOException.class, () -> open(ahead, "summed"));
            assertEquals(
                    org.apache.hadoop.fs.ChecksumException.class,
                    failure.getCause().getClass());
        }
    }

    @Test
    void nothingIsServedOutsideServeOrAfterClose() throws Exception {
        write("a", 1);
        FileReadAhead ahead = ahead("a");
        assertNull(FileReadAhead.stream(fileSystem, new org.apache.hadoop.fs.Path(path("a"))));
        ahead.close();
        assertNull(ahead.bytes(path("a")));
        assertEquals(1, open(ahead, "a").length);
    }

    @Test
    void streamsCanSeek() throws Exception {
        Files.writeString(directory.resolve("a"), "0123456789");
        try (FileReadAhead ahead = ahead("a")) {
            String read = ahead.serve(() -> {
                try (FSDataInputStream in = fileSystem.open(new org.apache.hadoop.fs.Path(path("a")))) {
                    byte[] two = new byte[2];
                    in.readFully(7, two);
                    in.seek(4);
                    assertThrows(IOException.class, () -> in.seek(11));
                    return new String(two) + (char) in.read() + in.getPos() + in.available();
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
            assertEquals("78455", read);
        }
    }
}
