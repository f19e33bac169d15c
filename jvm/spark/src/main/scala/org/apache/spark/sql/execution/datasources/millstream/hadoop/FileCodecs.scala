package org.apache.spark.sql.execution.datasources.millstream.hadoop

import java.lang.reflect.Method

import scala.collection.mutable
import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.io.compress.{CompressionCodec, CompressionCodecFactory}

import org.apache.spark.sql.execution.datasources.millstream.internals.Reflected

/**
 * The codecs with which files are read, looked up once for each extension: a lookup takes as long as listing a file.
 */
private[millstream] final class FileCodecs private (find: Path => Option[CompressionCodec]) {
  private val found = mutable.HashMap.empty[String, Option[CompressionCodec]]

  /** The codec of a file with this name. */
  def of(name: String): Option[CompressionCodec] = {
    val suffix = name.dropWhile(_ != '.')
    def codec = find(new Path("file", "", s"/f$suffix"))
    if (found.size < FileCodecs.MaxSuffixes) found.getOrElseUpdate(suffix, codec) else codec
  }
}

private[millstream] object FileCodecs {

  /** A bound, because names may all differ after their first dot. */
  private val MaxSuffixes = 1000

  /** Spark's own search, which since 4.3 finds `.gzip` and `.zstd`, too. */
  private lazy val search: Option[Method] =
    Try(Class.forName("org.apache.spark.io.HadoopCodecStreams").getMethod(
      "getDecompressionCodec",
      classOf[Configuration],
      classOf[Path])).toOption

  /** The codecs with which Hadoop reads files, for RDDs. */
  def ofHadoop(conf: Configuration): FileCodecs = {
    val factory = new CompressionCodecFactory(conf)
    new FileCodecs(path => Option(factory.getCodec(path)))
  }

  /** The codecs with which Spark's data sources read files. */
  def ofSpark(conf: Configuration): FileCodecs =
    search.fold(ofHadoop(conf))(method =>
      new FileCodecs(path => Reflected.call(method, null, conf, path).asInstanceOf[Option[CompressionCodec]]))
}
