package io.millstream.hadoop;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class TableLogsTest {
  /** The native test {@code a_listing_and_what_it_shows_are_the_shared_vectors} reads and writes the same bytes. */
  @Test
  void writesAndReadsTheSharedVectors() throws Exception {
    byte[] entries = new WireWriter().prefixed("/t".getBytes(UTF_8)).u8(0).prefixed("a".getBytes(UTF_8)).u8(1).prefixed("_delta_log".getBytes(UTF_8))
        .u8(0).prefixed("metadata/version-hint".getBytes(UTF_8)).toByteArray();
    assertArrayEquals(vector("table-logs-entries.hex"), entries);
    String message = "/t: is a Delta Lake table, whose log (_delta_log) names its files; use the table's own compaction instead";
    assertEquals(Optional.of(new TableLogs.Evidence(true, message)), TableLogs.decoded(vector("table-logs-evidence.hex")));
    assertEquals(Optional.empty(), TableLogs.decoded(new byte[0]));
  }

  private static byte[] vector(String name) throws Exception {
    return HexFormat.of().parseHex(Files.readString(Path.of("../../testdata", name)).strip());
  }
}
