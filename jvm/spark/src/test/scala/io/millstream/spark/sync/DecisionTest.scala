package io.millstream.spark.sync

import java.nio.file.{Files, Path}
import java.util.HexFormat

import io.millstream.hadoop.natives.WireReader

import org.junit.jupiter.api.Assertions.{assertArrayEquals, assertEquals, assertFalse, assertTrue}
import org.junit.jupiter.api.Test

class DecisionTest {
  private val Second = 1000000000L
  private val preserved = Preserved(
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
      time: Long = 100,
      mode: Int = 0x1a4,
      target: Option[String] = None,
      etag: Option[String] = None) =
    Entry("p", kind, size, Some(time * Second), Some(mode), Some("o"), Some("g"), target, etag)

  private def actionOf(source: Option[Entry], destination: Option[Entry], rules: Rules = rules) =
    Decision.of(source, destination, rules).map(_.action)

  private val file = Some(entry(Kind.File))
  private val directory = Some(entry(Kind.Directory))
  private val link = Some(entry(Kind.Link, target = Some("t")))
  private val other = Some(entry(Kind.Other))

  @Test def newEntries(): Unit = {
    assertEquals(Some(Action.Copy), actionOf(file, None))
    assertEquals(Some(Action.Directory), actionOf(directory, None))
    assertEquals(Some(Action.Link), actionOf(link, None))
    assertEquals(Some(Action.Skip), actionOf(other, None))
    assertEquals(Some(Action.Skip), actionOf(link, None, rules.copy(preserved = preserved.copy(links = false))))
    Seq(file, directory, link, other).foreach(source =>
      assertEquals(None, actionOf(source, None, rules.copy(existing = true))))
  }

  @Test def deletionsAreWanted(): Unit = Seq(file, directory, link, other).foreach { found =>
    assertEquals(None, actionOf(None, found))
    assertEquals(Some(Action.Delete), actionOf(None, found, rules.copy(delete = true)))
  }

  @Test def whatIsMountedStays(): Unit = {
    val mounted = file.map(_.copy(mount = Some("m")))
    val step = Decision.of(None, mounted, rules.copy(delete = true))
    assertEquals(Some(Action.Skip -> Decision.Mounted), step.map(step => step.action -> step.reason))
    assertEquals(None, Decision.of(None, mounted, rules))
    assertEquals(None, actionOf(file, mounted))
  }

  @Test def filesThatBothHave(): Unit = {
    val (larger, later) = (Some(entry(Kind.File, size = 2)), Some(entry(Kind.File, time = 200)))
    def of(source: Option[Entry], found: Option[Entry], rules: Rules = rules) =
      Decision.of(source, found, rules).map(step => step.action -> step.reason)
    assertEquals(None, of(file, file))
    assertEquals(Some(Action.Copy -> "size"), of(file, larger))
    assertEquals(Some(Action.Copy -> "time"), of(file, later))
    assertEquals(Some(Action.Copy -> "time"), of(later, file))
    assertEquals(None, of(file, later, rules.copy(update = true)))
    assertEquals(Some(Action.Copy -> "time"), of(later, file, rules.copy(update = true)))
    val nextSecond = Some(entry(Kind.File, size = 2, time = 101))
    assertEquals(Some(Action.Copy -> "size"), of(nextSecond, file, rules.copy(update = true, modifyWindow = Some(1))))
    assertEquals(None, of(nextSecond, file, rules.copy(update = true, modifyWindow = Some(2))))
    assertEquals(Some(Action.Amend -> "time"), of(file, later, rules.copy(sizeOnly = true)))
    assertEquals(Some(Action.Copy -> "size"), of(file, larger, rules.copy(sizeOnly = true)))
    assertEquals(Some(Action.Compare -> "contents"), of(file, file, rules.copy(checksum = true)))
    assertEquals(Some(Action.Copy -> "size"), of(file, larger, rules.copy(checksum = true)))
    assertEquals(Some(Action.Copy -> "all files are wanted"), of(file, file, rules.copy(ignoreTimes = true)))
    assertEquals(None, of(file, larger, rules.copy(ignoreExisting = true)))
    assertEquals(None, of(file, later, rules.copy(modifyWindow = Some(100))))
    assertEquals(Some(Action.Copy -> "time"), of(file, later, rules.copy(modifyWindow = Some(99))))
  }

  @Test def copiesThatHaveTimesOfTheirOwn(): Unit = {
    val (larger, later) = (Some(entry(Kind.File, size = 2)), Some(entry(Kind.File, time = 200)))
    val bare = rules.copy(keepsTimes = false)
    assertEquals(None, Decision.of(file, later, bare))
    assertEquals(None, Decision.of(file, file, bare))
    assertEquals(Some(Action.Copy), actionOf(later, file, bare))
    assertEquals(Some(Action.Copy), actionOf(file, larger, bare))
  }

  @Test def onlyAttributesDiffer(): Unit = {
    val found = Some(entry(Kind.File, mode = 0x180).copy(owner = Some("x")))
    def reason(rules: Rules) = Decision.of(file, found, rules).map(_.reason)
    assertEquals(Some("mode, owner"), reason(rules))
    assertEquals(Some("owner"), reason(rules.copy(preserved = preserved.copy(modes = 0))))
    assertEquals(None, reason(rules.copy(preserved = preserved.copy(modes = 0, owner = false))))
    assertEquals(None, reason(rules.copy(preserved = preserved.copy(amends = false))))
    // HDFS has no set-user-ID bit.
    val (special, plain) = (Some(entry(Kind.File, mode = 0x9ed)), Some(entry(Kind.File, mode = 0x1ed)))
    assertEquals(None, actionOf(special, plain, rules.copy(preserved = preserved.copy(modes = 0x3ff))))
    assertEquals(Some(Action.Amend), actionOf(special, plain))
  }

  @Test def otherKindsMakeWay(): Unit = {
    def step(source: Option[Entry], found: Option[Entry]) =
      Decision.of(source, found, rules).map(step => step.action -> step.makesWay)
    assertEquals(Some(Action.Directory -> true), step(directory, file))
    assertEquals(Some(Action.Directory -> true), step(directory, link))
    assertEquals(Some(Action.Copy -> true), step(file, directory))
    assertEquals(Some(Action.Link -> true), step(link, directory))
    // A rename replaces these.
    assertEquals(Some(Action.Copy -> false), step(file, link))
    assertEquals(Some(Action.Link -> false), step(link, file))
    assertEquals(None, actionOf(file, directory, rules.copy(ignoreExisting = true)))
  }

  @Test def linksAreComparedByTheirTargets(): Unit = {
    assertEquals(None, actionOf(link, link))
    assertEquals(Some(Action.Link), actionOf(link, link.map(_.copy(target = Some("elsewhere")))))
    assertEquals(None, actionOf(link, link.map(_.copy(mode = Some(0)))))
  }

  private def needsTimes(one: Entry, other: Entry, rules: Rules): Boolean =
    Decision.needTimes(Seq(Some(one) -> Some(other)), rules).head

  @Test def objectsWithTheSameChecksumNeedNoTime(): Unit = {
    val (one, other) = (entry(Kind.File, etag = Some("a")), entry(Kind.File, time = 7, etag = Some("a")))
    assertFalse(needsTimes(one, other, rules))
    assertEquals(None, actionOf(Some(one), Some(other), rules.copy(preserved = preserved.copy(amends = false))))
    // A multipart upload's ETag depends on its parts, so different contents may have the same one.
    val (parts, same) = (one.copy(etag = Some("a-2")), other.copy(etag = Some("a-2")))
    assertTrue(needsTimes(parts, same, rules))
    assertEquals(Some(Action.Copy), actionOf(Some(parts), Some(same)))
    assertTrue(needsTimes(one.copy(etag = None), other, rules))
    assertFalse(needsTimes(one.copy(etag = None, size = 2), other, rules))
  }

  @Test def attributesOfACopy(): Unit = {
    assertEquals(
      Attributes(Some(100 * Second), Some(0x1a4), Some("o"), Some("g")),
      Decision.attributes(file.get, None, preserved))
    assertEquals(None, Decision.attributes(link.get, None, preserved).mode)
    assertEquals(None, Decision.attributes(directory.get, None, preserved.copy(directoryTimes = false)).mtime)
    val none = Preserved(
      0,
      owner = false,
      group = false,
      times = false,
      directoryTimes = false,
      linkTimes = false,
      links = true,
      amends = true)
    assertEquals(Attributes(None, None, None, None), Decision.attributes(file.get, None, none))
  }

  @Test def versionsOfObjectsAreTheirEtags(): Unit = {
    val listed = entry(Kind.File, etag = Some("a"))
    assertTrue(listed.isSameVersionAs(listed.copy(mtime = Some(1))))
    assertFalse(listed.isSameVersionAs(listed.copy(etag = Some("b"))))
    assertFalse(file.get.isSameVersionAs(file.get.copy(mtime = Some(1))))
    assertFalse(file.get.isSameVersionAs(directory.get))
  }

  private def special(is: String) = Some(entry(Kind.Other).copy(special = Some(is)))

  @Test def devicesPipesAndSockets(): Unit = {
    val makes = rules.copy(preserved = preserved.copy(devices = true, specials = true))
    val (pipe, one, two) =
      (special(Special.Pipe), special(Special.characterDevice(1)), special(Special.characterDevice(2)))
    Seq(pipe, one).foreach { source =>
      assertEquals(Some(Action.Link), actionOf(source, None, makes))
      assertEquals(None, actionOf(source, source, makes))
      assertEquals(Some(Action.Skip), actionOf(source, None))
      assertEquals(Some(Action.Skip), actionOf(source, source))
    }
    assertEquals(Some(Action.Amend), actionOf(pipe, pipe.map(_.copy(mode = Some(0))), makes))
    assertEquals(Some("cDc........"), Decision.of(one, two, makes).map(_.changes))
    assertEquals(Some("cD+++++++++"), Decision.of(one, pipe, makes).map(_.changes))
    assertEquals(Some("cS+++++++++"), Decision.of(pipe, file, makes).map(_.changes))
    assertEquals(Some(Action.Skip), actionOf(one, None, makes.copy(preserved = makes.preserved.copy(devices = false))))
  }

  @Test def extendedAttributes(): Unit = {
    val extended = rules.copy(preserved = preserved.copy(extended = true))
    val found = file.map(_.copy(acls = Some("a"), xattrs = Some("b")))
    assertEquals(None, actionOf(file, found))
    assertEquals(None, actionOf(found, found, extended))
    assertEquals(
      Some(Action.Amend -> ".f.......ax"),
      Decision.of(file, found, extended).map(step => step.action -> step.changes))
  }

  @Test def whatHasOtherNamesIsNotAmended(): Unit = {
    val other = file.map(_.copy(mode = Some(0), inode = Some("1:")))
    assertEquals(Some(Action.Copy), actionOf(file, other))
    assertEquals(Some(Action.Amend), actionOf(file.map(_.copy(inode = Some("2:"))), other))
    assertEquals(None, actionOf(file, file.map(_.copy(inode = Some("1:")))))
  }

  @Test def questionsAndAnswersAreTheSharedVectors(): Unit = {
    val asks = Rules(
      preserved.copy(devices = true, extended = true),
      update = true,
      modifyWindow = Some(2),
      delete = true,
      examinesDeletions = true,
      notesAll = true)
    val one =
      Entry("p", Kind.File, 1, Some(-5), Some(0x1a4), Some("o"), Some("g"), etag = Some("e"), inode = Some("1:"))
    val device = Some(Special.characterDevice(259))
    val found =
      Entry("q", Kind.Other, mount = Some("m"), special = device, acls = Some("a"), xattrs = Some("b"))
    val link = Entry("r", Kind.Link, 0, Some(7), Some(0x1ff), Some("o"), Some("g"), target = Some("t"))
    val paths = Seq(
      Some(one) -> None,
      None -> Some(found),
      Some(link.copy(target = Some("é"))) -> Some(link))
    def vector(name: String) =
      HexFormat.of().parseHex(Files.readString(Path.of(s"../../testdata/$name.hex")).trim)
    assertArrayEquals(vector("sync-questions"), Decision.questions(Decision.Question.Step, paths, asks))
    val answers = new WireReader(vector("sync-answers"))
    val steps = paths.map(Decision.step(answers, _).get)
    assertFalse(answers.hasRemaining)
    assertEquals(
      Seq(
        (Action.Copy, "new", ">f+++++++++"),
        (Action.Skip, Decision.Mounted, ""),
        (Action.Link, "target", "cLc........")),
      steps.map(step => (step.action, step.reason, step.changes)))
  }
}
