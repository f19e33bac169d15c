package io.millstream.hadoop.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.hadoop.listing.Version;
import io.millstream.hadoop.natives.WireWriter;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeScanTest {
    private static final byte[] ALL = {'t'};
    private static final byte[] NEWLINE = {};

    @TempDir
    Path directory;

    private NativeScan scan(byte[] predicate, int flags, String... names) throws IOException {
        FileRanges.Builder ranges = new FileRanges.Builder();
        for (String name : names) {
            Path file = directory.resolve(name);
            long size = Files.exists(file) ? Files.size(file) : 1;
            ranges.add(file.toString(), 0, size, new Version(size, 0, null));
        }
        return new NativeScan(ranges.build(), null, NEWLINE, predicate, NativeScan.WHOLE_ROWS, flags, 4, () -> false);
    }

    private void write(String name, String text) throws IOException {
        Files.writeString(directory.resolve(name), text);
    }

    @Test
    void countsRowsOfEachFile() throws Exception {
        write("a", "one\ntwo\n");
        write("ünï", "three\r\nfour\rfive");
        try (NativeScan scan = scan(ALL, NativeScan.COUNT | NativeScan.BY_RANGE, "a", "ünï")) {
            assertTrue(scan.next());
            assertEquals(2, scan.rows());
            assertEquals(0, scan.range());
            assertTrue(scan.next());
            assertEquals(3, scan.rows());
            assertEquals(1, scan.range());
            assertFalse(scan.next());
            assertEquals(2, scan.files());
            assertEquals(8 + 16, scan.bytesRead());
        }
    }

    @Test
    void countsRowsThatDiffer() throws Exception {
        write("a", "one\ntwo\none\n\n");
        write("b", "two\none\n");
        try (NativeScan scan = scan(ALL, NativeScan.DISTINCT, "a", "b")) {
            assertTrue(scan.next());
            assertEquals(3, scan.rows());
            assertNotEquals(0, scan.counts());
            assertEquals(6, scan.occurrences());
            assertFalse(scan.next());
        }
    }

    @Test
    void takesAnEncodedPredicate() throws Exception {
        write("a", "one\ntwo\nthree\n");
        byte[] containsT = new WireWriter().u8('c').prefixed(new byte[] {'t'}).toByteArray();
        try (NativeScan scan = scan(containsT, NativeScan.COUNT, "a")) {
            assertTrue(scan.next());
            assertEquals(2, scan.rows());
        }
        assertThrows(IllegalArgumentException.class, () -> scan(new byte[] {'?'}, 0, "a"));
    }

    @Test
    void tellsWhichFileIsMissing() throws Exception {
        write("a", "one\n");
        try (NativeScan scan = scan(ALL, NativeScan.BY_RANGE, "a", "gone")) {
            assertTrue(scan.next());
            assertThrows(FileNotFoundException.class, scan::next);
            assertEquals(1, scan.range());
            assertFalse(scan.next(), "an exception ends the scan");
        }
        try (NativeScan scan = scan(ALL, NativeScan.COUNT | NativeScan.SKIP_MISSING, "a", "gone")) {
            assertTrue(scan.next());
            assertFalse(scan.next());
            assertEquals(1, scan.missingFiles());
        }
    }

    @Test
    void isOverWhenAbandonedOrClosed() throws Exception {
        write("a", "one\n");
        NativeScan abandoned = scan(ALL, 0, "a");
        assertTrue(abandoned.next());
        abandoned.abandon();
        assertFalse(abandoned.next());
        abandoned.close();
        abandoned.close();
        abandoned.abandon();
        assertFalse(abandoned.next());
    }
}
