package org.apache.spark.sql.execution.datasources.millstream.reading.text

import io.millstream.hadoop.reading.NativeScan

import org.apache.spark.sql.types.{DataType, Decimal, LongType, StringType}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** A column of a native batch. The scan owns the memory, so values are valid as long as the batch. */
private[millstream] abstract class NativeColumn(dataType: DataType) extends ColumnVector(dataType) {

  /** Shows the batch that the scan has fetched, from row `first` on. */
  def show(first: Long): Unit

  override def hasNull: Boolean = false
  override def numNulls: Int = 0
  override def isNullAt(row: Int): Boolean = false

  /** Does nothing, because the scan owns the memory. */
  override def close(): Unit = ()

  private def otherType: Nothing = throw new UnsupportedOperationException(s"a column of $dataType")

  override def getBoolean(row: Int): Boolean = otherType
  override def getByte(row: Int): Byte = otherType
  override def getShort(row: Int): Short = otherType
  override def getInt(row: Int): Int = otherType
  override def getLong(row: Int): Long = otherType
  override def getFloat(row: Int): Float = otherType
  override def getDouble(row: Int): Double = otherType
  override def getUTF8String(row: Int): UTF8String = otherType
  override def getBinary(row: Int): Array[Byte] = otherType
  override def getArray(row: Int): ColumnarArray = otherType
  override def getMap(row: Int): ColumnarMap = otherType
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = otherType
  override def getChild(ordinal: Int): ColumnVector = otherType
}

/** The rows of a native batch as a column of strings, which are not copied. */
private[millstream] final class NativeRows(scan: NativeScan) extends NativeColumn(StringType) {
  private var bytes = 0L
  private var lines = 0L

  override def show(first: Long): Unit = {
    bytes = scan.bytes
    lines = scan.lines + first * 8
  }

  override def getUTF8String(row: Int): UTF8String = {
    val line = lines + row.toLong * 8
    UTF8String.fromAddress(null, bytes + (Platform.getInt(null, line) & 0xffffffffL), Platform.getInt(null, line + 4))
  }

  override def getBinary(row: Int): Array[Byte] = getUTF8String(row).getBytes
}

/** How often each row of a native batch occurs. */
private[millstream] final class NativeCounts(scan: NativeScan) extends NativeColumn(LongType) {
  private var counts = 0L

  override def show(first: Long): Unit = counts = scan.counts + first * 8

  override def getLong(row: Int): Long = Platform.getLong(null, counts + row.toLong * 8)
}
