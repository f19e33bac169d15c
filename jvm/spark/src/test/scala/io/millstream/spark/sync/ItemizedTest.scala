package io.millstream.spark.sync

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.nio.file.{Files, Path}
import java.util.HexFormat

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

  private val all = Seq(
    Outcome("é", Action.Copy, "", Status.Done, Kind.File, changes = ">f+++++++++"),
    Outcome("l", Action.Link, "", Status.Done, Kind.Link, changes = "cL+++++++++", target = Some("t")),
    Outcome("h", Action.HardLink, "", Status.Done, Kind.File, changes = "hf         ", target = Some("g")),
    Outcome("d", Action.Delete, "", Status.Done, Kind.Directory))

  @Test def linesNameWhatChanges(): Unit = {
    assertEquals(
      Seq(">f+++++++++ s/é", "cL+++++++++ s/l -> t", "hf          s/h => s/g", "*deleting   s/d/"),
      Itemized("s", isItemized = true).lines(all.iterator).toSeq)
    assertEquals(
      Seq("\\#303\\#251", "l -> t", "h => g", "deleting d/"),
      Itemized("", isItemized = false, isAscii = true).lines(all.iterator).toSeq)
  }

  @Test def whatDoesNotChangeHasNoLine(): Unit = {
    val restored = Outcome("d", Action.Amend, "", Status.Done, Kind.Directory)
    val amended = Outcome("f", Action.Amend, "", Status.Done, Kind.File, changes = ".f...p.....")
    assertEquals(Nil, Itemized("", isItemized = false).lines(Iterator(restored, amended)).toSeq)
    assertEquals(
      Seq(".f...p..... f"),
      Itemized("", isItemized = true).lines(Iterator(restored, amended)).toSeq)
  }

  @Test def namesMayHaveAnyBytes(): Unit = {
    val copied = Outcome(Names.text("a\u00ff\n".getBytes(ISO_8859_1)), Action.Copy, "", Status.Done, Kind.File)
    val many = Iterator.fill(3000)(copied.copy(changes = ">f+++++++++"))
    val lines = Itemized("", isItemized = false).lines(many).toSeq
    assertEquals(Set("a\\#377\\#012"), lines.toSet)
    assertEquals(3000, lines.length)
  }

  @Test def changesAreTheSharedVector(): Unit = {
    val vector = HexFormat.of().parseHex(Files.readString(Path.of("../../testdata/sync-changes.hex")).trim)
    assertArrayEquals(vector, Itemized("s", isItemized = true, isAscii = true).changes(all))
  }

  @Test def settingsHoldAnyBytes(): Unit = {
    val all = Array.tabulate(256)(_.toByte)
    assertArrayEquals(all, FilterText.decode(FilterText.encode(all)))
    assertEquals("- a%25%0A%C3%A9", FilterText.encode("- a%\né".getBytes(UTF_8)))
    assertArrayEquals("%é%2".getBytes(UTF_8), FilterText.decode("%é%2"))
  }
}
