package org.apache.spark.sql.execution.datasources.millstream.reading.packed

import java.io.ByteArrayInputStream

import com.fasterxml.jackson.core.{JsonFactory, JsonParser}
import com.univocity.parsers.csv.CsvParser
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.io.Text
import org.apache.hadoop.util.LineReader

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.csv.{CSVHeaderChecker, CSVOptions, UnivocityParser}
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.catalyst.json.{CreateJacksonParser, JacksonParser, JSONOptions, JSONOptionsInRead}
import org.apache.spark.sql.catalyst.util.FailureSafeParser
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, PartitionedFile}
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat
import org.apache.spark.sql.execution.datasources.text.{TextFileFormat, TextOptions}
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Spark's CSV format with one parser for all small files of a task: creating a parser, with space for 20,480 columns,
 * takes several times as long as reading such a file. Files that are not read ahead are read by Spark's own reader.
 */
private final class SmallCsvFormat extends CSVFileFormat {
  override def buildReader(
      sparkSession: SparkSession,
      dataSchema: StructType,
      partitionSchema: StructType,
      requiredSchema: StructType,
      filters: Seq[Filter],
      options: Map[String, String],
      hadoopConf: Configuration): PartitionedFile => Iterator[InternalRow] = {
    val ofSpark =
      super.buildReader(sparkSession, dataSchema, partitionSchema, requiredSchema, filters, options, hadoopConf)
    val conf = sparkSession.sessionState.conf
    val csv = new CSVOptions(options, conf.csvColumnPruning, conf.sessionLocalTimeZone, conf.columnNameOfCorruptRecord)
    if (!SmallFile.takesLines(csv)) ofSpark else new SmallCsvReader(ofSpark, csv, dataSchema, requiredSchema, filters)
  }
}

/** Parses lines like the reader of Spark's `CSVFileFormat`. */
private final class SmallCsvReader(
    ofSpark: PartitionedFile => Iterator[InternalRow],
    options: CSVOptions,
    dataSchema: StructType,
    requiredSchema: StructType,
    filters: Seq[Filter])
    extends (PartitionedFile => Iterator[InternalRow]) with Serializable {

  private val columns = withoutCorruptRecord(dataSchema)
  private val requiredColumns = withoutCorruptRecord(requiredSchema)
  private val headerColumns = if (options.isColumnPruningEnabled(requiredSchema)) requiredColumns else columns
  private val filtersOfColumns = filters.filterNot(_.references.contains(options.columnNameOfCorruptRecord))

  override def apply(file: PartitionedFile): Iterator[InternalRow] = file match {
    case small: FileAhead => small.lines(options.lineSeparatorInRead).fold(ofSpark(file))(rows(small, _))
    case other => ofSpark(other)
  }

  private def rows(file: FileAhead, texts: Iterator[Text]): Iterator[InternalRow] = {
    val parser = file.shared.get(new UnivocityParser(columns, requiredColumns, options, filtersOfColumns))
    val header =
      new CSVHeaderChecker(headerColumns, options, s"CSV file: ${file.urlEncodedPath}", isStartOfFile = file.start == 0)
    val lines = texts.map(line => new String(line.getBytes, 0, line.getLength, options.charset))
    UnivocityParser.parseIterator(
      new BegunLines(lines, file.start == 0, parser.tokenizer, options),
      parser,
      header,
      requiredSchema)
  }

  private def withoutCorruptRecord(schema: StructType): StructType =
    StructType(schema.filterNot(_.name == options.columnNameOfCorruptRecord))
}

/**
 * The lines of a file for a parser that has parsed others.
 *
 * Spark has a parser for each file. A parser leaves out a byte order mark before the first line that it parses: one
 * that Hadoop has left, of UTF-16, or the second of two. With a user's line separator, it keeps what follows the end of
 * a record within a line (a NUL, or the separator itself, whose bytes do not match in UTF-16) for the next line. So the
 * parser is restarted in these cases; always doing so would take longer than parsing a small file, because its buffer
 * is allocated again.
 */
private final class BegunLines(
    lines: Iterator[String],
    isStartOfFile: Boolean,
    tokenizer: CsvParser,
    options: CSVOptions) extends Iterator[String] {
  private var isBegun = false

  override def hasNext: Boolean = lines.hasNext

  override def next(): String = {
    val line = lines.next()
    if (!isBegun && !isPassedOver(line)) {
      isBegun = true
      if (options.lineSeparator.nonEmpty) stop()
      if (line.charAt(0) == BegunLines.ByteOrderMark) begin()
    }
    line
  }

  private def stop(): Unit = if (tokenizer.getContext != null) tokenizer.stopParsing()

  private def begin(): Unit =
    if (isStartOfFile) {
      stop()
    } else if (tokenizer.getContext == null || tokenizer.getContext.isStopped) {
      // In the middle of a file it is not a mark.
      tokenizer.parseLine("begun")
    }

  /**
   * Whether Spark does not pass a line to the parser: blank lines and comments, and before a header also indented
   * comments.
   */
  private def isPassedOver(line: String): Boolean = {
    val trimmed = line.trim
    trimmed.isEmpty || options.isCommentSet && (if (options.headerFlag) trimmed else line).startsWith(
      options.comment.toString)
  }
}

private object BegunLines {
  private val ByteOrderMark = '\uFEFF'
}

/**
 * Spark's JSON lines format with one parser for all small files of a task. Files that are not read ahead are read by
 * Spark's own reader.
 */
private final class SmallJsonFormat extends JsonFileFormat {
  override def buildReader(
      sparkSession: SparkSession,
      dataSchema: StructType,
      partitionSchema: StructType,
      requiredSchema: StructType,
      filters: Seq[Filter],
      options: Map[String, String],
      hadoopConf: Configuration): PartitionedFile => Iterator[InternalRow] = {
    val ofSpark =
      super.buildReader(sparkSession, dataSchema, partitionSchema, requiredSchema, filters, options, hadoopConf)
    val conf = sparkSession.sessionState.conf
    val json = new JSONOptionsInRead(options, conf.sessionLocalTimeZone, conf.columnNameOfCorruptRecord)
    if (json.multiLine) ofSpark else new SmallJsonReader(ofSpark, json, requiredSchema, filters)
  }
}

/** Parses lines like the reader of Spark's `JsonFileFormat`. */
private final class SmallJsonReader(
    ofSpark: PartitionedFile => Iterator[InternalRow],
    options: JSONOptions,
    requiredSchema: StructType,
    filters: Seq[Filter])
    extends (PartitionedFile => Iterator[InternalRow]) with Serializable {

  override def apply(file: PartitionedFile): Iterator[InternalRow] = file match {
    case small: FileAhead =>
      small.lines(options.lineSeparatorInRead).fold(ofSpark(file))(_.flatMap(small.shared.get(lineParser).parse))
    case other => ofSpark(other)
  }

  private def lineParser: FailureSafeParser[Text] = {
    val columns = StructType(requiredSchema.filterNot(_.name == options.columnNameOfCorruptRecord))
    val parser = new JacksonParser(
      columns,
      options,
      allowArrayAsStructs = true,
      filters.filterNot(_.references.contains(options.columnNameOfCorruptRecord)))
    val tokens: (JsonFactory, Text) => JsonParser = options.encoding match {
      case Some(encoding) => CreateJacksonParser.text(encoding, _, _)
      case None => CreateJacksonParser.text(_, _)
    }
    new FailureSafeParser[Text](
      line => parser.parse(line, tokens, (text: Text) => UTF8String.fromBytes(text.getBytes, 0, text.getLength)),
      options.parseMode,
      requiredSchema,
      options.columnNameOfCorruptRecord)
  }
}

/**
 * Spark's text format for compressed files, with natively decoded lines, where the native text scan is not possible.
 */
private final class DecodedTextFormat extends TextFileFormat {
  override def buildReader(
      sparkSession: SparkSession,
      dataSchema: StructType,
      partitionSchema: StructType,
      requiredSchema: StructType,
      filters: Seq[Filter],
      options: Map[String, String],
      hadoopConf: Configuration): PartitionedFile => Iterator[InternalRow] = {
    val ofSpark =
      super.buildReader(sparkSession, dataSchema, partitionSchema, requiredSchema, filters, options, hadoopConf)
    new DecodedTextReader(ofSpark, new TextOptions(options).lineSeparatorInRead, requiredSchema.nonEmpty)
  }
}

/** Makes rows from lines like the reader of Spark's `TextFileFormat`. */
private final class DecodedTextReader(
    ofSpark: PartitionedFile => Iterator[InternalRow],
    separator: Option[Array[Byte]],
    hasLines: Boolean)
    extends (PartitionedFile => Iterator[InternalRow]) with Serializable {

  override def apply(file: PartitionedFile): Iterator[InternalRow] = file match {
    case decoded: FileAhead => decoded.lines(separator).fold(ofSpark(file))(rows)
    case other => ofSpark(other)
  }

  private def rows(lines: Iterator[Text]): Iterator[InternalRow] = {
    val writer = new UnsafeRowWriter(if (hasLines) 1 else 0)
    lines.map { line =>
      writer.reset()
      if (hasLines) writer.write(0, line.getBytes, 0, line.getLength)
      writer.getRow
    }
  }
}

private object SmallFile {

  /** Whether the reader of a relation accepts lines that we have found, even in a part of a file. */
  def takesLines(relation: HadoopFsRelation): Boolean = {
    val (conf, options) = (relation.sparkSession.sessionState.conf, relation.options)
    def isFound(separator: Option[Array[Byte]]) =
      !separator.exists(bytes => (1 until bytes.length).exists(n => bytes.endsWith(bytes.take(n))))
    relation.fileFormat match {
      case _: CSVFileFormat =>
        val csv =
          new CSVOptions(options, conf.csvColumnPruning, conf.sessionLocalTimeZone, conf.columnNameOfCorruptRecord)
        takesLines(csv) && isFound(csv.lineSeparatorInRead)
      case _: JsonFileFormat =>
        val json = new JSONOptionsInRead(options, conf.sessionLocalTimeZone, conf.columnNameOfCorruptRecord)
        !json.multiLine && isFound(json.lineSeparatorInRead)
      case _: TextFileFormat =>
        val text = new TextOptions(options)
        !text.wholeText && isFound(text.lineSeparatorInRead)
      case _ => false
    }
  }

  /**
   * The names in a file's header are keys of its values with the option, and only Spark's reader passes them to the
   * parser.
   */
  def takesLines(csv: CSVOptions): Boolean = !csv.multiLine && !csv.parameters.contains("singleVariantColumn")

  private val ByteOrderMark = Array(0xef, 0xbb, 0xbf).map(_.toByte)

  /**
   * Splits like Hadoop's `LineRecordReader`, which skips a UTF-8 byte order mark. The same text object is returned for
   * every line.
   */
  def lines(bytes: Array[Byte], separator: Option[Array[Byte]]): Iterator[Text] = {
    val start = if (bytes.startsWith(ByteOrderMark)) ByteOrderMark.length else 0
    val reader =
      new LineReader(new ByteArrayInputStream(bytes, start, bytes.length - start), bytes.length, separator.orNull)
    val line = new Text
    Iterator.continually(reader.readLine(line)).takeWhile(_ > 0).map(_ => line)
  }
}
