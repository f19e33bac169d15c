package io.millstream.hadoop.listing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.junit.jupiter.api.Test;

class VersionTest {
    private static Version of(String[] columns, int first) {
        String tag = columns[first + 2];
        return new Version(
                Long.parseLong(columns[first]), Long.parseLong(columns[first + 1]), tag.equals("-") ? null : tag);
    }

    @Test
    void sameVersionsAreThoseOfTheSharedVector() throws Exception {
        List<String> lines = Files.readAllLines(Path.of("../../testdata/versions.tsv"));
        for (String line : lines.subList(1, lines.size())) {
            String[] columns = line.split("\t");
            Version one = of(columns, 1);
            Version other = of(columns, 4);
            assertEquals(columns[0].equals("yes"), one.isSame(other), line);
            assertEquals(one.isSame(other), other.isSame(one), line);
        }
    }

    @Test
    void aStatusWithoutAnEtagHasNoTag() {
        FileStatus status = new FileStatus(5, false, 1, 1, 7, new org.apache.hadoop.fs.Path("/a"));
        assertNull(Version.tagOf(status));
        assertEquals(new Version(5, 7, null), Version.of(status));
    }
}
