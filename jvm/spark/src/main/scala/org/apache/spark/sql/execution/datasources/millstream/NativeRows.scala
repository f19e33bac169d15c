package org.apache.spark.sql.execution.datasources.millstream

import io.millstream.hadoop.NativeScan

import org.apache.spark.sql.types.{Decimal, StringType}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/**
 * The rows of a native batch as a column of strings. The strings are not copied, so they are valid as long as the
 * batch.
 */
private[millstream] final class NativeRows(scan: NativeScan) extends ColumnVector(StringType) {
  private var bytes = 0L
  private var lines = 0L

  /** Shows the batch that the scan has fetched, from row `first` on. */
  def show(first: Long): Unit = {
    bytes = scan.bytes
    lines = scan.lines + first * 8
  }

  override def getUTF8String(row: Int): UTF8String = {
    val line = lines + row.toLong * 8
    UTF8String.fromAddress(null, bytes + (Platform.getInt(null, line) & 0xFFFFFFFFL), Platform.getInt(null, line + 4))
  }

  override def getBinary(row: Int): Array[Byte] = getUTF8String(row).getBytes

  override def hasNull: Boolean = false
  override def numNulls: Int = 0
  override def isNullAt(row: Int): Boolean = false

  /** Does nothing, because the scan owns the memory. */
  override def close(): Unit = ()

  private def notAString: Nothing = throw new UnsupportedOperationException("a column of strings")

  override def getBoolean(row: Int): Boolean = notAString
  override def getByte(row: Int): Byte = notAString
  override def getShort(row: Int): Short = notAString
  override def getInt(row: Int): Int = notAString
  override def getLong(row: Int): Long = notAString
  override def getFloat(row: Int): Float = notAString
  override def getDouble(row: Int): Double = notAString
  override def getArray(row: Int): ColumnarArray = notAString
  override def getMap(row: Int): ColumnarMap = notAString
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = notAString
  override def getChild(ordinal: Int): ColumnVector = notAString
}
