package io.millstream.spark.sync

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}

import org.junit.jupiter.api.Assertions.{assertArrayEquals, assertEquals}
import org.junit.jupiter.api.Test

/** `tests/spark/cases/test_sync.py` compares the lines with those of `psync` without Spark. */
class ItemizedTest {
  private val preserved =
    Preserved(
      modes = 0xfff,
      owner = true,
      group = true,
      times = true,
      directoryTimes = true,
      linkTimes = true,
      links = true,
      amends = true)
  private val rules = Rules(preserved)

  private def entry(
      kind: String,
      size: Long = 1,
      seconds: Long = 100,
      mode: Int = 0x1a4,
      target: Option[String] = None) =
    Entry("p", kind, size, Some(seconds * 1000000000L), Some(mode), Some("o"), Some("g"), target)

  private def changes(source: Entry, found: Option[Entry], rules: Rules = rules): String =
    Decision.of(Some(source), found, rules).fold("")(_.changes)

  private val (file, directory, link) = (entry(Kind.File), entry(Kind.Directory), entry(Kind.Link, target = Some("t")))

  @Test def lettersOfWhatIsNew(): Unit =
    Seq(file -> ">f+++++++++", directory -> "cd+++++++++", link -> "cL+++++++++").foreach { case (source, expected) =>
      assertEquals(expected, changes(source, None))
      assertEquals(expected, changes(source, Some(entry(Kind.Other))))
    }

  @Test def lettersOfDifferences(): Unit = {
    val timeless = rules.copy(preserved = preserved.copy(times = false, linkTimes = false))
    assertEquals("", changes(file, Some(file)))
    assertEquals(">f.s.......", changes(file, Some(file.copy(size = 2))))
    assertEquals(">fcs.......", changes(file, Some(file.copy(size = 2)), rules.copy(checksum = true)))
    assertEquals(">f..t......", changes(file, Some(entry(Kind.File, seconds = 90))))
    assertEquals(">f.sT......", changes(file, Some(entry(Kind.File, size = 2)), timeless))
    assertEquals(">f.........", changes(file, Some(file), rules.copy(ignoreTimes = true)))
    assertEquals(
      ".f...pog...",
      changes(file, Some(file.copy(mode = Some(0x180), owner = Some("x"), group = Some("x")))))
    assertEquals(".d..t......", changes(directory, Some(entry(Kind.Directory, seconds = 90))))
    assertEquals("cLc.t......", changes(link, Some(entry(Kind.Link, seconds = 90, target = Some("u")))))
    assertEquals("cLc.T......", changes(link, Some(entry(Kind.Link, target = Some("u"))), timeless))
    val leavesLinks = rules.copy(preserved = preserved.copy(linkTimes = false))
    assertEquals("cLc.t......", changes(link, Some(entry(Kind.Link, seconds = 90, target = Some("u"))), leavesLinks))
  }

  @Test def lines(): Unit = {
    def line(
        action: String,
        kind: String,
        path: String,
        changes: String,
        isItemized: Boolean,
        prefix: String = "",
        target: Option[String] = None) =
      Itemized.line(
        Outcome(path, action, "", Status.Done, kind, changes = changes, target = target),
        prefix,
        isItemized)
    assertEquals(Some(">f+++++++++ a/b"), line(Action.Copy, Kind.File, "a/b", ">f+++++++++", isItemized = true))
    assertEquals(Some("s/a/b"), line(Action.Copy, Kind.File, "a/b", ">f+++++++++", isItemized = false, prefix = "s"))
    assertEquals(Some(".d..t...... ./"), line(Action.Amend, Kind.Directory, "", ".d..t......", isItemized = true))
    assertEquals(Some("s/"), line(Action.Amend, Kind.Directory, "", ".d..t......", isItemized = false, prefix = "s"))
    assertEquals(
      Some("cL+++++++++ l -> t"),
      line(Action.Link, Kind.Link, "l", "cL+++++++++", isItemized = true, target = Some("t")))
    assertEquals(Some("*deleting   d/"), line(Action.Delete, Kind.Directory, "d", "", isItemized = true))
    assertEquals(Some("deleting f"), line(Action.Delete, Kind.File, "f", "", isItemized = false))
    assertEquals(None, line(Action.Amend, Kind.File, "f", ".f...p.....", isItemized = false))
    assertEquals(None, line(Action.Amend, Kind.Directory, "d", "", isItemized = true))
  }

  @Test def namesAreEscapedAsByRsync(): Unit =
    Seq("a\nb" -> "a\\#012b", "\t\u007f" -> "\t\u007f", "\\#012" -> "\\#134#012", "\\#12" -> "\\#12", "é漢🙂" -> "é漢🙂")
      .foreach { case (name, expected) => assertEquals(expected, Itemized.escaped(name.getBytes(UTF_8))) }

  @Test def whatIsNotAsciiIsEscapedInTheCLocale(): Unit =
    assertEquals(
      "\\#303\\#251\u007f\\#001\\#134#012",
      Itemized.escaped("é\u007f\u0001\\#012".getBytes(UTF_8), isAscii = true))

  @Test def bytesThatAreNoUtf8AreEscaped(): Unit =
    Seq(
      "\u00ff\u00e9a" -> "\\#377\\#351a",
      "a\u00c3" -> "a\\#303",
      "\u00ed\u00a0\u0080" -> "\\#355\\#240\\#200").foreach { case (name, expected) =>
      assertEquals(expected, Itemized.escaped(name.getBytes(ISO_8859_1)))
    }

  @Test def settingsHoldAnyBytes(): Unit = {
    val all = Array.tabulate(256)(_.toByte)
    assertArrayEquals(all, FilterText.decode(FilterText.encode(all)))
    assertEquals("- a%25%0A%C3%A9", FilterText.encode("- a%\né".getBytes(UTF_8)))
    assertArrayEquals("%é%2".getBytes(UTF_8), FilterText.decode("%é%2"))
  }
}
