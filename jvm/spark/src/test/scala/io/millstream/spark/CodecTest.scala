package io.millstream.spark

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import io.millstream.spark.compact.Codec
import io.millstream.spark.formats.FormatsCodec
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.io.compress.CompressionCodecFactory
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

class CodecTest {
  private val rows = Files.readAllLines(Path.of("../../testdata/codecs.tsv")).asScala.tail.map(_.split('\t')).toSeq

  @Test def codecsOfLinesAreThoseOfTheSharedTable(): Unit = {
    assertEquals(rows.map(_(1)).toSet + "none", Codec.OfLines.map(_.name).toSet)
    val codecs = new CompressionCodecFactory(new Configuration)
    rows.foreach { case Array(_, name, extension, extensionOfSpark, _, _, classes, _*) =>
      val codec = Codec.named(extension.drop(1), Codec.OfLines).get
      assertEquals(name, codec.name)
      if (extensionOfSpark != "-") assertEquals(Some(codec), Codec.named(extensionOfSpark.drop(1), Codec.OfLines))
      assertEquals(Codec.ofHadoop(codec.hadoop.get, codecs), Codec.ofFile(s"f$extension", codecs).get)
      assertEquals(true, classes.split(',').contains(Codec.ofFile(s"f$extension", codecs).get.getClass.getSimpleName))
    }
  }

  @Test def formatsAreThoseOfTheSharedTable(): Unit = {
    val names = rows.map(_(7)).filter(_ != "-")
    assertEquals("none" +: names, FormatsCodec.listed(("none" +: names).mkString(",")).map(_.name))
    rows.filter(_(7) != "-").foreach { row =>
      assertEquals(s"sample.txt${row(2)}", FormatsCodec.listed(row(7)).head.fileName)
    }
  }
}
