package io.millstream.spark.formats

import java.io.{BufferedInputStream, FileNotFoundException, IOException, InputStream, OutputStream}
import java.nio.file.{Files, Path}
import java.util.zip.GZIPInputStream

import scala.util.Using

import com.github.luben.zstd.ZstdInputStream
import io.millstream.hadoop.listing.DatasetNames
import io.millstream.spark.console.Failures
import net.jpountz.lz4.LZ4FrameInputStream
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path => HadoopPath}
import org.apache.hadoop.io.compress.CompressionCodecFactory

/**
 * The lines of a sample.
 *
 * @param bytes size of the text
 * @param lines as Spark counts them, which is the truth for all runs
 * @param files number of files that they come from
 */
private[spark] final case class FormatsSample(bytes: Long, lines: Long, files: Int)

/** The first lines of a file, or of the files of a directory, uncompressed. */
private[spark] object FormatsSample {
  private val Buffer = 1 << 16
  private val Lz4Frame = Array(0x04, 0x22, 0x4d, 0x18).map(_.toByte)

  /** Maximum length of the last line beyond the size of the sample. */
  private val LongestLine = 64L << 20

  /** The files that a sample is taken from, in the order of their names, none of them empty or hidden. */
  def files(path: String, conf: Configuration): Iterator[FileStatus] = reading(path) {
    val root = new HadoopPath(path)
    val fileSystem = root.getFileSystem(conf)
    val found = below(fileSystem, fileSystem.getFileStatus(root))
    if (found.isEmpty) throw new FormatsFailure(
      s"$path: cannot take a sample: no file in it has data; name a text file, or a directory of text files")
    found
  }

  private def below(fileSystem: FileSystem, status: FileStatus): Iterator[FileStatus] =
    if (status.isFile) Iterator(status).filter(_.getLen > 0)
    else reading(status.getPath.toString) {
      val visible =
        fileSystem.listStatus(status.getPath).filterNot(below => DatasetNames.isHidden(below.getPath.getName))
      visible.sortBy(_.getPath.getName).iterator.flatMap(below(fileSystem, _))
    }

  private def reading[T](path: String)(body: => T): T =
    try body
    catch {
      case _: FileNotFoundException =>
        throw new FormatsFailure(s"$path: cannot take a sample: there is no such file or directory; correct the path")
      case e @ (_: IOException | _: IllegalArgumentException) =>
        throw new FormatsFailure(
          s"$path: cannot take a sample: ${Failures.oneLine(e)}; name files that can be read")
    }

  /** Writes the first `bytes` of the files, to the end of a line, to `target`. */
  def take(path: String, bytes: Long, target: Path, conf: Configuration, check: () => Unit): FormatsSample =
    Using.resource(FormatsWork.writing(target)(Files.newOutputStream(target))) { out =>
      val lines = new Lines(out, bytes, target)
      var taken = 0
      val sources = files(path, conf)
      while (!lines.isFull && sources.hasNext) {
        val file = sources.next().getPath
        reading(file.toString)(Using.resource(opened(file, conf))(lines.copy(_, file, check)))
        lines.endLine()
        taken += 1
      }
      FormatsSample(lines.written, lines.count, taken)
    }

  /** The text of a file, decoded by its extension. */
  private def opened(file: HadoopPath, conf: Configuration): InputStream = {
    val raw = new BufferedInputStream(file.getFileSystem(conf).open(file), Buffer)
    try file.getName.split('.').last match {
        case "gz" | "gzip" => new GZIPInputStream(raw, Buffer)
        case "zst" | "zstd" => new ZstdInputStream(raw)
        case "lz4" if beginsWith(raw, Lz4Frame) => new LZ4FrameInputStream(raw)
        case _ =>
          Option(new CompressionCodecFactory(conf).getCodec(file)).fold[InputStream](raw)(_.createInputStream(raw))
      }
    catch {
      case e: Throwable =>
        raw.close()
        throw e
    }
  }

  private def beginsWith(in: InputStream, magic: Array[Byte]): Boolean = {
    in.mark(magic.length)
    try in.readNBytes(magic.length).sameElements(magic)
    finally in.reset()
  }

  /** Takes lines up to a number of bytes, and counts them as Spark does: `\n`, `\r` and `\r\n` end a line. */
  private final class Lines(out: OutputStream, most: Long, target: Path) {
    private val buffer = new Array[Byte](Buffer)
    private var last = '\n'.toByte
    private var breaks = 0L
    var written = 0L

    def isFull: Boolean = written >= most && last == '\n'

    def count: Long = breaks

    def copy(in: InputStream, file: HadoopPath, check: () => Unit): Unit = {
      var length = in.read(buffer)
      if (length > 0 && buffer.iterator.take(length).contains(0.toByte)) {
        throw new FormatsFailure(
          s"$file: cannot take a sample: the file is not text, because it contains NUL bytes; name text files")
      }
      while (length >= 0 && !isFull) {
        check()
        add(length)
        if (written > most + LongestLine) {
          throw new FormatsFailure(
            s"$file: cannot take a sample: a line is longer than ${LongestLine >> 20} MiB; name text files")
        }
        if (!isFull) length = in.read(buffer)
      }
    }

    /** The part of the buffer that is within the sample. */
    private def add(length: Int): Unit = {
      var end = 0
      while (end < length && !(written + end >= most && (if (end > 0) buffer(end - 1) else last) == '\n')) {
        val byte = buffer(end)
        if (byte == '\r' || byte == '\n' && (if (end > 0) buffer(end - 1) else last) != '\r') breaks += 1
        end += 1
      }
      if (end > 0) {
        FormatsWork.writing(target)(out.write(buffer, 0, end))
        written += end
        last = buffer(end - 1)
      }
    }

    /** Ends the last line of a file, so that the next file's first line does not continue it. */
    def endLine(): Unit = if (last != '\n') {
      FormatsWork.writing(target)(out.write('\n'))
      if (last != '\r') breaks += 1
      written += 1
      last = '\n'
    }
  }

  /** Writes the sample in a codec. */
  def compress(
      plain: Path,
      target: Path,
      codec: FormatsCodec,
      conf: Configuration,
      check: () => Unit): Unit = FormatsWork.writing(target) {
    Using.resources(Files.newInputStream(plain), codec.compress(Files.newOutputStream(target), conf))(copy(_, _, check))
  }

  /** Copies a local file to the directory of `--also`. */
  def upload(source: Path, target: HadoopPath, conf: Configuration, check: () => Unit): Unit =
    FormatsWork.writing(target, "--also") {
      Using.resources(Files.newInputStream(source), target.getFileSystem(conf).create(target))(copy(_, _, check))
    }

  private def copy(in: InputStream, out: OutputStream, check: () => Unit): Unit = {
    val buffer = new Array[Byte](Buffer)
    Iterator.continually(in.read(buffer)).takeWhile(_ >= 0).foreach { length =>
      check()
      out.write(buffer, 0, length)
    }
  }
}
