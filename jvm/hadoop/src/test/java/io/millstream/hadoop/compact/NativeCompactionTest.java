package io.millstream.hadoop.compact;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class NativeCompactionTest {
    /** The native test {@code obstacles_are_the_shared_vector} writes the same bytes. */
    @Test
    void readsTheObstaclesThatNativeCodeWrites() throws Exception {
        assertEquals(
                Map.of("a", "a is a symbolic link", "é %", "é % is a symbolic link"),
                NativeCompaction.decodedObstacles(vector("compaction-obstacles.hex")));
    }

    /** The native test {@code result_is_the_shared_vector} writes the same bytes. */
    @Test
    void readsTheResultThatNativeCodeWrites() throws Exception {
        NativeCompaction.Applied applied = new NativeCompaction.Applied(vector("compaction-result.hex"));
        assertEquals(2, applied.outputs());
        assertEquals(1L << 32, applied.replaced());
        assertEquals(
                List.of(
                        new NativeCompaction.Left("/d/e", 3, "é has changed since it was read"),
                        new NativeCompaction.Left("/f", 1, "l is a symbolic link")),
                applied.left());
    }

    private static byte[] vector(String name) throws Exception {
        return HexFormat.of()
                .parseHex(Files.readString(Path.of("../../testdata", name)).strip());
    }
}
