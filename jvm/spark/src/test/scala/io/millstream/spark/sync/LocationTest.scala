package io.millstream.spark.sync

import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.junit.jupiter.api.Assertions.{assertEquals, assertFalse, assertTrue}
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

class LocationTest {
  private val conf = new Configuration

  private def of(url: String) = Location.of(Location.absolute(url, conf), conf)

  @Test def localPathsAreComparedByWhereTheyLead(@TempDir given: LocalPath): Unit = {
    val top = given.toRealPath()
    Files.createDirectories(top.resolve("a/b"))
    Files.createSymbolicLink(top.resolve("l"), top.resolve("a/b"))
    assertTrue(of(s"$top/l").isWithin(of(s"$top/a")) && of(s"$top/l/new/x").isWithin(of(s"file:$top/a/b")))
    assertFalse(of(s"$top/a").isWithin(of(s"$top/l")) || of(s"$top/ab").isWithin(of(s"$top/a")))
    assertTrue(of(s"$top/a").isWithin(of("/")))
    // The parent of the link's target, not of the link.
    assertEquals(s"file:$top/a", Location.absolute(s"$top/l/..", conf))
    assertEquals(s"file:$top/l", Location.absolute(s"$top/./l/", conf))
  }

  @Test def aNameMayHaveNewlines(): Unit =
    assertEquals("file:/a\nb", Location.absolute("file:/a\nb", conf))

  @Test def protocolsOfHdfsAreOneStore(): Unit = {
    def at(url: String) = Location(java.net.URI.create(url))
    assertTrue(at("webhdfs://nn:9870/a/b").isWithin(at("hdfs://nn:8020/a")))
    assertFalse(at("hdfs://nn:8021/a/b").isWithin(at("hdfs://nn:8020/a")) || at(
      "hdfs://other/a/b").isWithin(at("webhdfs://nn/a")))
    assertFalse(at("s3a://bucket/a").isWithin(at("hdfs://bucket/a")))
  }
}
