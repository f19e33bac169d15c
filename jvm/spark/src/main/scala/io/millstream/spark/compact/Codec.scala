package io.millstream.spark.compact

import java.io.IOException
import java.util.Locale

import org.apache.hadoop.fs.Path
import org.apache.hadoop.io.compress.{CompressionCodec, CompressionCodecFactory}

/**
 * A compression codec for outputs.
 *
 * @param names its names for users, in file names and in Parquet's footers; the first one is shown
 * @param hadoop the name of Hadoop's codec for lines, if there is one
 * @param parquet its name for Spark's Parquet writer, if that supports it
 */
final case class Codec(names: Seq[String], hadoop: Option[String], parquet: Option[String]) {
  def name: String = names.head

  override def toString: String = name
}

object Codec {
  val Uncompressed: Codec = Codec(Seq("none", "uncompressed"), None, Some("uncompressed"))

  private val All = Seq(
    Uncompressed,
    Codec(Seq("gzip", "gz"), Some("gzip"), Some("gzip")),
    Codec(Seq("bzip2", "bz2"), Some("bzip2"), None),
    Codec(Seq("zstd", "zst", "zstandard"), Some("zstandard"), Some("zstd")),
    Codec(Seq("lz4"), Some("lz4"), Some("lz4")),
    Codec(Seq("snappy"), Some("snappy"), Some("snappy")),
    Codec(Seq("deflate"), Some("deflate"), None),
    Codec(Seq("lz4_raw"), None, Some("lz4_raw")),
    Codec(Seq("brotli"), None, Some("brotli")))

  private[spark] val OfLines: Seq[Codec] = All.filter(codec => codec == Uncompressed || codec.hadoop.nonEmpty)
  private[spark] val OfParquet: Seq[Codec] = All.filter(_.parquet.nonEmpty)

  def named(name: String, among: Seq[Codec]): Option[Codec] =
    among.find(_.names.contains(name.toLowerCase(Locale.ROOT)))

  /** The Hadoop codec of this name; an IOException if it is not configured or not built in. */
  def ofHadoop(name: String, codecs: CompressionCodecFactory): CompressionCodec =
    Option(codecs.getCodecByName(name)).getOrElse(throw new IOException(
      s"Hadoop has no codec $name in this session: check io.compression.codecs"))

  /**
   * The codec with which Hadoop reads a file of this name. A Hadoop path would take a colon for the end of a scheme.
   */
  def ofFile(name: String, codecs: CompressionCodecFactory): Option[CompressionCodec] =
    Option(codecs.getCodec(new Path("/", name.replace(':', '_'))))
}
