package io.millstream.spark.sync

import org.junit.jupiter.api.Assertions.{assertEquals, assertNotEquals, assertThrows}
import org.junit.jupiter.api.Test

class SyncOptionsTest {
  private def of(settings: (String, String)*) = SyncOptions.of(Map("source" -> "/a", "destination" -> "/b") ++ settings)

  private def refused(settings: (String, String)*): String =
    assertThrows(classOf[SyncFailure], () => of(settings: _*)).getMessage

  @Test def settings(): Unit = {
    assertEquals(SyncOptions("/a", "/b"), of())
    assertEquals(
      SyncOptions("/a", "/b", delete = true, maxDelete = Some(0), times = false),
      of("delete" -> "true", "max-delete" -> "-1", "times" -> "false"))
    assertEquals(of(), of("hard-links" -> "false", "devices" -> "true"))
    assertEquals(Some("sparse"), of("sparse" -> "true", "acls" -> "true").ofLocalTrees)
    assertEquals(of("acls" -> "true"), of("acls" -> "true", "perms" -> "false"))
    assertEquals(Some("acls"), of("acls" -> "true", "one-file-system" -> "true").ofExtended)
    assertEquals(
      SyncOptions("/a", "/b", delete = true, deleteExcluded = true, ignoreErrors = true),
      of("delete-excluded" -> "true", "ignore-errors" -> "true"))
    assertEquals(
      SyncOptions("/a", "/b", prefix = "é%", bytesPerSecond = Some(5)),
      of("prefix" -> "%C3%A9%25", "bytes-per-second" -> "5"))
  }

  @Test def mistakesNameTheOption(): Unit = {
    assertEquals("unknown option colour", refused("colour" -> "red"))
    assertEquals("delete: must be true or false, but is yes", refused("delete" -> "yes"))
    assertEquals("max-delete: x is not a number", refused("max-delete" -> "x"))
    assertEquals("unknown option filter-x", refused("filter-x" -> "-a"))
    assertEquals("no source was given", refused("source" -> ""))
  }

  @Test def anotherRunIsNotContinued(): Unit = {
    assertEquals(of().identity, of("checkpoint" -> "/c", "verify" -> "true", "items" -> "true").identity)
    Seq(
      "delete" -> "true",
      "force" -> "true",
      "prefix" -> "a",
      "destination" -> "/d",
      "dry-run" -> "true",
      "size-only" -> "true")
      .foreach(other => assertNotEquals(of().identity, of(other).identity))
  }
}
