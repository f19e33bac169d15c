package org.apache.spark.sql.execution.datasources.millstream.reading.packed

import java.lang.reflect.{Method, Proxy}
import java.nio.{ByteBuffer, ByteOrder}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.{FSDataInputStream, Path}
import org.apache.hadoop.mapreduce.RecordReader
import org.apache.parquet.{HadoopReadOptions, ParquetReadOptions}
import org.apache.parquet.bytes.ByteBufferInputStream
import org.apache.parquet.filter2.compat.FilterCompat
import org.apache.parquet.format.{ColumnOrder, FileMetaData, RowGroup, SchemaElement, Util}
import org.apache.parquet.format.converter.ParquetMetadataConverter
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.io.{DelegatingSeekableInputStream, InputFile, SeekableInputStream}
import org.apache.parquet.schema.MessageType

import org.apache.spark.sql.execution.datasources.millstream.internals.Reflected
import org.apache.spark.sql.execution.datasources.parquet.{
  SpecificParquetRecordReaderBase,
  VectorizedParquetRecordReader
}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Spark's vectorized Parquet reader takes row groups from a separate interface until it has returned its known number
 * of rows. So a further file needs Parquet's reader of that file behind the interface, with the options that Spark has
 * given to the first one (filter, codecs), and a larger number of rows.
 *
 * Decoding the footer is then the largest part of the work for a file. So row groups are converted to Parquet's own
 * form only when they are read, and without columns that are not requested.
 *
 * Most files need none of this: if all requested columns are flat and have common types, they are decoded natively into
 * the vectors of the open reader ([[NativeColumns]]).
 *
 * @param columns the requested columns, if files may be decoded natively
 * @param decoded the number of natively decoded files
 */
private final class ParquetFiles(columns: Option[NativeColumns], decoded: SQLMetric)
    extends ColumnarFiles[FileMetaData] {
  ParquetFiles.check()

  override def open(reader: RecordReader[_, _], file: FileAhead): Option[OpenReader[FileMetaData]] = reader match {
    case vectorized: VectorizedParquetRecordReader =>
      for {
        footer <- ParquetFooter.of(file)
        groups <- Option(ParquetFiles.groupsOf(vectorized))
        if ParquetFiles.optionsOf(groups).getDecryptionProperties == null
      } yield new OpenParquetReader(vectorized, groups, ParquetKey.of(footer), columns.filter(_.suit(file)), decoded)
    case _ => None
  }
}

/**
 * Everything that Spark derives from a footer in addition to row groups: the schema, whether the writer has certain
 * bugs, and how to rebase dates. For the last, Spark uses only its own metadata.
 */
private final case class ParquetKey(
    schema: java.util.List[SchemaElement],
    orders: java.util.List[ColumnOrder],
    createdBy: String,
    ofSpark: Map[String, String])

private object ParquetKey {
  def of(footer: FileMetaData): ParquetKey = {
    val pairs = Option(footer.getKey_value_metadata).fold(Map.empty[String, String])(_.asScala.map(pair =>
      pair.getKey -> pair.getValue).toMap)
    ParquetKey(
      footer.getSchema,
      footer.getColumn_orders,
      footer.getCreated_by,
      pairs.filter(_._1.startsWith("org.apache.spark.")))
  }
}

/**
 * @param groups the reader of the current file's row groups
 * @param native the requested columns, if the first file could be decoded natively: then each has a separate vector
 */
private final class OpenParquetReader(
    vectorized: VectorizedParquetRecordReader,
    private var groups: ParquetFileReader,
    key: ParquetKey,
    native: Option[NativeColumns],
    decoded: SQLMetric)
    extends OpenReader[FileMetaData] {

  private val options = ParquetFiles.optionsOf(groups)
  private val converter = new ParquetMetadataConverter(options)
  private val columns = ParquetFiles.requestedSchemaOf(vectorized)

  /** The paths of all columns of the file's schema. */
  private val leaves = groups.getFileMetaData.getSchema.getPaths.asScala.map(java.util.Arrays.asList(_: _*))
  // A filter may look at any column.
  private val paths =
    Option.unless(FilterCompat.isFilteringRequired(options.getRecordFilter))(
      columns.getPaths.asScala.map(java.util.Arrays.asList(_: _*)).toSet)
  private var rows = ParquetFiles.rowsOf(vectorized)
  ParquetFiles.setGroups(vectorized, () => groups)

  override def reader: RecordReader[_, _] = vectorized

  override def batch: ColumnarBatch = vectorized.resultBatch()

  override def decodes: Boolean = native.isDefined

  override def decode(file: FileAhead): Option[Iterator[ColumnarBatch]] = {
    val batches = native.flatMap(_.batches(file, batch))
    batches.foreach(_ => decoded += 1)
    batches
  }

  override def footer(file: FileAhead): Option[FileMetaData] = ParquetFooter.of(file)

  override def suits(footer: FileMetaData): Boolean =
    ParquetKey.of(footer) == key && footer.getRow_groups.asScala.forall(ParquetFooter.hasColumns(_, leaves))

  override def advance(file: FileAhead, footer: FileMetaData): Unit = {
    groups.close()
    val indexes = ParquetFooter.rowIndexes(footer)
    paths.foreach(ParquetFooter.dropOtherColumns(footer, _))
    groups = ParquetFiles.reader(
      new ParquetFileAhead(file),
      converter.fromParquetMetadata(footer, null, false, indexes),
      options)
    groups.setRequestedSchema(columns)
    rows += groups.getFilteredRecordCount
    ParquetFiles.setRows(vectorized, rows)
  }
}

private object ParquetFiles {
  private val base = classOf[SpecificParquetRecordReaderBase[_]]
  private val groupsField = Reflected.field(base, "reader")
  private val rowsField = Reflected.field(base, "totalRowCount")
  private val requestedSchemaField = Reflected.field(base, "requestedSchema")
  private val optionsField = Reflected.field(classOf[ParquetFileReader], "options")
  private val fileReaderField =
    Reflected.field(Class.forName(s"${base.getName}$$ParquetRowGroupReaderImpl", false, base.getClassLoader), "reader")

  /** Since Parquet 1.16 (Spark 4.1), a reader of an `InputFile` can be given the footer. */
  private val takesFooter =
    Try(classOf[ParquetFileReader].getConstructor(
      classOf[InputFile],
      classOf[ParquetMetadata],
      classOf[ParquetReadOptions],
      classOf[SeekableInputStream]))
      .isSuccess

  /** Fails if the fields are not there. */
  def check(): Unit = ()

  /** The reader of the first file's row groups. */
  def groupsOf(reader: VectorizedParquetRecordReader): ParquetFileReader =
    fileReaderField.get(groupsField.get(reader)).asInstanceOf[ParquetFileReader]

  /**
   * Lets Spark's reader take row groups from the current file. The interface is private to Spark's package.
   */
  def setGroups(reader: VectorizedParquetRecordReader, current: () => ParquetFileReader): Unit = {
    val interface = groupsField.getType
    val proxy = Proxy.newProxyInstance(
      interface.getClassLoader,
      Array(interface),
      (_: AnyRef, method: Method, _: Array[AnyRef]) =>
        method.getName match {
          case "readNextRowGroup" => current().readNextFilteredRowGroup()
          case "close" =>
            current().close()
            null
        })
    groupsField.set(reader, proxy)
  }

  def rowsOf(reader: VectorizedParquetRecordReader): Long = rowsField.getLong(reader)

  def setRows(reader: VectorizedParquetRecordReader, rows: Long): Unit = rowsField.setLong(reader, rows)

  def requestedSchemaOf(reader: VectorizedParquetRecordReader): MessageType =
    requestedSchemaField.get(reader).asInstanceOf[MessageType]

  def optionsOf(reader: ParquetFileReader): ParquetReadOptions =
    optionsField.get(reader).asInstanceOf[ParquetReadOptions]

  def reader(file: ParquetFileAhead, footer: ParquetMetadata, options: ParquetReadOptions): ParquetFileReader =
    if (takesFooter) new ParquetFileReader(file, footer, options, file.newStream())
    else new ParquetFileReader(
      options.asInstanceOf[HadoopReadOptions].getConf,
      file.path,
      footer,
      options,
      file.newStream())
}

/** Footers as they are stored. */
private object ParquetFooter {
  private val Magic = "PAR1".getBytes
  private val Trailer = Integer.BYTES + Magic.length

  /**
   * The footer of a file; None if the file does not look like Parquet, is encrypted, is unusual, or its row groups
   * exceed it.
   */
  def of(file: FileAhead): Option[FileMetaData] =
    for {
      stream <- file.stream
      bytes <- encoded(stream, file.fileSize)
      footer = Util.readFileMetaData(ByteBufferInputStream.wrap(bytes))
      if !footer.isSetEncryption_algorithm && hasValues(footer) && footer.getRow_groups.asScala.forall(isWithin(
        _,
        file.fileSize))
    } yield footer

  /** Spark's reader fails on a key without a value. */
  private def hasValues(footer: FileMetaData): Boolean =
    Option(footer.getKey_value_metadata).forall(_.asScala.forall(_.isSetValue))

  private def encoded(stream: FSDataInputStream, length: Long): Option[ByteBuffer] =
    Option.when(length > Trailer + Magic.length) {
      val trailer = new Array[Byte](Trailer)
      stream.readFully(length - Trailer, trailer)
      val size = Integer.toUnsignedLong(ByteBuffer.wrap(trailer).order(ByteOrder.LITTLE_ENDIAN).getInt)
      Option.when(trailer.endsWith(Magic) && size < length - Trailer - Magic.length) {
        val footer = new Array[Byte](size.toInt)
        stream.readFully(length - Trailer - size, footer)
        ByteBuffer.wrap(footer)
      }
    }.flatten

  /** Spark ignores row groups whose middle is not in the range of the file that it reads. */
  private def isWithin(group: RowGroup, length: Long): Boolean = {
    val columns = group.getColumns.asScala
    columns.nonEmpty && columns.forall(column => column.isSetMeta_data && !column.isSetCrypto_metadata) && {
      val first = columns.head.getMeta_data
      val start = if (first.isSetDictionary_page_offset)
        math.min(first.getData_page_offset, first.getDictionary_page_offset)
      else first.getData_page_offset
      val size = if (group.isSetTotal_compressed_size) group.getTotal_compressed_size
      else columns.map(_.getMeta_data.getTotal_compressed_size).sum
      start >= 0 && size >= 0 && start < length && size <= length - start
    }
  }

  /**
   * Whether a row group has the columns with these paths, in this file. Parquet checks that for all of them, before
   * those that are not requested are dropped.
   */
  def hasColumns(group: RowGroup, paths: collection.Seq[java.util.List[String]]): Boolean = {
    val columns = group.getColumns
    columns.size == paths.size && columns.asScala.zip(paths).forall { case (column, path) =>
      !column.isSetFile_path && column.getMeta_data.getPath_in_schema == path
    }
  }

  /**
   * The number of rows before each row group. Compared by identity, because the hash of a row group is as expensive as
   * decoding it.
   */
  def rowIndexes(footer: FileMetaData): java.util.Map[RowGroup, java.lang.Long] = {
    val indexes = new java.util.IdentityHashMap[RowGroup, java.lang.Long]
    footer.getRow_groups.asScala.foldLeft(0L) { (before, group) =>
      indexes.put(group, before)
      before + group.getNum_rows
    }
    indexes
  }

  /** Leaves the first column, because Parquet expects one. */
  def dropOtherColumns(footer: FileMetaData, paths: Set[java.util.List[String]]): Unit =
    footer.getRow_groups.forEach { group =>
      val first = group.getColumns.get(0)
      group.getColumns.removeIf(column => (column ne first) && !paths.contains(column.getMeta_data.getPath_in_schema))
    }
}

/** A file in memory; errors name it as if Spark had opened it. */
private final class ParquetFileAhead(file: FileAhead) extends InputFile {
  def path: Path = file.toPath

  override def getLength: Long = file.fileSize

  override def newStream(): SeekableInputStream = {
    val bytes = file.stream.get
    new DelegatingSeekableInputStream(bytes) {
      override def getPos: Long = bytes.getPos

      override def seek(position: Long): Unit = bytes.seek(position)
    }
  }

  override def toString: String = path.toString
}
