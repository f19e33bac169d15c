package io.millstream.spark.sync

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.zip.CRC32C

import scala.jdk.CollectionConverters._

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

class ObjectMetadataTest {
  private def checksum(content: String): String = {
    val sum = new CRC32C
    sum.update(content.getBytes(UTF_8))
    Transfer.text(sum.getValue.toInt)
  }

  @Test def metadataIsThatOfTheSharedVector(): Unit =
    Files.readAllLines(Path.of("../../testdata/object-metadata.tsv")).asScala.map(_.split("\t", -1)).foreach {
      case Array("key", "time", name) => assertEquals(name, ObjectTree.Time)
      case Array("key", "checksum", name) => assertEquals(name, ObjectTree.Checksum)
      case Array("time", nanos, text) =>
        assertEquals(text, ObjectTree.encoded(nanos.toLong))
        assertEquals(Some(nanos.toLong), ObjectTree.decoded(text), text)
      case Array("read", nanos, text) => assertEquals(Some(nanos.toLong), ObjectTree.decoded(text), text)
      case Array("other", text) => assertEquals(None, ObjectTree.decoded(text), text)
      case Array("checksum", content, expected) => assertEquals(expected, checksum(content))
      case Array("largest", "psync --spark", bytes) => assertEquals(bytes.toLong, Transfer.SmallBytes)
      case Array("largest", "psync", _) =>
    }
}
