package org.apache.spark.sql.execution.datasources.millstream.reading.packed

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8

import io.millstream.hadoop.natives.WireWriter
import io.millstream.hadoop.reading.NativeParquet
import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.parquet.{ParquetFileFormat, ParquetOptions}
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * The columns of small Parquet files, decoded natively into the vectors of an open Spark reader.
 *
 * A file is decoded only if the result equals Spark's: the native side checks its schema, encodings and codec
 * (`millstream_parquet`), and this side the requested columns and the settings.
 *
 * @param request the columns, encoded for the native side
 * @param batchRows maximum number of rows in a batch
 */
private final class NativeColumns(types: Seq[DataType], val request: Array[Byte], batchRows: Int) extends Serializable {

  /** Whether the file can be decoded. */
  def suit(file: FileAhead): Boolean = file.decoded(NativeParquet.decode(_, request)).isDefined

  /**
   * Decodes a file into the vectors of `batch`, which begins with these columns; None if it is left to Spark's reader.
   */
  def batches(file: FileAhead, batch: ColumnarBatch): Option[Iterator[ColumnarBatch]] =
    file.decoded(NativeParquet.decode(_, request)).map(new DecodedBatches(_, types, batch, batchRows))
}

private object NativeColumns {
  private val VerifiesPages = "parquet.page.verify-checksum.enabled"
  private val Corrected = "CORRECTED"

  /** Columns with these metadata are looked up by more than their names, or are not null in files that lack them. */
  private val Special = Seq("parquet.field.id", "EXISTS_DEFAULT", "CURRENT_DEFAULT")

  /** None if a column or a setting needs Spark's reader. */
  def of(scan: FileSourceScanExec, hadoop: Configuration): Option[NativeColumns] = {
    val (schema, conf) = (scan.requiredSchema, scan.conf)
    // With this setting, timestamps depend on the writer and on the session's time zone.
    val hasZones = conf.isParquetINT96TimestampConversion && schema.exists(_.dataType == TimestampType)
    val columns = schema.map(field => letter(field).filterNot(_ => hasZones).map(_ -> field.name.getBytes(UTF_8)))
    Option.when(scan.supportsColumnar && columns.forall(_.isDefined) && !hadoop.getBoolean(VerifiesPages, false)) {
      val options = new ParquetOptions(scan.relation.options, conf)
      val flags = Seq(
        conf.caseSensitiveAnalysis,
        options.datetimeRebaseModeInRead == Corrected,
        options.int96RebaseModeInRead == Corrected)
      new NativeColumns(schema.map(_.dataType), encoded(columns.flatten, flags), conf.parquetVectorizedReaderBatchSize)
    }
  }

  private def letter(field: StructField): Option[Array[Byte]] =
    if (field.name == ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME || Special.exists(field.metadata.contains)) None
    else letter(field.dataType)

  private def letter(dataType: DataType): Option[Array[Byte]] = dataType match {
    case BooleanType => letters('z')
    case ByteType => letters('b')
    case ShortType => letters('s')
    case IntegerType => letters('i')
    case LongType => letters('l')
    case FloatType => letters('f')
    case DoubleType => letters('g')
    case DateType => letters('d')
    case TimestampType => letters('t')
    case TimestampNTZType => letters('T')
    case StringType => letters('S')
    case BinaryType => letters('B')
    case decimal: DecimalType if decimal.precision <= Decimal.MAX_LONG_DIGITS && decimal.scale >= 0 =>
      letters('n', decimal.precision, decimal.scale)
    case _ => None
  }

  private def letters(values: Int*): Option[Array[Byte]] = Some(values.map(_.toByte).toArray)

  private def encoded(columns: Seq[(Array[Byte], Array[Byte])], flags: Seq[Boolean]): Array[Byte] = {
    val out = new WireWriter
    flags.foreach(flag => out.u8(if (flag) 1 else 0))
    columns.foreach { case (letters, name) => out.bytes(letters).prefixed(name) }
    out.toByteArray
  }
}

/** The rows of a decoded file, in batches. */
private final class DecodedBatches(decoded: Array[Byte], types: Seq[DataType], batch: ColumnarBatch, batchRows: Int)
    extends Iterator[ColumnarBatch] {
  private val in = ByteBuffer.wrap(decoded).order(ByteOrder.LITTLE_ENDIAN)
  private val rows = in.getInt()
  private val columns = types.zipWithIndex.map { case (dataType, i) =>
    new DecodedColumn(decoded, in, rows, dataType, batch.column(i).asInstanceOf[WritableColumnVector])
  }
  private var delivered = 0

  override def hasNext: Boolean = delivered < rows

  override def next(): ColumnarBatch = {
    val count = math.min(batchRows, rows - delivered)
    columns.foreach(_.fill(delivered, count))
    delivered += count
    batch.setNumRows(count)
    batch
  }
}

/** Reads a column at the position of `in`, and advances that beyond it. */
private final class DecodedColumn(
    decoded: Array[Byte],
    in: ByteBuffer,
    rows: Int,
    dataType: DataType,
    vector: WritableColumnVector) {
  private val nulls = if (in.get() == 1) skip(rows) else -1
  private val width = dataType match {
    case BooleanType | ByteType => 1
    case ShortType => 2
    case LongType | TimestampType | TimestampNTZType | DoubleType => 8
    case decimal: DecimalType if decimal.precision > Decimal.MAX_INT_DIGITS => 8
    case StringType | BinaryType => 0
    case _ => 4
  }
  private val values = skip(if (width == 0) (rows + 1) * Integer.BYTES else rows * width)
  private val bytes = if (width == 0) skip(offset(rows)) else -1

  private def skip(length: Int): Int = {
    val start = in.position()
    in.position(start + length)
    start
  }

  private def offset(row: Int): Int = in.getInt(values + row * Integer.BYTES)

  /** Writes the rows from `first` on to the vector. */
  def fill(first: Int, count: Int): Unit = {
    vector.reset()
    vector.setDictionary(null)
    vector.reserve(count)
    putValues(first, count)
    if (nulls >= 0) {
      for (i <- 0 until count) {
        if (decoded(nulls + first + i) != 0) vector.putNull(i)
      }
    }
  }

  private def putValues(first: Int, count: Int): Unit = {
    val start = values + first * width
    dataType match {
      case BooleanType => for (i <- 0 until count) vector.putBoolean(i, decoded(start + i) != 0)
      case ByteType => vector.putBytes(0, count, decoded, start)
      case ShortType => for (i <- 0 until count) vector.putShort(i, in.getShort(start + i * 2))
      case FloatType => for (i <- 0 until count) vector.putFloat(i, in.getFloat(start + i * 4))
      case DoubleType => for (i <- 0 until count) vector.putDouble(i, in.getDouble(start + i * 8))
      case StringType | BinaryType =>
        for (i <- 0 until count) {
          val begin = offset(first + i)
          vector.putByteArray(i, decoded, bytes + begin, offset(first + i + 1) - begin)
        }
      case _ if width == 4 => vector.putIntsLittleEndian(0, count, decoded, start)
      case _ => vector.putLongsLittleEndian(0, count, decoded, start)
    }
  }
}
