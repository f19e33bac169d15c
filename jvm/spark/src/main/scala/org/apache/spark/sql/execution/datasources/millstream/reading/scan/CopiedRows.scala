package org.apache.spark.sql.execution.datasources.millstream.reading.scan

import io.millstream.hadoop.reading.NativeScan
import org.apache.hadoop.io.Text

import org.apache.spark.unsafe.Platform

/** Copies the rows of a scan's batch from native memory, several at a time. */
private[millstream] final class CopiedRows(scan: NativeScan) {
  private var rows = 0L
  private var copied = new Array[Byte](CopiedRows.CopyBytes)

  /** The range of the batch's bytes that is copied. */
  private var copiedFrom = 0L
  private var copiedTo = 0L

  /** Prepares for the scan's next batch, which has this number of rows. */
  def begin(count: Long): Unit = {
    rows = count
    copiedTo = 0
  }

  /** Sets a text to a row. */
  def copy(row: Long, value: Text): Unit = {
    val (begin, length) = (start(row), lengthOf(row))
    if (begin < copiedFrom || begin + length > copiedTo) fetch(begin, length)
    value.set(copied, (begin - copiedFrom).toInt, length)
  }

  /** Where a row begins in the batch's memory. */
  def start(row: Long): Long = Platform.getInt(null, scan.lines + row * 8) & 0xffffffffL

  private def lengthOf(row: Long): Int = Platform.getInt(null, scan.lines + row * 8 + 4)

  private def fetch(begin: Long, length: Int): Unit = {
    val end = start(rows - 1) + lengthOf(rows - 1)
    val count = math.max(length, math.min(end - begin, CopiedRows.CopyBytes)).toInt
    if (count > copied.length) copied = new Array(count)
    Platform.copyMemory(null, scan.bytes + begin, copied, Platform.BYTE_ARRAY_OFFSET, count)
    copiedFrom = begin
    copiedTo = begin + count
  }
}

private object CopiedRows {
  private val CopyBytes = 64 << 10
}
