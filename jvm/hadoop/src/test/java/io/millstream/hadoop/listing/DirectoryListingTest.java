package io.millstream.hadoop.listing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

class DirectoryListingTest {
    /** The engine's test {@code block_is_the_shared_vector} writes the same bytes. */
    @Test
    void readsTheBlockThatTheEngineWrites() throws Exception {
        String hex =
                Files.readString(Path.of("../../testdata/listing-block.hex")).strip();
        List<DirectoryListing> listings = DirectoryListing.parse(HexFormat.of().parseHex(hex));
        assertEquals(1, listings.size());
        DirectoryListing listing = listings.get(0);
        assertEquals(3, listing.root());
        assertEquals(0, listing.errno());
        assertEquals(2, listing.unexamined());
        assertTrue(listing.hasMore());
        assertEquals("/d/e", listing.directory());
        assertEquals("file:///d/e", listing.directoryPath().toUri().toString());
        assertEquals(2, listing.count());
        assertEquals(List.of("a", "é %"), List.of(listing.name(0), listing.name(1)));
        assertEquals(List.of(1L, 1L << 40), List.of(listing.size(0), listing.size(1)));
        assertEquals(List.of(2003L, -500L), List.of(listing.modificationTime(0), listing.modificationTime(1)));
        assertEquals(List.of(false, true), List.of(listing.isDirectory(0), listing.isDirectory(1)));
        assertEquals("file:///d/e/é%20%25", listing.path(1).toUri().toString());
    }
}
