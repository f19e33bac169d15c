package io.millstream.spark.formats

import java.io.OutputStream
import java.nio.file.{Files, Path, Paths}
import java.util.zip.GZIPOutputStream

import scala.util.Try

import com.github.luben.zstd.ZstdOutputStream
import net.jpountz.lz4.LZ4FrameOutputStream
import org.apache.hadoop.conf.{Configurable, Configuration}
import org.apache.hadoop.io.compress.{BZip2Codec, CompressionCodec, SnappyCodec}

import org.apache.spark.network.util.JavaUtils

/** A failure whose message is for the user: path, operation, and what to do. */
class FormatsFailure(message: String) extends RuntimeException(message)

/**
 * A format in which the sample is written, in the form that the usual command writes: one file, one gzip member or
 * frame.
 */
private[spark] final case class FormatsCodec(
    name: String,
    fileName: String,
    compress: (OutputStream, Configuration) => OutputStream)

private[spark] object FormatsCodec {
  private val FrameBlock = LZ4FrameOutputStream.BLOCKSIZE.SIZE_4MB

  val Default: Seq[FormatsCodec] = Seq(
    FormatsCodec("none", "sample.txt", (out, _) => out),
    FormatsCodec("gz", "sample.txt.gz", (out, _) => new GZIPOutputStream(out, 1 << 16)),
    FormatsCodec("bz2", "sample.txt.bz2", (out, conf) => byHadoop(new BZip2Codec, out, conf)),
    FormatsCodec("zst", "sample.txt.zst", (out, _) => new ZstdOutputStream(out).setChecksum(true)),
    FormatsCodec("lz4", "sample.txt.lz4", (out, _) => new LZ4FrameOutputStream(out, FrameBlock)))
  private val All =
    Default :+ FormatsCodec("snappy", "sample.txt.snappy", (out, conf) => byHadoop(new SnappyCodec, out, conf))

  private def byHadoop(
      codec: CompressionCodec with Configurable,
      out: OutputStream,
      conf: Configuration): OutputStream = {
    codec.setConf(conf)
    codec.createOutputStream(out)
  }

  /** The codecs of a list such as `none,gz`, in our order. */
  def listed(list: String): Seq[FormatsCodec] = {
    val names = list.split(',').map(_.trim).filter(_.nonEmpty)
    names.find(name => !All.exists(_.name == name)).foreach { name =>
      throw new FormatsFailure(s"$name: not a codec; choose from ${All.map(_.name).mkString(", ")}")
    }
    if (names.isEmpty) throw new FormatsFailure("--codecs: at least one codec is needed")
    All.filter(codec => names.contains(codec.name))
  }
}

/**
 * Options of a comparison of formats.
 *
 * @param workDirectory where the sample is written, in a new directory that is removed at the end
 * @param also a directory on S3 or HDFS from which the sample is also read
 * @param limitSeconds maximum duration of one run with its warm-up
 * @param progress whether standard error is a terminal, which shows the remaining time
 * @param ascii whether the terminal shows only ASCII
 */
final case class FormatsOptions(
    path: String,
    sampleBytes: Long,
    workDirectory: Option[String],
    also: Option[String],
    codecs: Seq[FormatsCodec],
    rounds: Int,
    limitSeconds: Long,
    picture: Option[Path],
    dryRun: Boolean,
    progress: Boolean,
    ascii: Boolean)

object FormatsOptions {
  private val Known =
    Set("path", "sample", "work-dir", "also", "codecs", "rounds", "limit", "picture", "dry-run", "progress", "ascii")
  private val MaxRounds = 100

  /** Parses names and values from the command line or from Python. */
  def of(settings: Map[String, String]): FormatsOptions = {
    settings.keys.find(!Known(_)).foreach(key => throw new FormatsFailure(s"unknown option $key"))
    def isTrue(key: String) = settings.get(key).contains("true")
    FormatsOptions(
      settings.get("path").filterNot(_.isBlank).getOrElse(throw new FormatsFailure("no file or directory was given")),
      parsed(settings, "sample", "256m", "a size; write it like 256M")(JavaUtils.byteStringAsBytes),
      settings.get("work-dir"),
      settings.get("also"),
      settings.get("codecs").fold(FormatsCodec.Default)(FormatsCodec.listed),
      parsed(settings, "rounds", "3", s"a number from 1 to $MaxRounds")(text =>
        math.min(text.toInt, MaxRounds + 1)).toInt,
      parsed(settings, "limit", "10m", "a time; write it like 10m or 90s")(JavaUtils.timeStringAsSec),
      settings.get("picture").map(picture),
      isTrue("dry-run"),
      isTrue("progress"),
      isTrue("ascii"))
  }

  private def parsed(
      settings: Map[String, String],
      key: String,
      default: String,
      form: String)(parse: String => Long): Long = {
    val text = settings.getOrElse(key, default)
    val isRight = (number: Long) => number > 0 && (key != "rounds" || number <= MaxRounds)
    Try(parse(text)).toOption.filter(isRight).getOrElse(throw new FormatsFailure(s"--$key=$text: not $form"))
  }

  /** Checked before measuring, so that a wrong name does not lose the results. */
  private def picture(name: String): Path = {
    val file = Paths.get(name).toAbsolutePath
    val directory = file.getParent
    if (!name.endsWith(".svg") && !name.endsWith(".png"))
      throw new FormatsFailure(s"$name: pictures are written as .svg or .png; choose one of these extensions")
    if (directory == null || !Files.isDirectory(directory) || !Files.isWritable(directory) || Files.isDirectory(file)) {
      val reason = s"$directory is not a writable directory, or the picture is a directory"
      throw new FormatsFailure(s"$name: cannot write the picture: $reason; choose another --picture")
    }
    file
  }
}
