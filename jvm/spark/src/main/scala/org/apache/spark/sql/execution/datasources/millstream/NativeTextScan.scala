package org.apache.spark.sql.execution.datasources.millstream

import java.nio.charset.StandardCharsets

import scala.collection.mutable

import io.millstream.hadoop.{MillstreamLocalFileSystem, NativeLibrary, NativeScan}
import org.apache.hadoop.fs.Path
import org.apache.hadoop.io.compress.CompressionCodecFactory

import org.apache.spark.Partition
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.execution.datasources.text.TextFileFormat
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Replaces Spark's scan of text files by [[NativeTextScanExec]], where that gives the same rows.
 *
 * The rule sees the physical plan before Spark puts transitions between rows and columns into it, so pruning and the
 * filters above the scan are Spark's. What is not replaced: other file systems than local and mounted ones, compressed files,
 * files that may be corrupt and are to be skipped, hidden columns (`_metadata`), streams.
 */
class ReplaceTextScans(spark: SparkSession) extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = plan =>
    if (plan.conf.getConf(NativeTextScan.Enabled) && NativeLibrary.isLoaded) {
      val asksForFile = plan.exists(_.expressions.exists(_.exists {
        case _: InputFileName | _: InputFileBlockStart | _: InputFileBlockLength => true
        case _ => false
      }))
      plan.transformUp { case scan: FileSourceScanExec =>
        SparkLine.ifItFits(NativeTextScan.of(scan, asksForFile)).getOrElse(scan)
      }
    } else {
      plan
    }
}

private[millstream] object NativeTextScan {
  val Enabled: ConfigEntry[Boolean] = SQLConf.buildConf("spark.millstream.read.enabled")
    .doc("Whether text files of local and mounted paths are read natively.")
    .booleanConf
    .createWithDefault(true)

  val OpenCostBytes: ConfigEntry[Long] = SQLConf.buildConf("spark.millstream.read.openCostInBytes")
    .doc("What opening a file counts for when files are packed into tasks.")
    .bytesConf(ByteUnit.BYTE)
    .createWithDefault(32L << 10)

  val MaxReaders: ConfigEntry[Int] = SQLConf.buildConf("spark.millstream.read.maxReaders")
    .doc("Most native threads with which a task reads ahead; they are started only where reading waits for the storage.")
    .intConf
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(32)

  /** The native scan that does what `scan` does, if there is one. */
  def of(scan: FileSourceScanExec, asksForFile: Boolean): Option[SparkPlan] =
    for {
      rows <- RowFormat.of(scan.relation)
      if scan.bucketedScan == false && scan.stream.isEmpty && !scan.conf.ignoreCorruptFiles
      if scan.output.size == scan.requiredSchema.size + scan.relation.partitionSchema.size
      if scan.requiredSchema.forall(_.dataType == StringType)
      if !(scan.partitionFilters ++ scan.dataFilters).exists(_.exists(_.isInstanceOf[PlanExpression[_]]))
      if scan.relation.location.rootPaths.nonEmpty
      conf = scan.relation.sparkSession.sessionState.newHadoopConfWithOptions(scan.relation.options)
      if scan.relation.location.rootPaths.forall(_.getFileSystem(conf).isInstanceOf[MillstreamLocalFileSystem])
      files = scan.relation.location.listFiles(scan.partitionFilters, scan.dataFilters)
      codecs = new CompressionCodecFactory(conf)
      if !files.exists(_.files.exists(file => codecs.getCodec(file.getPath) != null))
    } yield NativeTextScanExec(scan, rows, asksForFile, files)
}

/** What a row of a text relation is. */
private[millstream] final case class RowFormat(separator: Seq[Byte], wholeFiles: Boolean) {
  /** Whether several tasks may share a file. */
  def isSplittable: Boolean = !wholeFiles && separator.length <= 1
}

private object RowFormat {
  /** None if the relation is no text, or its lines are not those of the native scan. */
  def of(relation: HadoopFsRelation): Option[RowFormat] = {
    val options = CaseInsensitiveMap(relation.options)
    Option.when(relation.fileFormat.getClass == classOf[TextFileFormat] && !options.contains("encoding") &&
        !options.contains("charset") && !options.contains("ignoreCorruptFiles")) {
      RowFormat(
        options.get("lineSep").fold(Seq.empty[Byte])(_.getBytes(StandardCharsets.UTF_8).toSeq),
        options.getOrElse("wholetext", "false").toBoolean)
    }
  }
}

/**
 * A scan of text files that reads, splits and filters natively.
 *
 * Tasks are packed by bytes and by what opening a file costs: about one task for each core, more where one would read more
 * than `spark.sql.files.maxPartitionBytes`.
 *
 * @param scan Spark's scan that it stands for
 * @param rows what a row is
 * @param asksForFile whether the plan asks which file a row is of
 * @param files what to read, by partition
 */
case class NativeTextScanExec(
    scan: FileSourceScanExec,
    private[millstream] val rows: RowFormat,
    asksForFile: Boolean,
    @transient files: Seq[PartitionDirectory])
  extends LeafExecNode with Logging {

  override def nodeName: String = s"NativeTextScan ${scan.tableIdentifier.map(_.unquotedString).getOrElse("")}".trim

  override def output: Seq[Attribute] = scan.output

  override def supportsColumnar: Boolean = true

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numFiles" -> SQLMetrics.createMetric(sparkContext, "number of files to read"),
    "filesSize" -> SQLMetrics.createSizeMetric(sparkContext, "size of files to read"),
    "filesOpened" -> SQLMetrics.createMetric(sparkContext, "number of files opened"),
    "bytesRead" -> SQLMetrics.createSizeMetric(sparkContext, "size of data read"),
    "waitTime" -> SQLMetrics.createNanoTimingMetric(sparkContext, "time waiting for readers"))

  private lazy val (predicate, pushed) = RowPredicates.encode(scan.dataFilters)

  override def verboseStringWithOperatorId(): String =
    s"""
       |$formattedNodeName
       |Output: ${output.mkString("[", ", ", "]")}
       |Location: ${scan.relation.location.rootPaths.take(3).mkString("[", ", ", "]")}
       |FiltersDoneNatively: ${pushed.mkString("[", ", ", "]")}
       |""".stripMargin

  override def simpleString(maxFields: Int): String =
    s"$nodeName ${output.mkString("[", ", ", "]")} FiltersDoneNatively: ${pushed.mkString("[", ", ", "]")}"

  override protected def doCanonicalize(): SparkPlan =
    copy(scan = scan.canonicalized.asInstanceOf[FileSourceScanExec], files = Nil)

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException("Spark asks a columnar node for rows")

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
    val withValue = scan.requiredSchema.nonEmpty
    val flags = Seq(
      rows.wholeFiles -> NativeScan.WHOLE_FILES,
      !withValue -> NativeScan.COUNT,
      asksForFile -> NativeScan.BY_RANGE,
      conf.ignoreMissingFiles -> NativeScan.SKIP_MISSING,
      true -> NativeScan.VERIFY).collect { case (true, flag) => flag }.sum
    val partitionSchema = scan.relation.partitionSchema
    val task = ScanTask(rows.separator.toArray, predicate, flags, conf.getConf(NativeTextScan.MaxReaders), withValue, partitionSchema)
    new TextScanRDD(sparkContext, pack(), task,
      ScanMetrics(metrics("numOutputRows"), metrics("bytesRead"), metrics("filesOpened"), metrics("waitTime")))
  }

  /** Cuts the files, in their order, into tasks of about equal cost. */
  private def pack(): Array[Partition] = {
    val openCost = conf.getConf(NativeTextScan.OpenCostBytes)
    val (count, bytes) = files.iterator.flatMap(_.files).foldLeft((0L, 0L)) { case ((n, sum), file) => (n + 1, sum + file.getLen) }
    tellDriver(count, bytes)
    val cores = conf.filesMinPartitionNum.getOrElse(sparkContext.defaultParallelism)
    val cost = bytes + count * openCost
    val target = math.max(openCost, math.min(conf.filesMaxPartitionBytes, (cost + cores - 1) / cores))
    val packing = new Packing(target, openCost)
    files.foreach { directory =>
      packing.begin(directory.values)
      directory.files.foreach { file =>
        val path = file.getPath.toUri.getPath
        if (rows.isSplittable) packing.addSplit(path, file.getLen) else packing.add(path, 0, file.getLen)
      }
    }
    packing.result()
  }

  private def tellDriver(count: Long, bytes: Long): Unit = {
    metrics("numFiles").set(count)
    metrics("filesSize").set(bytes)
    val execution = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    SQLMetrics.postDriverMetricUpdates(sparkContext, execution, Seq(metrics("numFiles"), metrics("filesSize")))
  }
}

/** Packs ranges of files into partitions that cost about `target` bytes each, in order. */
private[millstream] final class Packing(target: Long, openCost: Long) {
  private val partitions = Array.newBuilder[Partition]
  private val sections = mutable.ArrayBuffer.empty[Section]
  private val paths = mutable.ArrayBuffer.empty[String]
  private val starts = mutable.ArrayBuffer.empty[Long]
  private val lengths = mutable.ArrayBuffer.empty[Long]
  private var values: InternalRow = InternalRow.empty
  private var cost = 0L
  private var count = 0

  /** What follows has these values in its partition columns. */
  def begin(partitionValues: InternalRow): Unit = {
    endSection()
    values = partitionValues
  }

  /** Adds a file of which several tasks may have a part. */
  def addSplit(path: String, length: Long): Unit = {
    var start = 0L
    while (start < length) {
      val room = math.max(target - cost - openCost, 0)
      val left = length - start
      // A small rest is no task of its own, and where there is hardly room the file begins in the next one.
      val part = if (left <= room + room / 4) left else if (room * 4 < target) 0 else room
      if (part > 0) {
        add(path, start, part)
        start += part
      }
      if (start < length) endPartition()
    }
  }

  /** Adds a range that one task has. */
  def add(path: String, start: Long, length: Long): Unit = {
    if (cost > 0 && cost + length + openCost > target + target / 4) endPartition()
    paths += path
    starts += start
    lengths += length
    cost += length + openCost
    if (cost >= target) endPartition()
  }

  def result(): Array[Partition] = {
    endPartition()
    partitions.result()
  }

  private def endSection(): Unit = if (paths.nonEmpty) {
    sections += Section(values, paths.toArray, starts.toArray, lengths.toArray)
    Seq(paths, starts, lengths).foreach(_.clear())
  }

  private def endPartition(): Unit = {
    endSection()
    if (sections.nonEmpty) {
      partitions += ScanPartition(count, sections.toArray)
      count += 1
      sections.clear()
    }
    cost = 0
  }
}
