package io.millstream.hadoop.tree;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeFilterTest {
    private static byte[][] bytes(String... texts) {
        return Stream.of(texts).map(text -> text.getBytes(UTF_8)).toArray(byte[][]::new);
    }

    private static List<String> flat(String... given) throws IOException {
        return Stream.of(NativeFilter.rules(bytes(given)))
                .map(rule -> new String(rule, UTF_8))
                .toList();
    }

    private static NativeFilter filter(boolean deletesExcluded, String... rules) throws IOException {
        return NativeFilter.of(
                bytes(rules), deletesExcluded, "data/source".getBytes(UTF_8), "data/destination".getBytes(UTF_8));
    }

    @Test
    void rulesOfFilesAreAmongTheOthers(@TempDir Path directory) throws IOException {
        Path file = Files.writeString(directory.resolve("rules"), "#comment\n- c\nP d\n");
        assertEquals(List.of("- a", "+ b", "- c", "-r d", "- *.é"), flat("-a", "+b", "fmerge " + file, "f- *.é"));
        assertEquals(List.of("- b"), flat("-a", "f!", "-b"));
    }

    @Test
    void mistakesNameTheRule() {
        assertEquals(
                "filter rule 'x y': a rule begins with -, +, H, S, P, R, ., !, or one of their long names",
                assertThrows(IllegalArgumentException.class, () -> flat("-a", "fx y"))
                        .getMessage());
        assertTrue(assertThrows(IllegalArgumentException.class, () -> flat("fdir-merge .rules"))
                .getMessage()
                .contains("dir-merge"));
        assertThrows(IllegalArgumentException.class, () -> flat("f. /nonexistent"));
        assertThrows(IllegalArgumentException.class, () -> flat("f. -"));
    }

    @Test
    void sidesAreAskedApart() throws IOException {
        try (NativeFilter filter =
                filter(false, "-s hidden", "-r protected", "-p perishable", "-/ /data/source/at", "- both/")) {
            assertEquals(List.of(false, true), sides(filter, "hidden", false));
            assertEquals(List.of(true, false), sides(filter, "below/protected", false));
            assertEquals(List.of(false, true), sides(filter, "at", false));
            assertEquals(List.of(true, true), sides(filter, "both", false));
            assertEquals(List.of(false, false), sides(filter, "both", true));
            assertFalse(filter.isDeletable("perishable".getBytes(UTF_8), false, false));
            assertTrue(filter.isDeletable("perishable".getBytes(UTF_8), false, true));
        }
        try (NativeFilter filter = filter(true, "- both")) {
            assertEquals(List.of(false, true), sides(filter, "both", false));
        }
    }

    private static List<Boolean> sides(NativeFilter filter, String path, boolean isDirectory) {
        byte[] bytes = path.getBytes(UTF_8);
        return List.of(filter.isCopied(bytes, isDirectory), filter.isDeletable(bytes, isDirectory, false));
    }

    @Test
    void nobodyAsksAfterTheEnd() throws IOException {
        NativeFilter filter = filter(false, "- a");
        filter.close();
        filter.close();
        assertThrows(IllegalStateException.class, () -> filter.isCopied(bytes("a")[0], false));
    }
}
