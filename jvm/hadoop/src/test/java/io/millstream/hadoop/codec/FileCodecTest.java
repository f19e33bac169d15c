package io.millstream.hadoop.codec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.hadoop.Lz4FileCodec;
import io.millstream.hadoop.SnappyFileCodec;
import io.millstream.hadoop.ZstdFileCodec;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.compress.CodecPool;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.io.compress.Lz4Codec;
import org.apache.hadoop.io.compress.SnappyCodec;
import org.apache.hadoop.io.compress.ZStandardCodec;
import org.junit.jupiter.api.Test;

class FileCodecTest {
    private static final String TEXT = "one\ntwo\n";
    /** As {@code lz4} writes them, with and without {@code -l}. */
    private static final byte[] FRAME = hex("04224d186440a7080000806f6e650a74776f0a000000002701c483");

    private static final byte[] LEGACY = hex("02214c1809000000806f6e650a74776f0a");
    private static final byte[] SKIPPABLE = hex("5f2a4d1802000000ffff");
    private static final byte[] ZSTD = hex("28b52ffd04584100006f6e650a74776f0ae6a60e40");
    private static final List<CompressionCodec> ALL =
            List.of(new Lz4FileCodec(), new SnappyFileCodec(), new ZstdFileCodec());

    private final Configuration conf = new Configuration();

    FileCodecTest() {
        conf.setStrings(
                "io.compression.codecs",
                ALL.stream().map(codec -> codec.getClass().getName()).toArray(String[]::new));
    }

    private CompressionCodec of(String name) {
        return new CompressionCodecFactory(conf).getCodec(new org.apache.hadoop.fs.Path(name));
    }

    private String decoded(String name, byte[]... parts) throws IOException {
        try (InputStream in = of(name).createInputStream(new ByteArrayInputStream(joined(parts)), null)) {
            return new String(in.readAllBytes(), StandardCharsets.US_ASCII);
        }
    }

    private String damage(String name, byte[]... parts) {
        return assertThrows(IOException.class, () -> decoded(name, parts)).getMessage();
    }

    @Test
    void framesAreDecoded() throws Exception {
        assertEquals(TEXT, decoded("f.lz4", FRAME));
        assertEquals(TEXT.repeat(3), decoded("f.LZ4", FRAME, SKIPPABLE, FRAME, LEGACY));
        assertEquals(TEXT, decoded("f.lz4", LEGACY));
        assertEquals(TEXT.repeat(2), decoded("f.zst", ZSTD, ZSTD));
        assertEquals("", decoded("f.lz4"));
    }

    @Test
    void filesOfHadoopAreDecoded() throws Exception {
        String lines = IntStream.range(0, 40)
                .mapToObj(n -> n % 3 + " a line of text\n")
                .collect(Collectors.joining());
        assertEquals(lines, decoded("f.lz4", vector("hadoop-lz4.hex")));
        assertEquals(lines, decoded("f.snappy", vector("hadoop-snappy.hex")));
    }

    @Test
    void damageIsAnErrorWithItsPlace() throws Exception {
        for (int length = 1; length < FRAME.length; length++) {
            assertEquals(
                    "damaged lz4 data at byte " + length + ": the file ends too early",
                    damage("f.lz4", Arrays.copyOf(FRAME, length)));
        }
        byte[] block = vector("hadoop-lz4.hex");
        assertTrue(damage("f.lz4", Arrays.copyOf(block, block.length - 1)).endsWith("the file ends too early"));
        assertTrue(
                damage("f.lz4", FRAME, TEXT.getBytes(StandardCharsets.US_ASCII)).endsWith("not an LZ4 frame"));
        assertTrue(damage("f.lz4", "plain text\n".getBytes(StandardCharsets.US_ASCII))
                .startsWith("damaged lz4 data"));
        assertTrue(damage("f.zst", Arrays.copyOf(ZSTD, 15)).startsWith("damaged zstd data"));
    }

    @Test
    void errorsOfTheFileReachTheReader() throws Exception {
        IOException failure = new IOException("the disk is broken");
        InputStream broken = new InputStream() {
            @Override
            public int read() throws IOException {
                throw failure;
            }
        };
        try (InputStream in = of("f.lz4").createInputStream(broken, null)) {
            assertSame(failure, assertThrows(IOException.class, in::read));
            assertTrue(assertThrows(IOException.class, in::read).getMessage().contains("an earlier read has failed"));
        }
    }

    @Test
    void bytesAreReadSinglyAndFromInside() throws Exception {
        try (InputStream in = of("f.lz4").createInputStream(new ByteArrayInputStream(FRAME), null)) {
            assertEquals('o', in.read());
            byte[] some = new byte[5];
            assertEquals(0, in.read(some, 5, 0));
            assertEquals(2, in.read(some, 2, 2));
            assertEquals("\0\0ne\0", new String(some, StandardCharsets.US_ASCII));
            assertThrows(IndexOutOfBoundsException.class, () -> in.read(some, 2, 4));
            assertEquals("\ntwo\n", new String(in.readAllBytes(), StandardCharsets.US_ASCII));
            assertEquals(-1, in.read());
        }
    }

    @Test
    void aStreamIsClosedOnceAndForAll() throws Exception {
        boolean[] closed = {false};
        InputStream file = new ByteArrayInputStream(FRAME) {
            @Override
            public void close() {
                closed[0] = true;
            }
        };
        CompressionInputStream in = of("f.lz4").createInputStream(file, null);
        in.close();
        in.close();
        assertTrue(closed[0]);
        assertEquals(
                "the stream is closed",
                assertThrows(IOException.class, in::read).getMessage());
        assertThrows(IOException.class, in::resetState);
    }

    @Test
    void anotherFileFollowsInTheSameStream() throws Exception {
        ByteArrayInputStream file = new ByteArrayInputStream(FRAME);
        try (CompressionInputStream in = of("f.lz4").createInputStream(file, null)) {
            assertEquals('o', in.read());
            file.reset();
            in.resetState();
            assertEquals(TEXT, new String(in.readAllBytes(), StandardCharsets.US_ASCII));
        }
    }

    /** By codec name, as writers request them. */
    @Test
    void namesOfCodecsAreThoseOfHadoop() {
        CompressionCodecFactory codecs = new CompressionCodecFactory(conf);
        assertEquals(
                List.of(Lz4FileCodec.class, SnappyFileCodec.class, ZstdFileCodec.class, GzipCodec.class),
                List.of(
                        of("f.lz4").getClass(),
                        of("f.snappy").getClass(),
                        of("f.zst").getClass(),
                        of("f.gz").getClass()));
        for (Class<?> hadoops : List.of(Lz4Codec.class, SnappyCodec.class, ZStandardCodec.class)) {
            String name = hadoops.getSimpleName();
            assertEquals(hadoops, codecs.getCodecByName(name).getClass());
            assertEquals(
                    hadoops, codecs.getCodecByName(name.replace("Codec", "")).getClass());
            assertEquals(hadoops, codecs.getCodecByClassName(hadoops.getName()).getClass());
        }
    }

    @Test
    void nativeReadersKnowThem() {
        assertEquals(
                List.of(TextCodec.LZ4, TextCodec.SNAPPY, TextCodec.ZSTD),
                ALL.stream().map(FileCodec::textCodec).toList());
        assertEquals(
                List.of(Lz4Codec.class, SnappyCodec.class, ZStandardCodec.class),
                ALL.stream().map(FileCodec::hadoops).toList());
        assertEquals(GzipCodec.class, FileCodec.hadoops(new GzipCodec()));
    }

    @Test
    void codecsAreThoseOfTheSharedTable() throws Exception {
        List<String> lines = Files.readAllLines(Path.of("../../testdata/codecs.tsv"));
        assertEquals(TextCodec.values().length, lines.size() - 1);
        for (TextCodec codec : TextCodec.values()) {
            String[] columns = lines.get(codec.code()).split("\t");
            assertEquals(
                    List.of(String.valueOf(codec.code()), codec.name().toLowerCase(Locale.ROOT)),
                    List.of(columns[0], columns[1]));
            assertEquals(codec.hasIndex() ? "yes" : "no", columns[5], codec.name());
            assertEquals(codec, FileCodec.textCodec(of("f" + columns[2])));
            for (String name : columns[6].split(",")) {
                Class<?> hadoops = Class.forName("org.apache.hadoop.io.compress." + name);
                CompressionCodec made =
                        (CompressionCodec) hadoops.getDeclaredConstructor().newInstance();
                assertEquals(codec, FileCodec.textCodec(made));
                assertEquals(columns[2], made.getDefaultExtension());
            }
        }
    }

    /** Hadoop's own codec throws here unless Hadoop has its native library, which is not the case in tests. */
    @Test
    void zstandardNeedsNoDecompressor() {
        assertFalse(ZStandardCodec.isNativeCodeLoaded());
        assertThrows(RuntimeException.class, () -> CodecPool.getDecompressor(new ZStandardCodec()));
        assertNull(CodecPool.getDecompressor(new ZstdFileCodec()));
    }

    @Test
    void formsThatHadoopDoesNotKnowAreRecognized() throws Exception {
        for (byte[] file : List.of(FRAME, LEGACY, SKIPPABLE)) {
            assertTrue(TextCodec.LZ4.isUnknownToHadoop(Arrays.copyOf(file, TextCodec.MAGIC_BYTES)));
        }
        assertTrue(TextCodec.SNAPPY.isUnknownToHadoop(hex("ff060000")));
        assertFalse(TextCodec.LZ4.isUnknownToHadoop(Arrays.copyOf(vector("hadoop-lz4.hex"), TextCodec.MAGIC_BYTES)));
        assertFalse(
                TextCodec.SNAPPY.isUnknownToHadoop(Arrays.copyOf(vector("hadoop-snappy.hex"), TextCodec.MAGIC_BYTES)));
        assertFalse(TextCodec.LZ4.isUnknownToHadoop(new byte[0]));
    }

    private static byte[] hex(String digits) {
        return HexFormat.of().parseHex(digits);
    }

    private static byte[] vector(String name) throws IOException {
        return hex(Files.readString(Path.of("../../testdata", name)).strip());
    }

    private static byte[] joined(byte[]... parts) {
        return hex(Arrays.stream(parts).map(HexFormat.of()::formatHex).collect(Collectors.joining()));
    }
}
