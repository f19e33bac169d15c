package io.millstream.spark.sync

import org.junit.jupiter.api.Assertions.{assertEquals, assertFalse, assertNotEquals, assertTrue}
import org.junit.jupiter.api.Test

class FileListTest {
  private def list(isRecursive: Boolean)(paths: (String, Boolean)*) = new FileList(paths.toMap, isRecursive)

  private def entered(files: FileList, hidden: String*) = files.entered(hidden.toSet).sorted

  @Test def pathsAndWhatLeadsToThemAreKnown(): Unit = {
    val files = list(isRecursive = true)("a/b/c" -> false, "a" -> false)
    assertEquals(
      Set(
        FileList.Known("a", isListed = true, leads = true),
        FileList.Known("a/b", isListed = false, leads = true),
        FileList.Known("a/b/c", isListed = true, leads = false)),
      files.paths.toSet)
    assertTrue(Seq("", "a", "a/b", "a/b/c").forall(files.knows))
    assertFalse(Seq("b", "a/c", "a/b/c/d").exists(files.knows))
    assertTrue(list(isRecursive = true)("" -> true).paths == Seq(FileList.Known("", isListed = true, leads = false)))
    val named = new FileList(Map("a" -> false), isRecursive = false, namesRoot = true)
    assertEquals(
      Set(FileList.Known("", isListed = false, leads = true), FileList.Known("a", isListed = true, leads = false)),
      named.paths.toSet)
  }

  @Test def withoutRecursionOnlyContentsThatAreMeantAreEntered(): Unit =
    assertEquals(
      Seq("a/b", "c"),
      entered(list(isRecursive = false)("a" -> false, "a/b" -> true, "c" -> true, "d" -> true), "d"))

  @Test def withRecursionTheWayBetweenListedDirectoriesIsEntered(): Unit = {
    val files = list(isRecursive = true)("a" -> false, "a/b/c/d" -> false, "e/f" -> false)
    assertEquals(Seq("a", "a/b", "a/b/c", "a/b/c/d", "e/f"), entered(files))
    assertEquals(Seq("a", "a/b/c/d", "e/f"), entered(files, "a/b"))
    assertEquals(Seq("a/b/c/d", "e/f"), entered(files, "a"))
    assertEquals(Seq("", "a"), entered(list(isRecursive = true)("" -> true, "a" -> false)))
  }

  @Test def listsAreToldApart(): Unit = {
    val texts = Seq(
      list(isRecursive = true)("a" -> false),
      list(isRecursive = true)("a" -> true),
      list(isRecursive = false)("a" -> false),
      list(isRecursive = true)("b" -> false),
      list(isRecursive = true)()).map(_.toString)
    assertEquals(texts, texts.distinct)
    assertEquals(
      list(isRecursive = true)("a" -> false, "b" -> true).toString,
      list(isRecursive = true)("b" -> true, "a" -> false).toString)
    val options =
      Seq("a", "b").map(path => SyncOptions("s", "d", files = Some(list(isRecursive = false)(path -> false))))
    assertNotEquals(options.head.identity, options.last.identity)
  }
}
