package org.apache.spark.sql.execution.datasources.millstream

import scala.collection.mutable

import io.millstream.hadoop.FileRanges

import org.apache.spark.Partition
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata

/**
 * Consecutive ranges whose rows have the same values in the partition columns.
 *
 * @param end number of ranges up to its end, from the beginning of the partition
 */
private[millstream] final case class Section(partitionValues: InternalRow, end: Int)

private[millstream] final case class ScanPartition(index: Int, ranges: FileRanges, sections: Array[Section]) extends Partition

/**
 * Packs ranges of files, in order, into partitions that cost about `target` bytes each.
 *
 * A partition ends where all so far should have cost a multiple of the target, so that one which is somewhat too large makes
 * the next one smaller, and there are as many as there should be.
 */
private[millstream] final class Packing(target: Long, openCost: Long) {
  private val partitions = Array.newBuilder[Partition]
  private val sections = mutable.ArrayBuffer.empty[Section]
  private var ranges = new FileRanges.Builder
  private var values: InternalRow = InternalRow.empty
  private var spent = 0L
  private var quota = target
  private var count = 0

  /** What follows has these values in its partition columns. */
  def begin(partitionValues: InternalRow): Unit = {
    endSection()
    values = partitionValues
  }

  /** Adds a file of which several tasks may have a part. */
  def addSplit(file: FileStatusWithMetadata): Unit = {
    val length = file.getLen
    var start = 0L
    while (start < length) {
      val room = quota - spent - openCost
      val left = length - start
      // A small rest is no task of its own, and where there is hardly room the file begins in the next one.
      if (left <= room + target / 4) {
        add(file, start, left)
        start = length
      } else if (ranges.count > 0 && room < target / 4) {
        endPartition()
      } else {
        // To read fewer bytes than opening costs would not pay.
        val part = math.min(left, Seq(room, openCost, 1L).max)
        add(file, start, part)
        start += part
      }
    }
  }

  /** Adds a file that one task has. */
  def add(file: FileStatusWithMetadata): Unit = add(file, 0, file.getLen)

  private def add(file: FileStatusWithMetadata, start: Long, length: Long): Unit = {
    if (ranges.count > 0 && spent + length + openCost > quota + target / 4) endPartition()
    file.fileStatus match {
      case listed: IndexedFileStatus => ranges.add(listed.listing, listed.entry, listed.mayHaveChecksums, start, length)
      case other => ranges.add(other.getPath.toUri.getPath, start, length, other.getLen, other.getModificationTime)
    }
    spent += length + openCost
    if (spent >= quota) endPartition()
  }

  def result(): Array[Partition] = {
    endPartition()
    partitions.result()
  }

  private def endSection(): Unit =
    if (ranges.count > sections.lastOption.fold(0)(_.end)) sections += Section(values, ranges.count)

  private def endPartition(): Unit = if (ranges.count > 0) {
    endSection()
    partitions += ScanPartition(count, ranges.build(), sections.toArray)
    count += 1
    sections.clear()
    ranges = new FileRanges.Builder
    // After a range that is many times too large the next partitions are not to be tiny.
    quota = math.max(quota + target, spent + target / 2)
  }
}
