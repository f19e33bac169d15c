package io.millstream.spark

import java.io.IOException
import java.util.Locale

import org.apache.hadoop.fs.Path
import org.apache.hadoop.io.compress.{CompressionCodec, CompressionCodecFactory}

/**
 * How outputs may be compressed.
 *
 * @param names what users, file names and Parquet's footers call it, the name to show first
 * @param hadoop what Hadoop calls its codec for lines, if it has one
 * @param parquet what Spark's writer of Parquet calls it, if it can
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

  def named(name: String, among: Seq[Codec]): Option[Codec] = among.find(_.names.contains(name.toLowerCase(Locale.ROOT)))

  /** What Hadoop calls so, if it is configured and was built with it; an IOException if not. */
  def ofHadoop(name: String, codecs: CompressionCodecFactory): CompressionCodec =
    Option(codecs.getCodecByName(name)).getOrElse(throw new IOException(s"Hadoop has no codec $name here: see io.compression.codecs"))

  /** The codec that Hadoop reads a file of this name with; a path of Hadoop's takes a colon for the end of a scheme. */
  def ofFile(name: String, codecs: CompressionCodecFactory): Option[CompressionCodec] =
    Option(codecs.getCodec(new Path("/", name.replace(':', '_'))))
}
