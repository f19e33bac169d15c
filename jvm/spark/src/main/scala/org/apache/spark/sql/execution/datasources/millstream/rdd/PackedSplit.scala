package org.apache.spark.sql.execution.datasources.millstream.rdd

import java.io.{DataInput, DataOutput, IOException}
import java.net.URI

import io.millstream.hadoop.codec.TextCodec
import io.millstream.hadoop.listing.Version
import io.millstream.hadoop.reading.FileRanges
import org.apache.hadoop.fs.Path
import org.apache.hadoop.mapred.FileSplit

import org.apache.spark.sql.execution.datasources.millstream.settings.Switches

/**
 * A part of a file.
 *
 * @param fileSystem scheme and authority
 * @param version of the file; its size is -1 if unknown, its time is not used
 * @param codec if native code decodes it; a bzip2 file is decoded in parts
 * @param index the part of its index for the range, which then counts decoded bytes; empty if the whole file is decoded
 */
private[rdd] final case class FileRange(
    fileSystem: URI,
    path: String,
    start: Long,
    length: Long,
    version: Version,
    codec: Option[TextCodec] = None,
    index: Array[Byte] = Array.emptyByteArray) {

  /** The file's path as in Hadoop's own listings. */
  def hadoopPath: Path = new Path(fileSystem.getScheme, Option(fileSystem.getAuthority).getOrElse(""), path)
}

/**
 * Consecutive Hadoop splits that one task reads.
 *
 * As a `FileSplit`, it has the path and start of its first range, and the total length. The driver keeps the ranges in
 * the form in which they are sent, with each directory's path stored once: some 30 bytes for each file.
 *
 * @param count number of ranges
 * @param readers maximum number of native threads that read them ahead
 * @param hosts the hosts of most of its bytes
 */
private[rdd] final class PackedSplit private (
    first: FileRange,
    bytes: Long,
    private var count: Int,
    private var packed: FileRanges,
    private var readers: Int,
    hosts: Array[String])
    extends FileSplit(first.hadoopPath, first.start, bytes, hosts) {

  /** To be filled by [[readFields]]. */
  def this() =
    this(
      FileRange(PackedSplit.Local, "/", 0, 0, PackedSplit.Unknown),
      0,
      0,
      new FileRanges.Builder().build(),
      0,
      Array.empty)

  def maxReaders: Int = readers

  def ranges: Array[FileRange] = {
    val cursor = packed.cursor()
    val fileSystem = if (packed.isLocal) PackedSplit.Local else new URI(packed.fileSystem)
    Array.fill(count) {
      cursor.next()
      FileRange(fileSystem, cursor.file, cursor.start, cursor.length, cursor.version, Option(cursor.codec))
    }
  }

  /** Some of the ranges, for the native scan. */
  def slice(from: Int, until: Int): FileRanges = packed.slice(from, until)

  override def write(out: DataOutput): Unit = {
    super.write(out)
    out.writeInt(count)
    packed.write(out)
    out.writeInt(readers)
  }

  /**
   * Called in executors. Hadoop's own input format would read only the first file of a packed split, so ours must be
   * installed.
   */
  override def readFields(in: DataInput): Unit = {
    super.readFields(in)
    count = in.readInt()
    packed = FileRanges.read(in)
    readers = in.readInt()
    if (!TextInputFormatHook.isInstalled) TextInputFormatHook.install()
    if (!TextInputFormatHook.isInstalled) {
      throw new IOException(
        "Millstream's splits of text files were made in the driver, but cannot be read in this JVM; " +
          s"set ${Switches.TextFiles.key}=false")
    }
  }

  override def toString: String =
    if (count == 1) super.toString else s"$getPath and ${count - 1} more, $getLength bytes in total"
}

private[rdd] object PackedSplit {

  /** The version of a file that was not listed. */
  val Unknown: Version = new Version(-1, 0, null)

  /** The local file system. */
  val Local: URI = URI.create("file:///")

  def apply(ranges: Seq[FileRange], maxReaders: Int, hosts: Seq[String]): PackedSplit = {
    val packed = new FileRanges.Builder(ranges.head.fileSystem)
    ranges.foreach { range =>
      range.codec match {
        case None => packed.add(range.path, range.start, range.length, range.version)
        // It may be the whole file, whose size need not be known.
        case Some(TextCodec.BZIP2) =>
          packed.addBzip2Part(range.path, range.start, range.length, range.version)
        case Some(codec) =>
          packed.addCompressed(range.path, range.start, range.length, range.version, codec, range.index)
      }
    }
    new PackedSplit(ranges.head, ranges.map(_.length).sum, ranges.size, packed.build(), maxReaders, hosts.toArray)
  }
}
