package io.millstream.spark.sync

import java.io.{IOException, InputStream}

import org.junit.jupiter.api.Assertions.{assertEquals, assertTrue}
import org.junit.jupiter.api.Test

class TreeListingTest {

  /** A tree of this depth, with this number of directories and files in each directory. */
  private class Levels(levels: Int, width: Int, fails: String => Boolean = _ => false) extends Tree {
    override def capabilities: Capabilities = throw new AssertionError("not asked for")
    override def list(directory: String)(take: Entry => Unit): Unit = {
      if (fails(directory)) throw new IOException("no")
      for (number <- 0 until width) {
        if (Paths.depth(directory) < levels) take(Entry(Paths.child(directory, s"d$number"), Kind.Directory))
        take(Entry(Paths.child(directory, s"f$number"), Kind.File))
      }
    }
    private def none = throw new AssertionError("only listings are asked for")
    override def status(path: String): Option[Entry] = none
    override def open(path: String, size: Long): InputStream = none
    override def stage(path: String, attributes: Attributes, checksum: Option[String], source: Tree): Staged = none
    override def makeDirectory(path: String): Unit = none
    override def makeSpecial(like: Entry, source: Tree, attributes: Attributes): Option[String] = none
    override def setAttributes(path: String, attributes: Attributes, source: Option[Tree]): Unit = none
    override def delete(path: String): Deleted = none
    override def deleteTree(path: String): Unit = none
    override def mayGiveAway(path: String): Boolean = none
  }

  private def listed(tree: Tree, directories: Seq[String], most: Long) =
    new TreeListing(tree, directories, threads = 4, most, _ => true).toVector

  @Test def roundsListEveryEntryOnce(): Unit = for (most <- Seq(1L, 10L, 100L, 100000L)) {
    val tree = new Levels(4, 3)
    var rounds = 0
    val entries = Iterator.unfold(Seq(""))(left =>
      Option.when(left.nonEmpty) {
        val (pending, found) = listed(tree, left, most).partition(_.kind == Kind.Pending)
        rounds += 1
        (found, pending.map(_.path))
      }).flatten.toVector
    val directories = (1 to 4).map(level => math.pow(3, level).toInt).sum
    assertEquals(directories, entries.count(_.isDirectory))
    assertEquals((directories + 1) * 3, entries.count(_.isFile))
    assertEquals(entries.length, entries.map(_.path).distinct.length)
    assertEquals(rounds == 1, most == 100000L, s"$rounds rounds of at most $most entries")
  }

  @Test def aDirectoryThatFailsIsAnEntry(): Unit = {
    val entries = listed(new Levels(2, 2, fails = _ == "d1"), Seq(""), 1000)
    assertEquals(Seq(Entry("d1", Kind.Failed, message = Some("IO: no"))), entries.filter(_.kind == Kind.Failed))
    assertTrue(entries.exists(_.path == "d0/d1/f1") && !entries.exists(_.path.startsWith("d1/")))
  }

  @Test def whatIsTemporaryIsNoEntry(): Unit = {
    val tree = new Levels(0, 0) {
      override def list(directory: String)(take: Entry => Unit): Unit =
        Seq(
          ".psync-0123abcd-1-2.tmp" -> Kind.Directory,
          ".psync-0123abcd-1-3.tmp" -> Kind.File,
          ".psync" -> Kind.File,
          ".psync-x.tmp" -> Kind.Directory)
          .foreach { case (name, kind) => take(Entry(name, kind)) }
    }
    assertEquals(
      Seq(Kind.WorkingDirectory, Kind.Temporary, Kind.File),
      listed(tree, Seq(""), 1000).filter(_.path != ".psync-x.tmp").map(_.kind).distinct)
  }
}
