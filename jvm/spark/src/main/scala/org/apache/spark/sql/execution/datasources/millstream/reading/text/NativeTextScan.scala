package org.apache.spark.sql.execution.datasources.millstream.reading.text

import java.net.URI
import java.nio.charset.StandardCharsets

import scala.util.Try

import io.millstream.hadoop.codec.TextCodec
import io.millstream.hadoop.reading.NativeScan
import org.apache.hadoop.conf.Configuration

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.{FileSourceScanExec, FilterExec, GenerateExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.execution.datasources.millstream.compressed.IndexStore
import org.apache.spark.sql.execution.datasources.millstream.reading.scan.{
  DescribedScans,
  PackedScan,
  RequestMetrics,
  RowPredicates,
  ScanFiles,
  ScanPartition
}
import org.apache.spark.sql.execution.datasources.millstream.settings.IndexSettings
import org.apache.spark.sql.execution.datasources.text.{TextFileFormat, TextOptions}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration

private[millstream] object NativeTextScan {

  /** The native scan equivalent to `scan`, if there is one. */
  def of(scan: FileSourceScanExec, files: ScanFiles, asksForFile: => Boolean): Option[SparkPlan] =
    for {
      format <- TextFormat.of(scan.relation, files.verifiesChecksums)
      if hasRowsOfStrings(scan) && files.haveNativeLines
    } yield described(scan, format, asksForFile, scan.requiredSchema.nonEmpty, None, None, files)

  private lazy val constructor = DescribedScans.of(classOf[NativeTextScanExec])

  /** A scan whose metadata are in event logs. */
  def described(
      scan: FileSourceScanExec,
      format: TextFormat,
      asksForFile: Boolean,
      hasLines: Boolean,
      words: Option[Words],
      occurrences: Option[Attribute],
      listed: ScanFiles): NativeTextScanExec =
    constructor.newInstance(scan, format, Boolean.box(asksForFile), Boolean.box(hasLines), words, occurrences, listed)

  /** Whether rows consist of strings and partition values only. */
  private def hasRowsOfStrings(scan: FileSourceScanExec): Boolean =
    scan.output.size == scan.requiredSchema.size + scan.relation.partitionSchema.size &&
      scan.requiredSchema.forall(_.dataType == StringType)
}

/** The rows of a text relation, and the handling of missing and changed files. */
private[millstream] final case class TextFormat(
    separator: Seq[Byte],
    wholeFiles: Boolean,
    skipsMissing: Boolean,
    verifiesChecksums: Boolean) {

  /** Whether several tasks may share a file. */
  def isSplittable: Boolean = !wholeFiles

  /** Whether rows contain neither LF nor CR. */
  def rowsAreLines: Boolean = !wholeFiles && separator.isEmpty

  /**
   * Whether the separator's beginning equals its end: then it can only be found by reading a file from its beginning,
   * whole in memory.
   */
  def mayOverlap: Boolean = (1 until separator.length).exists(length => separator.endsWith(separator.take(length)))
}

private object TextFormat {

  /** None if the relation is not text, if the native scan would give other rows, or if its options are invalid. */
  def of(relation: HadoopFsRelation, verifiesChecksums: Boolean): Option[TextFormat] =
    for {
      options <- Try(new TextOptions(relation.options)).toOption
      if relation.fileFormat.getClass == classOf[TextFileFormat]
      if options.encoding.isEmpty && !options.ignoreCorruptFiles
      format = TextFormat(
        options.lineSeparatorInRead.fold(Seq.empty[Byte])(_.toSeq),
        options.wholeText,
        options.ignoreMissingFiles,
        verifiesChecksums)
      if format.wholeFiles || !format.mayOverlap
    } yield format
}

/**
 * The rows of `explode(split(line, separator))`.
 *
 * @param separator ASCII characters without a special meaning in a regular expression
 * @param word the column of the words
 */
private[millstream] final case class Words(separator: String, word: Attribute) {
  def canonicalized: Words = copy(word = word.withExprId(ExprId(0)))
}

private[millstream] object Words {
  private val Special = "\\^$.|?*+()[]{}"

  /** The scan that returns only the words that `generate` makes from the lines of a scan. */
  def of(generate: GenerateExec): Option[SparkPlan] = generate match {
    case GenerateExec(
          Explode(StringSplit(
            line: AttributeReference,
            Literal(pattern: UTF8String, StringType),
            Literal(limit: Int, _))),
          Nil,
          false,
          Seq(word),
          child) if limit <= 0 && word.dataType == StringType =>
      for {
        scan <- scanOf(child)
        if scan.hasLines && scan.words.isEmpty && scan.isLine(line)
        separator <- plain(pattern.toString)
      } yield scan.withWords(Words(separator, word))
    case _ => None
  }

  /** A scan without the operators that do not change its rows. */
  private def scanOf(plan: SparkPlan): Option[NativeTextScanExec] = plan match {
    case scan: NativeTextScanExec => Some(scan)
    case ProjectExec(Seq(_: AttributeReference), child) => scanOf(child)
    case FilterExec(condition, child) => scanOf(child).filter(_.decides(condition))
    case _ => None
  }

  /** The literal text of a regular expression, if it is a literal in ASCII. */
  private def plain(pattern: String): Option[String] = {
    val text =
      if (pattern.length == 2 && pattern(0) == '\\' && Special.contains(pattern(1))) pattern.drop(1) else pattern
    Option.when(text.nonEmpty && text.forall(
      _ < 128) && (text.length < pattern.length || !text.exists(Special.contains(_))))(text)
  }
}

/**
 * A scan of text files that reads, splits and filters natively.
 *
 * @param scan the replaced scan of Spark
 * @param format the format of rows
 * @param asksForFile whether the plan uses the file of a row
 * @param hasLines whether rows contain the line; otherwise they only need to be counted
 * @param words if rows are the words of the lines
 * @param occurrences the column of the numbers of occurrences, if only distinct rows are returned
 * @param listed the files to read; as in Spark's scan, they do not count for equality
 */
case class NativeTextScanExec(
    scan: FileSourceScanExec,
    private[millstream] val format: TextFormat,
    asksForFile: Boolean,
    hasLines: Boolean,
    words: Option[Words] = None,
    occurrences: Option[Attribute] = None)(
    @transient private val listed: ScanFiles)
    extends PackedScan with PredicateHelper {

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(listed)

  override protected def compiled: PackedScan = copy()(listed)

  override protected def files: Seq[PartitionDirectory] = listed.directories

  override protected def fileSystem: URI = listed.fileSystem

  override protected def kind: String = "NativeTextScan"

  override def supportsColumnar: Boolean = true

  override lazy val metrics: Map[String, SQLMetric] = scanMetrics ++ requestMetrics.all ++ Map(
    "filesOpened" -> SQLMetrics.createMetric(sparkContext, "number of files opened"),
    "bytesRead" -> SQLMetrics.createSizeMetric(sparkContext, "size of data read"),
    "filesMissing" -> SQLMetrics.createMetric(sparkContext, "number of missing files skipped"))

  private lazy val requestMetrics = RequestMetrics.of(listed, sparkContext)

  private lazy val (predicate, pushed, prefiltered) = RowPredicates.encode(scan.dataFilters, format.rowsAreLines)

  override def output: Seq[Attribute] = words match {
    case Some(split) => split.word +: occurrences.toSeq
    case None => if (hasLines) super.output ++ occurrences else super.output.filterNot(isLine)
  }

  /**
   * The scan that returns distinct rows, if possible: the same line in two partitions or files must be the same row.
   */
  def withOccurrences(column: Attribute): Option[NativeTextScanExec] =
    Option.when(hasLines && output.size == 1 && occurrences.isEmpty && !asksForFile && !format.wholeFiles)(
      described(occurrences = Some(column)))

  /** Whether a column contains the line; the others contain partition values. */
  def isLine(column: Attribute): Boolean = scan.output.take(scan.requiredSchema.size).exists(_.exprId == column.exprId)

  /** Whether the scan returns exactly the rows for which `condition` holds. */
  def decides(condition: Expression): Boolean =
    splitConjunctivePredicates(condition).forall(part => pushed.exists(_.semanticEquals(part)))

  def withoutLines: NativeTextScanExec = described(hasLines = false)

  def withWords(split: Words): NativeTextScanExec = described(words = Some(split))

  private def described(
      hasLines: Boolean = hasLines,
      words: Option[Words] = words,
      occurrences: Option[Attribute] = occurrences): NativeTextScanExec =
    NativeTextScan.described(scan, format, asksForFile, hasLines, words, occurrences, listed)

  override protected def details: Seq[(String, String)] =
    Seq("NativeFilters" -> pushed.mkString("[", ", ", "]")) ++
      Option.when(prefiltered.nonEmpty)("NativePrefilters" -> prefiltered.mkString("[", ", ", "]")) ++
      Option(listed).map(_.nativeCodecs).filter(_.nonEmpty).map("Compression" -> _.mkString("[", ", ", "]")) ++
      Option(listed).flatMap(_.transport).map("Transport" -> _) ++
      words.map(split => "NativeSplit" -> s"'${split.separator}'") ++
      occurrences.map(column => "NativeCount" -> column.toString)

  override protected def isSplittable(file: FileStatusWithMetadata): Boolean =
    format.isSplittable && listed.isSplitByHadoop(file)

  override protected def decodes: Boolean = listed.nativeCodecs.nonEmpty

  override protected def nativeCodec(file: FileStatusWithMetadata): Option[TextCodec] = listed.nativeCodec(file)

  override protected def mayDivide: Boolean = format.isSplittable

  override protected def onlyCounts: Boolean = !hasLines

  override protected def hadoopConf: Configuration = listed.conf

  override protected def doCanonicalize(): SparkPlan =
    copy(
      scan = scan.canonicalized.asInstanceOf[FileSourceScanExec],
      words = words.map(_.canonicalized),
      occurrences = occurrences.map(_.withExprId(ExprId(1))))(null)

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException("a columnar node cannot return rows")

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
    val flags = Seq(
      format.wholeFiles -> NativeScan.WHOLE_FILES,
      !hasLines -> NativeScan.COUNT,
      asksForFile -> NativeScan.BY_RANGE,
      format.skipsMissing -> NativeScan.SKIP_MISSING,
      format.verifiesChecksums -> NativeScan.VERIFY,
      occurrences.isDefined -> NativeScan.DISTINCT).collect { case (true, flag) => flag }.sum
    val split = words.fold(NativeScan.WHOLE_ROWS)(_.separator.getBytes(StandardCharsets.US_ASCII))
    val partitionSchema = if (words.isEmpty) scan.relation.partitionSchema else new StructType
    val partitions = pack()
    val readers = settings.readers(partitions.length, listed.isLocal, sparkContext)
    val task = ScanTask(format.separator.toArray, predicate, split, flags, readers, hasLines, partitionSchema)
    val makesIndexes = partitions.exists(_.asInstanceOf[ScanPartition].makesIndexes)
    val conf =
      Option.when(!listed.isLocal || makesIndexes)(sparkContext.broadcast(new SerializableConfiguration(listed.conf)))
    val store = IndexStore(IndexSettings.of(this.conf).directory)
    new TextScanRDD(
      sparkContext,
      partitions,
      task,
      store,
      conf,
      ScanMetrics(
        metrics("numOutputRows"),
        metrics("bytesRead"),
        metrics("filesOpened"),
        metrics("filesMissing"),
        metrics("waitTime"),
        requestMetrics))
  }
}
