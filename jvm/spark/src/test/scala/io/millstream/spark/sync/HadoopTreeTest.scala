package io.millstream.spark.sync

import java.net.URI
import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path, RawLocalFileSystem}
import org.junit.jupiter.api.Assertions.{assertEquals, assertFalse, assertThrows, assertTrue}
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

class HadoopTreeTest {

  /** A file system that keeps no times and has no rename that replaces. */
  private class Bare extends RawLocalFileSystem {
    override def getUri: URI = URI.create("bare:///")
    override def setTimes(path: Path, mtime: Long, atime: Long): Unit = ()
  }

  private def tree(top: LocalPath, fs: RawLocalFileSystem): HadoopTree = {
    fs.initialize(fs.getUri, new Configuration)
    var count = 0
    new HadoopTree(
      fs,
      new Path(fs.getUri.getScheme, null, top.toString),
      () => {
        count += 1
        s"temporary$count"
      },
      Extras())
  }

  private def write(tree: Tree, path: String, content: String): Unit = {
    val staged = tree.stage(path, Attributes(None, None, None, None), None, tree)
    try {
      staged.out.write(content.getBytes)
      staged.install(None)
    } finally staged.discard()
  }

  @Test def filesAreReplacedWhereNoRenameDoes(@TempDir top: LocalPath): Unit = {
    val bare = tree(top, new Bare)
    Seq("one", "two").foreach { content =>
      write(bare, "f", content)
      assertEquals(content, Files.readString(top.resolve("f")))
    }
    Files.createDirectory(top.resolve("d"))
    assertThrows(classOf[java.io.IOException], () => write(bare, "d", "three"))
    assertEquals(Set("f", "d"), top.toFile.list.toSet)
    assertEquals(0, top.resolve("d").toFile.list.length)
  }

  @Test def whetherAttributesAreKeptIsFoundOut(@TempDir top: LocalPath): Unit = {
    assertFalse(tree(top, new Bare).keepsAttributes(""))
    assertTrue(tree(top, new RawLocalFileSystem).keepsAttributes(""))
    assertEquals(0, top.toFile.list.length)
  }
}
