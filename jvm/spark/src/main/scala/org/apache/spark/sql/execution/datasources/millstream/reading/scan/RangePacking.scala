package org.apache.spark.sql.execution.datasources.millstream.reading.scan

import java.net.URI

import scala.collection.mutable

import io.millstream.hadoop.codec.TextCodec
import io.millstream.hadoop.listing.Version
import io.millstream.hadoop.reading.{FileRanges, NativeIndex}
import org.apache.hadoop.fs.LocatedFileStatus

import org.apache.spark.Partition
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata
import org.apache.spark.sql.execution.datasources.millstream.compressed.{CompressedFile, CompressedFiles}
import org.apache.spark.sql.execution.datasources.millstream.listing.Indexed
import org.apache.spark.sql.execution.datasources.millstream.tasks.TaskQuota

/**
 * Consecutive ranges whose rows have the same values in the partition columns.
 *
 * @param end number of ranges from the beginning of the partition to the end of the section
 */
private[millstream] final case class Section(partitionValues: InternalRow, end: Int)

/** @param hosts the hosts of most of its bytes; empty if unknown */
private[millstream] final case class ScanPartition(
    index: Int,
    ranges: FileRanges,
    sections: Array[Section],
    hosts: Seq[String]) extends Partition {

  /** Whether its task builds indexes of files. */
  def makesIndexes: Boolean = {
    val range = ranges.cursor()
    Iterator.continually(range.next()).takeWhile(identity).exists(_ => range.isIndexing)
  }
}

/**
 * How a compressed file is read.
 *
 * @param large its current version, if several tasks should share it
 * @param index the index with which they can
 * @param makesIndex whether the task that reads the whole file builds the index
 */
private[millstream] final case class Decoded(
    codec: TextCodec,
    large: Option[CompressedFile],
    index: Option[NativeIndex],
    makesIndex: Boolean) {

  /** Decoded bytes of a file of this many bytes, as far as known. */
  def length(size: Long): Long = index.fold(size * CompressedFiles.Ratio)(_.length)
}

/**
 * Packs ranges of files, in order, into partitions that cost about `target` bytes each.
 *
 * @param fileSystem the files' file system
 */
private[millstream] final class RangePacking(fileSystem: URI, target: Long, openCost: Long) {
  private val quota = new TaskQuota(target)
  private val partitions = Array.newBuilder[Partition]
  private val sections = mutable.ArrayBuffer.empty[Section]
  private var ranges = new FileRanges.Builder(fileSystem)
  private val bytesByHost = mutable.HashMap.empty[String, Long].withDefaultValue(0L)
  private var values: InternalRow = InternalRow.empty
  private var count = 0

  /** Sets the partition values of the files that are added next. */
  def begin(partitionValues: InternalRow): Unit = {
    endSection()
    values = partitionValues
  }

  /** Adds a file that may be split between tasks. */
  def addSplit(file: FileStatusWithMetadata): Unit = split(file.getLen)((start, length) => add(file, start, length))()

  /** Adds a compressed file, which is split between tasks if that is possible. */
  def addDecoded(file: FileStatusWithMetadata, how: Decoded): Unit = (how.large, how.index) match {
    case (Some(now), Some(index)) =>
      // The compressed bytes of a part only determine its location, so uniform compression is assumed.
      def compressed(offset: Long) = (offset.toDouble / index.length * now.size).toLong
      split(index.length) { (start, length) =>
        put(file, compressed(start), compressed(start + length), length) {
          ranges.addCompressed(
            now.path.toUri.getPath,
            start,
            length,
            now.version,
            how.codec,
            index.slice(start, start + length))
        }
      }(index.cut)
    case (Some(now), None) if how.codec == TextCodec.BZIP2 =>
      split(how.length(now.size)) { (start, length) =>
        // The corresponding number of the file's bytes.
        val (first, end) = (start / CompressedFiles.Ratio, (start + length) / CompressedFiles.Ratio)
        if (end - first == now.size) addWhole(file, how)
        else if (end > first) put(file, first, end, length) {
          ranges.addBzip2Part(
            now.path.toUri.getPath,
            first,
            end - first,
            now.version)
        }
      }()
    case _ => addWhole(file, how)
  }

  private def addWhole(file: FileStatusWithMetadata, how: Decoded): Unit = {
    val size = file.getLen
    put(file, 0, size, how.length(size)) {
      file.fileStatus match {
        case _ if how.makesIndex =>
          how.large.foreach { now =>
            ranges.addIndexing(now.path.toUri.getPath, now.version, how.codec)
          }
        case listed: Indexed => ranges.addCompressed(listed.listing, listed.entry, listed.mayHaveChecksums, how.codec)
        case other =>
          ranges.addCompressed(
            other.getPath.toUri.getPath,
            0,
            size,
            Version.of(other),
            how.codec,
            Array.emptyByteArray)
      }
    }
  }

  /**
   * Adds parts of a file.
   *
   * @param add adds the part with this start and length
   * @param cut the best end for a part with this start and end
   */
  private def split(length: Long)(add: (Long, Long) => Unit)(cut: (Long, Long) => Long = (_, end) => end): Unit = {
    var start = 0L
    while (start < length) {
      val room = quota.room - openCost
      val left = length - start
      // A small remainder stays in this task; if the task is almost full, the file starts in the next one.
      if (left <= room + target / 4) {
        add(start, left)
        start = length
      } else if (ranges.count > 0 && room < target / 4) {
        endPartition()
      } else {
        // Reading fewer bytes than the cost of opening would not pay off.
        val end = math.min(length, cut(start, start + math.min(left, Seq(room, openCost, 1L).max)))
        add(start, end - start)
        start = end
      }
    }
  }

  /** Adds a file that is not split. */
  def add(file: FileStatusWithMetadata): Unit = add(file, 0, file.getLen)

  private def add(file: FileStatusWithMetadata, start: Long, length: Long): Unit =
    put(file, start, start + length, length) {
      file.fileStatus match {
        case listed: Indexed => ranges.add(listed.listing, listed.entry, listed.mayHaveChecksums, start, length)
        case other =>
          ranges.add(other.getPath.toUri.getPath, start, length, Version.of(other))
      }
    }

  /**
   * Adds a range to the task, or to the next one.
   *
   * @param start the first byte of the file that it needs
   * @param end the end of these bytes
   * @param bytes the number of bytes that it has to read, decoded if the file is compressed
   */
  private def put(file: FileStatusWithMetadata, start: Long, end: Long, bytes: Long)(add: => Unit): Unit = {
    if (quota.overflows(bytes + openCost)) endPartition()
    add
    file.fileStatus match {
      case located: LocatedFileStatus => locate(located, start, end)
      case _ =>
    }
    if (quota.take(bytes + openCost)) endPartition()
  }

  private def locate(file: LocatedFileStatus, start: Long, end: Long): Unit =
    for (block <- Option(file.getBlockLocations).getOrElse(Array.empty)) {
      val bytes = math.min(end, block.getOffset + block.getLength) - math.max(start, block.getOffset)
      if (bytes > 0) block.getHosts.foreach(host => bytesByHost(host) += bytes)
    }

  /** As for Spark's own partitions. */
  private def hosts: Seq[String] =
    (bytesByHost - "localhost").toSeq.sortBy { case (host, bytes) => (-bytes, host) }.take(
      RangePacking.MostHosts).map(_._1)

  def result(): Array[Partition] = {
    endPartition()
    partitions.result()
  }

  private def endSection(): Unit =
    if (ranges.count > sections.lastOption.fold(0)(_.end)) sections += Section(values, ranges.count)

  private def endPartition(): Unit = if (ranges.count > 0) {
    endSection()
    partitions += ScanPartition(count, ranges.build(), sections.toArray, hosts)
    bytesByHost.clear()
    count += 1
    sections.clear()
    ranges = new FileRanges.Builder(fileSystem)
    quota.next()
  }
}

private[millstream] object RangePacking {
  private val MostHosts = 3
}
