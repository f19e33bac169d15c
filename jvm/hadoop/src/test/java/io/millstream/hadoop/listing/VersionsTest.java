package io.millstream.hadoop.listing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.apache.hadoop.fs.BlockLocation;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class VersionsTest {
    private static final String SUM = "d41d8cd98f00b204e9800998ecf8427e";

    @ParameterizedTest
    @ValueSource(
            strings = {
                SUM,
                SUM + "-12",
                "D41D8CD98F00B204E9800998ECF8427E",
                "short",
                "d41d8cd98f00b204e9800998ecf8427",
                "é\"x"
            })
    void versionsSurvive(String version) {
        assertEquals(version, Versions.unpack(Versions.pack(version)));
        assertEquals(version, Versions.unpack(Versions.pack('"' + version + '"')));
    }

    @Test
    void sumsAreSmall() {
        assertEquals(17, Versions.pack(SUM).length);
        assertNull(Versions.unpack(Versions.pack(null)));
        assertNull(Versions.unpack(Versions.pack("")));
    }

    @Test
    void blocksKeepTheirHosts() throws Exception {
        BlockHosts blocks = new BlockHosts();
        for (int file = 0; file < 40; file++) {
            BlockLocation[] located = new BlockLocation[file % 3];
            for (int i = 0; i < located.length; i++) {
                String host = "host" + (file + i) % 5;
                located[i] = new BlockLocation(
                        new String[] {host + ":9866"}, new String[] {host}, i * 100L, i + 1 < located.length ? 100 : 7);
            }
            blocks.add(located);
        }
        BlockLocation[] found = blocks.locations(38, 107);
        assertEquals(2, found.length);
        assertEquals("host3", found[0].getHosts()[0]);
        assertEquals("host4:9866", found[1].getNames()[0]);
        assertEquals(100, found[1].getOffset());
        assertEquals(7, found[1].getLength());
        assertEquals(100, found[0].getLength());
        assertEquals(0, blocks.locations(39, 0).length);
    }
}
