package org.apache.spark.sql.execution.datasources.millstream

import scala.util.Try

import io.millstream.hadoop.NativeScan

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, PredicateHelper}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.execution.datasources.text.{TextFileFormat, TextOptions}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.vectorized.ColumnarBatch

private[millstream] object NativeTextScan {
  /** The native scan equivalent to `scan`, if there is one. */
  def of(scan: FileSourceScanExec, files: LocalFiles, asksForFile: => Boolean): Option[SparkPlan] =
    for {
      format <- TextFormat.of(scan.relation, files.verifiesChecksums)
      if hasRowsOfStrings(scan) && files.arePlainLines
    } yield NativeTextScanExec(scan, format, asksForFile, hasLines = scan.requiredSchema.nonEmpty)(files.directories)

  /** Whether rows consist of strings and partition values only. */
  private def hasRowsOfStrings(scan: FileSourceScanExec): Boolean =
    scan.output.size == scan.requiredSchema.size + scan.relation.partitionSchema.size &&
      scan.requiredSchema.forall(_.dataType == StringType)
}

/** The rows of a text relation, and the handling of missing and changed files. */
private[millstream] final case class TextFormat(separator: Seq[Byte], wholeFiles: Boolean, skipsMissing: Boolean, verifiesChecksums: Boolean) {
  /** Whether several tasks may share a file. */
  def isSplittable: Boolean = !wholeFiles

  /** Whether the separator begins as it ends, so that it can be told only by reading a file from its beginning: in memory as a whole. */
  def mayOverlap: Boolean = (1 until separator.length).exists(length => separator.endsWith(separator.take(length)))
}

private object TextFormat {
  /** None if the relation is not text, if the native scan would give other rows, or if its options are invalid. */
  def of(relation: HadoopFsRelation, verifiesChecksums: Boolean): Option[TextFormat] =
    for {
      options <- Try(new TextOptions(relation.options)).toOption
      if relation.fileFormat.getClass == classOf[TextFileFormat]
      if options.encoding.isEmpty && !options.ignoreCorruptFiles
      format = TextFormat(options.lineSeparatorInRead.fold(Seq.empty[Byte])(_.toSeq), options.wholeText, options.ignoreMissingFiles,
        verifiesChecksums)
      if format.wholeFiles || !format.mayOverlap
    } yield format
}

/**
 * A scan of text files that reads, splits and filters natively.
 *
 * @param scan the replaced scan of Spark
 * @param format the format of rows
 * @param asksForFile whether the plan uses the file of a row
 * @param hasLines whether rows contain the line; otherwise they only need to be counted
 * @param files the files to read, by partition; as in Spark's scan, they do not count for equality
 */
case class NativeTextScanExec(
    scan: FileSourceScanExec,
    private[millstream] val format: TextFormat,
    asksForFile: Boolean,
    hasLines: Boolean)(
    @transient protected val files: Seq[PartitionDirectory])
  extends PackedScan with PredicateHelper {

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(files)

  override def nodeName: String = s"NativeTextScan ${scan.tableIdentifier.map(_.unquotedString).getOrElse("")}".trim

  override def supportsColumnar: Boolean = true

  override lazy val metrics: Map[String, SQLMetric] = scanMetrics ++ Map(
    "filesOpened" -> SQLMetrics.createMetric(sparkContext, "number of files opened"),
    "bytesRead" -> SQLMetrics.createSizeMetric(sparkContext, "size of data read"),
    "filesMissing" -> SQLMetrics.createMetric(sparkContext, "number of missing files skipped"))

  private lazy val (predicate, pushed) = RowPredicates.encode(scan.dataFilters)

  override def output: Seq[Attribute] = if (hasLines) super.output else super.output.filterNot(isLine)

  /** Whether a column contains the line; the others contain partition values. */
  def isLine(column: Attribute): Boolean = scan.output.take(scan.requiredSchema.size).exists(_.exprId == column.exprId)

  /** Whether the scan returns exactly the rows for which `condition` holds. */
  def decides(condition: Expression): Boolean = splitConjunctivePredicates(condition).forall(part => pushed.exists(_.semanticEquals(part)))

  def withoutLines: NativeTextScanExec = copy(hasLines = false)(files)

  override protected def details: Seq[(String, String)] = Seq("NativeFilters" -> pushed.mkString("[", ", ", "]"))

  override protected def isSplittable(file: FileStatusWithMetadata): Boolean = format.isSplittable

  override protected def doCanonicalize(): SparkPlan = copy(scan = scan.canonicalized.asInstanceOf[FileSourceScanExec])(Nil)

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException("a columnar node cannot return rows")

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
    val flags = Seq(
      format.wholeFiles -> NativeScan.WHOLE_FILES,
      !hasLines -> NativeScan.COUNT,
      asksForFile -> NativeScan.BY_RANGE,
      format.skipsMissing -> NativeScan.SKIP_MISSING,
      format.verifiesChecksums -> NativeScan.VERIFY).collect { case (true, flag) => flag }.sum
    val partitionSchema = scan.relation.partitionSchema
    val task = ScanTask(format.separator.toArray, predicate, flags, settings.maxReaders, hasLines, partitionSchema)
    new TextScanRDD(sparkContext, pack(), task,
      ScanMetrics(metrics("numOutputRows"), metrics("bytesRead"), metrics("filesOpened"), metrics("filesMissing"), metrics("waitTime")))
  }
}
