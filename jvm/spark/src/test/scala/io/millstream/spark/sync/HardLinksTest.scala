package io.millstream.spark.sync

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

class HardLinksTest {
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
  private val rules = Rules(preserved.copy(hardLinks = true))

  private def entry(path: String, inode: String, size: Long = 1) =
    Entry(path, Kind.File, size, Some(1), Some(0x1a4), Some("o"), Some("g"), inode = Option(inode).filter(_.nonEmpty))

  private def name(path: String, found: Option[Entry], rules: Rules = rules, isShared: Boolean = false) =
    HardLinks.candidates(
      Seq(LinkName(entry(path, "1:"), found, Decision.of(Some(entry(path, "1:")), found, rules), isShared)),
      rules).head

  private def actions(names: LinkCandidate*) =
    HardLinks.of(names).map(step => (step.path, step.action, step.other)).sorted

  @Test def oneIsCopiedAndTheOthersAreItsNames(): Unit =
    assertEquals(
      Seq(("a", Action.Copy, None), ("b", Action.HardLink, Some("a")), ("c", Action.HardLink, Some("a"))),
      actions(name("c", None), name("a", None), name("b", None)))

  @Test def whatIsUpToDateIsNotCopied(): Unit = {
    assertEquals(
      Seq(("a", Action.HardLink, Some("b"))),
      actions(name("a", None), name("b", Some(entry("b", "")))))
    assertEquals(
      Seq(("b", Action.HardLink, Some("a"))),
      actions(name("a", Some(entry("a", ""))), name("b", Some(entry("b", "")))))
    assertEquals(Nil, actions(name("a", Some(entry("a", "5:"))), name("b", Some(entry("b", "5:")))))
    val isOld = Seq("a", "b").map(path => name(path, Some(entry(path, "5:", size = 2))))
    assertEquals(Seq(("a", Action.Copy, None), ("b", Action.HardLink, Some("a"))), actions(isOld: _*))
  }

  @Test def whatIsTheCopyOfAnotherFileIsCopied(): Unit = {
    val found = Some(entry("a", "5:"))
    assertEquals(
      Seq(("a", Action.Copy, None), ("b", Action.HardLink, Some("a"))),
      actions(name("a", found, isShared = true), name("b", found, isShared = true)))
    assertEquals(
      Seq(("a", Action.HardLink, Some("b"))),
      actions(name("a", found, isShared = true), name("b", Some(entry("b", "")))))
    assertEquals(Nil, actions(name("a", found), name("b", found)))
  }

  @Test def mostNamesDecide(): Unit = {
    val names = Seq("a" -> "4:", "b" -> "5:", "c" -> "5:").map { case (path, inode) =>
      name(path, Some(entry(path, inode)))
    }
    assertEquals(Seq(("a", Action.HardLink, Some("b"))), actions(names: _*))
  }

  @Test def attributesAreSetOnce(): Unit = {
    val found = Seq("a", "b").map(path => name(path, Some(entry(path, "5:").copy(mode = Some(0)))))
    assertEquals(Seq(("a", Action.Amend, None)), actions(found: _*))
  }

  @Test def whatIsLeftAloneTakesNoPart(): Unit = {
    val (keeps, limited) = (rules.copy(ignoreExisting = true), rules.copy(existing = true))
    assertEquals(
      Seq(("b", Action.Copy, None)),
      actions(name("a", Some(entry("a", "", size = 2)), keeps), name("b", None, keeps)))
    assertEquals(Nil, actions(name("a", Some(entry("a", "")), limited), name("b", None, limited)))
    val sound = name("b", None)
    val failed = sound.copy(name = sound.name.copy(step = Some(Step("b", Action.Fail, "why", None, None))))
    assertEquals(Seq(("a", Action.Copy, None), ("b", Action.Fail, None)), actions(name("a", None), failed))
  }

  @Test def linesNameTheOther(): Unit = {
    val Seq(step) =
      HardLinks.of(Seq(name("a", Some(entry("a", ""))), name("b", Some(entry("b", "").copy(mode = Some(0))))))
    assertEquals("hf...p.....", step.changes)
    val lines = Itemized("s", isItemized = true).lines(Iterator(Outcome.of(step, Status.Done)))
    assertEquals(Seq("hf...p..... s/b => s/a"), lines.toSeq)
  }
}
