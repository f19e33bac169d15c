package org.apache.spark.sql.execution.datasources.millstream.rdd

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInput, DataInputStream, DataOutput, DataOutputStream, IOException}

import org.apache.hadoop.fs.Path
import org.apache.hadoop.mapred.FileSplit

/** A part of a local file. */
private[rdd] final case class FileRange(path: String, start: Long, length: Long) {
  /** As Hadoop's own listings name the file. */
  def hadoopPath: Path = new Path("file", "", path)
}

/**
 * Consecutive splits of Hadoop's that one task reads.
 *
 * As a `FileSplit` it has the path and the start of its first range, and the length of all. The driver keeps the ranges as they are
 * sent, a directory's path once: some 30 bytes for each file.
 *
 * @param count how many ranges there are
 * @param packed the ranges, as [[PackedSplit.pack]] writes them
 */
private[rdd] final class PackedSplit private (first: FileRange, bytes: Long, private var count: Int, private var packed: Array[Byte])
  extends FileSplit(first.hadoopPath, first.start, bytes, Array.empty[String]) {

  /** To be filled by [[readFields]]. */
  def this() = this(FileRange("/", 0, 0), 0, 0, Array.emptyByteArray)

  def ranges: Array[FileRange] = PackedSplit.unpack(packed, count)

  override def write(out: DataOutput): Unit = {
    super.write(out)
    out.writeInt(count)
    out.writeInt(packed.length)
    out.write(packed)
  }

  /** In an executor. Hadoop's own input format would read the first file and leave out the others. */
  override def readFields(in: DataInput): Unit = {
    super.readFields(in)
    count = in.readInt()
    packed = new Array(in.readInt())
    in.readFully(packed)
    if (!TextInputFormatHook.isInstalled) TextInputFormatHook.install()
    if (!TextInputFormatHook.isInstalled) {
      throw new IOException("Millstream's splits of text files cannot be read in this JVM, though they were made in the driver's; " +
        s"set ${PackedTextInputFormat.Enabled.key}=false")
    }
  }

  override def toString: String = if (count == 1) super.toString else s"$getPath and ${count - 1} more, $getLength bytes in all"
}

private[rdd] object PackedSplit {
  def apply(ranges: Seq[FileRange]): PackedSplit = new PackedSplit(ranges.head, ranges.map(_.length).sum, ranges.size, pack(ranges))

  /** For each range whether its directory is another one than the last, that directory if so, name, start and length. */
  private def pack(ranges: Seq[FileRange]): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val out = new DataOutputStream(bytes)
    var directory = ""
    ranges.foreach { range =>
      val (own, name) = range.path.splitAt(range.path.lastIndexOf('/') + 1)
      out.writeBoolean(own != directory)
      if (own != directory) out.writeUTF(own)
      out.writeUTF(name)
      out.writeLong(range.start)
      out.writeLong(range.length)
      directory = own
    }
    bytes.toByteArray
  }

  private def unpack(packed: Array[Byte], count: Int): Array[FileRange] = {
    val in = new DataInputStream(new ByteArrayInputStream(packed))
    var directory = ""
    Array.fill(count) {
      if (in.readBoolean()) directory = in.readUTF()
      FileRange(directory + in.readUTF(), in.readLong(), in.readLong())
    }
  }
}
