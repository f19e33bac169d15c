package org.apache.spark.sql.execution.datasources.millstream.reading.packed

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.mapreduce.{InputSplit, RecordReader, TaskAttemptContext}

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{PartitionedFile, RecordReaderIterator}
import org.apache.spark.sql.execution.datasources.millstream.internals.Reflected
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.vectorized.{ColumnVectorUtils, ConstantColumnVector}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Reads the small Parquet or ORC files of a task by as few of Spark's readers as possible.
 *
 * Setting up a reader takes several times as long as reading a small file: copies of the configuration, conversions of
 * the schema, filters, codecs, column vectors. Spark's vectorized readers need all that once for a schema, because they
 * read one row group (Parquet) or stripe (ORC) after another into the same vectors. So Spark's own function opens the
 * first file, and its reader stays open. For the next file with the same schema only the footer is read, from the bytes
 * already in memory; then the open reader gets that file's row groups as if they belonged to its own file.
 *
 * Unusual cases are left to Spark's function, so that results and errors are Spark's: files that are large, encrypted
 * or have another schema, unreadable footers, readers whose results differ from the vectorized ones'.
 */
private final class ContinuedReader[Footer](
    ofSpark: PartitionedFile => Iterator[InternalRow],
    files: ColumnarFiles[Footer],
    partitionColumns: Int,
    continued: SQLMetric)
    extends (PartitionedFile => Iterator[InternalRow]) with Serializable {

  override def apply(file: PartitionedFile): Iterator[InternalRow] = file match {
    case small: FileAhead if small.stream.isDefined =>
      val readers = small.shared.get(new OpenReaders[Footer](files, partitionColumns))
      readers.continue(small) match {
        case Some(rows) =>
          continued += 1
          rows
        case None => readers.begin(small, ofSpark(small))
      }
    case other => ofSpark(other)
  }
}

/** A format whose readers accept further files. */
private trait ColumnarFiles[Footer] extends Serializable {

  /** A reader that Spark has opened for a file, if it accepts further ones. */
  def open(reader: RecordReader[_, _], file: FileAhead): Option[OpenReader[Footer]]
}

/** A Spark reader that reads one file after another. */
private trait OpenReader[Footer] extends AutoCloseable {

  /** Spark's reader, which returns rows or batches of them. */
  def reader: RecordReader[_, _]

  /** Its vectors; those of partition columns are the last. */
  def batch: ColumnarBatch

  /** Whether files may be decoded without a reader. */
  def decodes: Boolean = false

  /** The rows of a file, decoded into these vectors; None if a reader must read it. */
  def decode(file: FileAhead): Option[Iterator[ColumnarBatch]] = None

  /** The footer of a file, which may have another schema; None if it is left to Spark. */
  def footer(file: FileAhead): Option[Footer]

  /** Whether everything that Spark derives from a footer, except row groups, is the same for this one. */
  def suits(footer: Footer): Boolean

  /** Replaces the row groups with those of a suitable file. */
  def advance(file: FileAhead, footer: Footer): Unit

  override def close(): Unit = reader.close()
}

/** The readers of a task that accept further files, most recently used first. */
private final class OpenReaders[Footer](files: ColumnarFiles[Footer], partitionColumns: Int) extends AutoCloseable
    with Logging {
  private val readers = mutable.ArrayDeque.empty[OpenReader[Footer]]

  /** Reads a file with the reader that Spark has created for it. */
  def begin(file: FileAhead, rows: Iterator[InternalRow]): Iterator[InternalRow] =
    opened(file, rows).fold(rows) { reader =>
      keep(reader)
      rowsOf(reader)
    }

  private def opened(file: FileAhead, rows: Iterator[InternalRow]): Option[OpenReader[Footer]] = rows match {
    case ofReader: RecordReaderIterator[_] => unlessItFails(file)(files.open(OpenReaders.readerOf(ofReader), file))
    case _ => None
  }

  /** Spark's function reads an unusual file, or fails on it. */
  private def unlessItFails[T](file: FileAhead)(step: => Option[T]): Option[T] =
    try {
      step
    } catch {
      case e if NonFatal(e) || e.isInstanceOf[LinkageError] =>
        logDebug(s"Left to Spark: $file", e)
        None
    }

  /** Reads a file with an open reader, if one is suitable. */
  def continue(file: FileAhead): Option[Iterator[InternalRow]] =
    unlessItFails(file)(decoded(file).orElse(advanced(file)))

  private def decoded(file: FileAhead): Option[Iterator[InternalRow]] =
    for (reader <- readers.find(_.decodes); batches <- reader.decode(file)) yield {
      putPartition(reader, file)
      batches.asInstanceOf[Iterator[InternalRow]]
    }

  private def advanced(file: FileAhead): Option[Iterator[InternalRow]] =
    for (latest <- readers.headOption; footer <- latest.footer(file); reader <- suiting(footer)) yield {
      advance(reader, file, footer)
      rowsOf(reader)
    }

  private def suiting(footer: Footer): Option[OpenReader[Footer]] = {
    val found = readers.find(_.suits(footer))
    found.foreach { reader =>
      readers -= reader
      readers.prepend(reader)
    }
    found
  }

  private def advance(reader: OpenReader[Footer], file: FileAhead, footer: Footer): Unit =
    try {
      reader.advance(file, footer)
      putPartition(reader, file)
    } catch {
      case e: Throwable =>
        drop(reader)
        throw e
    }

  private def putPartition(reader: OpenReader[Footer], file: FileAhead): Unit = {
    val columns = reader.batch.numCols() - partitionColumns
    for (i <- 0 until partitionColumns) {
      val constant = reader.batch.column(columns + i).asInstanceOf[ConstantColumnVector]
      constant.setNotNull()
      ColumnVectorUtils.populate(constant, file.partitionValues, i)
    }
  }

  private def keep(reader: OpenReader[Footer]): Unit = {
    if (readers.size == OpenReaders.Most) readers.removeLast().close()
    readers.prepend(reader)
  }

  private def drop(reader: OpenReader[Footer]): Unit = {
    readers -= reader
    reader.close()
  }

  private def rowsOf(open: OpenReader[Footer]): Iterator[InternalRow] =
    new RecordReaderIterator(new RowsOfFile(open.reader, () => drop(open))).asInstanceOf[Iterator[InternalRow]]

  override def close(): Unit = {
    readers.foreach(_.close())
    readers.clear()
  }
}

private object OpenReaders {

  /** Files of several writers alternate in a directory, but vectors take memory. */
  private val Most = 4

  private val rowReader = Reflected.field(classOf[RecordReaderIterator[_]], "rowReader")

  private def readerOf(rows: RecordReaderIterator[_]): RecordReader[_, _] =
    rowReader.get(rows).asInstanceOf[RecordReader[_, _]]
}

/**
 * The rows of one file. If it is closed before its end, or reading has failed, the open reader can no longer be used.
 */
private final class RowsOfFile(open: RecordReader[_, _], drop: () => Unit) extends RecordReader[Void, Any] {
  private var isAtEnd = false

  override def nextKeyValue(): Boolean = {
    isAtEnd = !open.nextKeyValue()
    !isAtEnd
  }

  override def getCurrentValue: Any = open.getCurrentValue

  override def close(): Unit = if (!isAtEnd) drop()

  override def getCurrentKey: Void = null

  override def getProgress: Float = open.getProgress

  override def initialize(split: InputSplit, context: TaskAttemptContext): Unit = ()
}
