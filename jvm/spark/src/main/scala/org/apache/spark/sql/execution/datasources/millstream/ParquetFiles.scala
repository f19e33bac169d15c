package org.apache.spark.sql.execution.datasources.millstream

import java.lang.reflect.{Method, Proxy}
import java.nio.{ByteBuffer, ByteOrder}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.{FSDataInputStream, Path}
import org.apache.hadoop.mapreduce.RecordReader
import org.apache.parquet.{HadoopReadOptions, ParquetReadOptions}
import org.apache.parquet.bytes.ByteBufferInputStream
import org.apache.parquet.format.converter.ParquetMetadataConverter
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{FileMetaData, ParquetMetadata}
import org.apache.parquet.hadoop.metadata.FileMetaData.EncryptionType
import org.apache.parquet.io.{DelegatingSeekableInputStream, InputFile, SeekableInputStream}
import org.apache.parquet.schema.MessageType

import org.apache.spark.sql.execution.datasources.parquet.{SpecificParquetRecordReaderBase, VectorizedParquetRecordReader}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Spark's vectorized Parquet reader takes row groups from an interface of its own until it has returned as many rows as it
 * knows of. So a further file needs Parquet's reader of that file behind the interface, with the options that Spark has given
 * to the first one (filter, codecs), and a larger number of rows.
 */
private final class ParquetFiles extends ColumnarFiles[ParquetMetadata] {
  ParquetFiles.check()

  override def open(reader: RecordReader[_, _]): Option[OpenReader[ParquetMetadata]] = reader match {
    case vectorized: VectorizedParquetRecordReader =>
      Option(ParquetFiles.groupsOf(vectorized)).filterNot(ParquetFiles.isEncrypted).map(new OpenParquetReader(vectorized, _))
    case _ => None
  }
}

/**
 * What Spark derives from a footer besides its row groups: the schema, whether the writer has certain flaws, and how dates are
 * to be rebased. For the last, Spark looks at metadata of its own alone.
 */
private final case class ParquetKey(schema: MessageType, createdBy: String, ofSpark: Map[String, String])

private object ParquetKey {
  def of(metadata: FileMetaData): ParquetKey =
    ParquetKey(metadata.getSchema, metadata.getCreatedBy, metadata.getKeyValueMetaData.asScala.filter(_._1.startsWith("org.apache.spark.")).toMap)
}

/** @param groups the reader of the current file's row groups */
private final class OpenParquetReader(vectorized: VectorizedParquetRecordReader, private var groups: ParquetFileReader)
  extends OpenReader[ParquetMetadata] {

  private val options = ParquetFiles.optionsOf(groups)
  private val converter = new ParquetMetadataConverter(options)
  private val key = ParquetKey.of(groups.getFileMetaData)
  private val columns = ParquetFiles.requestedSchemaOf(vectorized)
  private var rows = ParquetFiles.rowsOf(vectorized)
  ParquetFiles.setGroups(vectorized, () => groups)

  override def reader: RecordReader[_, _] = vectorized

  override def batch: ColumnarBatch = vectorized.resultBatch()

  override def footer(file: FileAhead): Option[ParquetMetadata] =
    for {
      stream <- file.stream
      bytes <- ParquetFiles.footerBytes(stream, file.fileSize)
      footer = converter.readParquetMetadata(ByteBufferInputStream.wrap(ByteBuffer.wrap(bytes)), ParquetMetadataConverter.range(0, file.fileSize))
      if footer.getFileMetaData.getEncryptionType == EncryptionType.UNENCRYPTED
    } yield footer

  override def suits(footer: ParquetMetadata): Boolean = ParquetKey.of(footer.getFileMetaData) == key

  override def advance(file: FileAhead, footer: ParquetMetadata): Unit = {
    groups.close()
    groups = ParquetFiles.reader(new ParquetFileAhead(file), footer, options)
    groups.setRequestedSchema(columns)
    rows += groups.getFilteredRecordCount
    ParquetFiles.setRows(vectorized, rows)
  }
}

private object ParquetFiles {
  private val Magic = "PAR1".getBytes
  private val Trailer = Integer.BYTES + Magic.length

  private val base = classOf[SpecificParquetRecordReaderBase[_]]
  private val groupsField = Reflected.field(base, "reader")
  private val rowsField = Reflected.field(base, "totalRowCount")
  private val requestedSchemaField = Reflected.field(base, "requestedSchema")
  private val optionsField = Reflected.field(classOf[ParquetFileReader], "options")
  private val fileReaderField = Reflected.field(Class.forName(s"${base.getName}$$ParquetRowGroupReaderImpl", false, base.getClassLoader), "reader")

  /** Since Parquet 1.16 (Spark 4.1), a reader of an `InputFile` can be given the footer. */
  private val takesFooter =
    Try(classOf[ParquetFileReader].getConstructor(classOf[InputFile], classOf[ParquetMetadata], classOf[ParquetReadOptions], classOf[SeekableInputStream]))
      .isSuccess

  /** Fails if the fields are not there. */
  def check(): Unit = ()

  /** The reader of the first file's row groups. */
  def groupsOf(reader: VectorizedParquetRecordReader): ParquetFileReader =
    fileReaderField.get(groupsField.get(reader)).asInstanceOf[ParquetFileReader]

  /** Lets Spark's reader take row groups from whichever file is the current one. The interface is private to Spark's package. */
  def setGroups(reader: VectorizedParquetRecordReader, current: () => ParquetFileReader): Unit = {
    val interface = groupsField.getType
    val proxy = Proxy.newProxyInstance(interface.getClassLoader, Array(interface), (_: AnyRef, method: Method, _: Array[AnyRef]) =>
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

  def requestedSchemaOf(reader: VectorizedParquetRecordReader): MessageType = requestedSchemaField.get(reader).asInstanceOf[MessageType]

  def optionsOf(reader: ParquetFileReader): ParquetReadOptions = optionsField.get(reader).asInstanceOf[ParquetReadOptions]

  def isEncrypted(reader: ParquetFileReader): Boolean =
    optionsOf(reader).getDecryptionProperties != null || reader.getFileMetaData.getEncryptionType != EncryptionType.UNENCRYPTED

  def reader(file: ParquetFileAhead, footer: ParquetMetadata, options: ParquetReadOptions): ParquetFileReader =
    if (takesFooter) new ParquetFileReader(file, footer, options, file.newStream())
    else new ParquetFileReader(options.asInstanceOf[HadoopReadOptions].getConf, file.path, footer, options, file.newStream())

  /** The encoded footer of a file; None if the file does not end as a Parquet file does. */
  def footerBytes(stream: FSDataInputStream, length: Long): Option[Array[Byte]] = Option.when(length > Trailer + Magic.length) {
    val trailer = new Array[Byte](Trailer)
    stream.readFully(length - Trailer, trailer)
    val size = Integer.toUnsignedLong(ByteBuffer.wrap(trailer).order(ByteOrder.LITTLE_ENDIAN).getInt)
    if (trailer.endsWith(Magic) && size < length - Trailer - Magic.length) {
      val footer = new Array[Byte](size.toInt)
      stream.readFully(length - Trailer - size, footer)
      Some(footer)
    } else {
      None
    }
  }.flatten
}

/** A file in memory; errors name it as they do if Spark has opened it. */
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
