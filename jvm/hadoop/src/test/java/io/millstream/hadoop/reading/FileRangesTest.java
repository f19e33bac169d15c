package io.millstream.hadoop.reading;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.hadoop.codec.TextCodec;
import io.millstream.hadoop.listing.Version;
import io.millstream.hadoop.natives.WireWriter;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FileRangesTest {
    private static String[] at(FileRanges.Cursor range) {
        return new String[] {
            range.file(),
            range.uri(),
            range.start() + "+" + range.length() + "/" + range.size() + "@" + range.modificationTime()
        };
    }

    @Test
    void rangesKeepTheirOrder() {
        String[] paths = {"/d/a", "/d/b b", "/e/f/ü%", "/root", "/e/f/again"};
        FileRanges.Builder builder = new FileRanges.Builder();
        for (int i = 0; i < paths.length; i++) {
            builder.add(paths[i], i, i + 10, new Version(i + 100, i + 1000, null));
        }
        assertEquals(paths.length, builder.count());
        FileRanges ranges = builder.build();
        FileRanges.Cursor cursor = ranges.cursor();
        for (int i = 0; i < paths.length; i++) {
            assertTrue(cursor.next());
            String[] expected = {
                paths[i],
                new Path("file", "", paths[i]).toUri().toString(),
                i + "+" + (i + 10) + "/" + (i + 100) + "@" + (i + 1000)
            };
            for (int k = 0; k < expected.length; k++) {
                assertEquals(expected[k], at(cursor)[k]);
                assertEquals(expected[k], at(ranges.at(i))[k]);
            }
        }
        assertFalse(cursor.next());
        List<FileRanges> each = ranges.each();
        assertEquals(paths.length, each.size());
        for (int i = 0; i < paths.length; i++) {
            FileRanges.Cursor one = each.get(i).cursor();
            assertTrue(one.next());
            assertArrayEquals(at(ranges.at(i)), at(one));
            assertEquals(paths[i].substring(paths[i].lastIndexOf('/') + 1), one.name());
            assertFalse(one.next());
        }
        FileRanges.Cursor some = ranges.slice(2, 4).cursor();
        assertTrue(some.next());
        assertEquals("/e/f/ü%", some.file());
        assertTrue(some.next());
        assertEquals("/root", some.file());
        assertFalse(some.next());
    }

    /** Whatever this JVM's locale is, one of the two is not its encoding. */
    @ParameterizedTest
    @ValueSource(strings = {"UTF-8", "ISO-8859-1"})
    void namesKeepTheEncodingOfThePackingJvm(String encoding) throws IOException {
        byte[] packed = packed("/d/é".getBytes(encoding), "ü ñ".getBytes(encoding));
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(written);
        out.writeUTF("file://");
        out.writeUTF(encoding);
        out.writeInt(packed.length);
        out.write(packed);
        FileRanges ranges = FileRanges.read(new DataInputStream(new ByteArrayInputStream(written.toByteArray())));
        FileRanges.Cursor file = ranges.cursor();
        assertTrue(file.next());
        assertEquals("/d/é/ü ñ", file.file());
        assertEquals("file:///d/é/ü%20ñ", file.uri());
        assertArrayEquals(packed, ranges.slice(0, 1).packed());
        assertArrayEquals(packed, ranges.filter(range -> range.length() == 2).packed());
        ByteArrayOutputStream again = new ByteArrayOutputStream();
        ranges.slice(0, 1).write(new DataOutputStream(again));
        assertArrayEquals(written.toByteArray(), again.toByteArray());
    }

    /** The engine's test {@code ranges_are_the_shared_vector} decodes the same bytes. */
    @Test
    void rangesAreTheSharedVector() throws IOException {
        String hex = Files.readString(java.nio.file.Path.of("../../testdata/file-ranges.hex"))
                .strip();
        FileRanges.Builder ranges = new FileRanges.Builder(URI.create("s3a://bucket"));
        ranges.add("/d e/é.txt", 1, 2, new Version(1L << 40, -4, "d41d8cd98f00b204e9800998ecf8427e-3"));
        ranges.add("/b", 0, 5);
        ranges.addCompressed(
                "/c.gz", 7, 9, new Version(5, 3, null), TextCodec.GZIP, "index".getBytes(StandardCharsets.US_ASCII));
        assertEquals(hex, HexFormat.of().formatHex(ranges.build().packed()));
        FileRanges.Cursor file = ranges.build().cursor();
        assertTrue(file.next());
        assertEquals("s3a://bucket/d%20e/é.txt", file.uri());
        assertEquals("d41d8cd98f00b204e9800998ecf8427e-3", file.version().tag());
    }

    private static byte[] packed(byte[] directory, byte[] name) {
        return new WireWriter()
                .u8('d')
                .prefixed(directory)
                .u8(1)
                .u8('f')
                .prefixed(name)
                .u64(1)
                .u64(2)
                .u64(3)
                .u64(4)
                .u32(0)
                .toByteArray();
    }
}
