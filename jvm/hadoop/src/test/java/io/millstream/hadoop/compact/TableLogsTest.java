package io.millstream.hadoop.compact;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.hadoop.natives.WireWriter;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Optional;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.util.functional.RemoteIterators;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TableLogsTest {
    /** The native test {@code a_listing_and_what_it_shows_are_the_shared_vectors} reads and writes the same bytes. */
    @Test
    void writesAndReadsTheSharedVectors() throws Exception {
        byte[] entries = new WireWriter()
                .prefixed("/t".getBytes(UTF_8))
                .u8(0)
                .prefixed("a".getBytes(UTF_8))
                .u8(1)
                .prefixed("_delta_log".getBytes(UTF_8))
                .u8(0)
                .prefixed("metadata/version-hint".getBytes(UTF_8))
                .toByteArray();
        assertArrayEquals(vector("table-logs-entries.hex"), entries);
        String message =
                "/t: is a Delta Lake table, whose log (_delta_log) names its files; use the table's own compaction instead";
        assertEquals(
                Optional.of(new TableLogs.Evidence(true, false, message)),
                TableLogs.decoded(vector("table-logs-evidence.hex")));
        assertEquals(Optional.empty(), TableLogs.decoded(new byte[0]));
    }

    /** Issue 36: the user may search a directory above the tree but not list it. */
    @Test
    void findsByNameWhatMayNotBeListed(@TempDir Path top) throws Exception {
        assertEquals(Optional.empty(), found(top, path -> {
            throw new AccessControlException("Permission denied");
        }));
        Files.createDirectories(top.resolve("w/_delta_log"));
        assertTrue(found(top, path -> {
                    throw new AccessControlException("Permission denied");
                })
                .orElseThrow()
                .isKnown());
    }

    /** Issue 36: HDFS denies access below a file; listed entries count anyway. */
    @Test
    void findsByNameWhatHasTooManyEntriesToList(@TempDir Path top) throws Exception {
        Files.createDirectories(top.resolve("w"));
        Files.writeString(top.resolve("w/metadata"), "a file");
        assertEquals(Optional.empty(), found(top, TableLogsTest::many));
        Files.createDirectories(top.resolve("w/_delta_log"));
        assertTrue(found(top, TableLogsTest::many).orElseThrow().isKnown());
        Files.delete(top.resolve("w/_delta_log"));
        Files.delete(top.resolve("w/metadata"));
        Files.createDirectories(top.resolve("w/metadata"));
        Files.writeString(top.resolve("w/metadata/00000-1.metadata.json"), "{}");
        assertTrue(found(top, TableLogsTest::many).orElseThrow().message().contains("is an Iceberg table"));
    }

    private static FileStatus[] many(org.apache.hadoop.fs.Path directory) {
        return IntStream.range(0, 6_000)
                .mapToObj(n -> new FileStatus(1, false, 1, 1, 1, new org.apache.hadoop.fs.Path(directory, "n" + n)))
                .toArray(FileStatus[]::new);
    }

    private interface Listing {
        FileStatus[] of(org.apache.hadoop.fs.Path directory) throws IOException;
    }

    /**
     * The findings for {@code w/t} on a file system that denies access below files, as HDFS does, and lists {@code w}
     * like this.
     */
    private static Optional<TableLogs.Evidence> found(Path top, Listing listing) throws IOException {
        Files.createDirectories(top.resolve("w/t"));
        Files.writeString(top.resolve("w/t/part-00000-aa.txt"), "1\n");
        RawLocalFileSystem fs = new RawLocalFileSystem() {
            @Override
            public RemoteIterator<FileStatus> listStatusIterator(org.apache.hadoop.fs.Path path) throws IOException {
                return RemoteIterators.remoteIteratorFromArray(
                        path.getName().equals("w") ? listing.of(path) : listStatus(path));
            }

            @Override
            public FileStatus getFileStatus(org.apache.hadoop.fs.Path path) throws IOException {
                if (Files.isRegularFile(Path.of(path.getParent().toUri().getPath()))) {
                    throw new AccessControlException("Permission denied: not a directory");
                }
                return super.getFileStatus(path);
            }
        };
        try (fs) {
            fs.initialize(URI.create("file:///"), new Configuration(false));
            return TableLogs.of(
                    fs,
                    fs.makeQualified(new org.apache.hadoop.fs.Path(
                            top.toRealPath().resolve("w/t").toUri())));
        }
    }

    private static byte[] vector(String name) throws Exception {
        return HexFormat.of()
                .parseHex(Files.readString(Path.of("../../testdata", name)).strip());
    }
}
