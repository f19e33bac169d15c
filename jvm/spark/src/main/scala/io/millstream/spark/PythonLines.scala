package io.millstream.spark

import java.util.Arrays

import org.apache.spark.api.java.JavaRDD
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{classic, DataFrame}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.millstream.reading.text.NativeTextScanExec
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/**
 * Passes lines to Python in large pieces: passing one string at a time costs Python and the JVM more than reading a
 * line of a small file.
 */
object PythonLines {
  private val TasksPerCore = 4

  /**
   * The first column, joined by LF, in pieces of at least one and usually hundreds of lines.
   *
   * @param lines a frame whose first column has non-null strings without LF; invalid UTF-8 becomes replacement
   *     characters
   * @param mayShare whether partitions with few bytes may be merged: a Python task costs as much as a thousand small
   *     files
   */
  def joined(lines: DataFrame, mayShare: Boolean): JavaRDD[Array[Byte]] = {
    val execution = lines.asInstanceOf[classic.DataFrame].queryExecution
    val rows = execution.toRdd
    val most = if (mayShare) execution.executedPlan.collectFirst { case scan: NativeTextScanExec =>
      suitable(scan, rows)
    }
    else None
    most.filter(_ < rows.getNumPartitions).fold(rows)(rows.coalesce(_)).mapPartitions(new JoinedLines(_)).toJavaRDD()
  }

  /** The number of partitions: some for each core, and more if a task would otherwise read more than Spark's limit. */
  private def suitable(scan: NativeTextScanExec, rows: RDD[InternalRow]): Int = {
    rows.partitions // sets the scan's metric for the size of the files
    val limit = scan.conf.filesMaxPartitionBytes
    math.max(
      TasksPerCore * rows.sparkContext.defaultParallelism.toLong,
      (scan.metrics("filesSize").value + limit - 1) / limit).toInt
  }
}

private final class JoinedLines(rows: Iterator[InternalRow]) extends Iterator[Array[Byte]] {
  private var buffer = new Array[Byte](JoinedLines.PieceBytes)
  private var filled = 0

  override def hasNext: Boolean = rows.hasNext

  override def next(): Array[Byte] = {
    filled = 0
    append(rows.next().getUTF8String(0))
    while (filled < JoinedLines.PieceBytes / 2 && rows.hasNext) {
      val line = rows.next().getUTF8String(0)
      makeRoom(1)
      buffer(filled) = '\n'
      filled += 1
      append(line)
    }
    Arrays.copyOf(buffer, filled)
  }

  private def append(line: UTF8String): Unit = {
    val valid = if (line.isValid) line else UTF8String.fromString(line.toString)
    makeRoom(valid.numBytes)
    valid.writeToMemory(buffer, Platform.BYTE_ARRAY_OFFSET + filled)
    filled += valid.numBytes
  }

  private def makeRoom(bytes: Int): Unit = {
    val wanted = Math.addExact(filled, bytes)
    if (wanted > buffer.length)
      buffer = Arrays.copyOf(buffer, math.max(wanted, math.min(buffer.length * 2L, JoinedLines.MaxBytes).toInt))
  }
}

private object JoinedLines {
  private val PieceBytes = 256 << 10

  /** The JVM's limit for the length of an array. */
  private val MaxBytes = Int.MaxValue - 8L
}
