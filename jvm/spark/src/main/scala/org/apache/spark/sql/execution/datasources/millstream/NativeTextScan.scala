package org.apache.spark.sql.execution.datasources.millstream

import scala.collection.mutable
import scala.util.Try

import io.millstream.hadoop.{MillstreamLocalFileSystem, NativeLibrary, NativeScan}
import org.apache.hadoop.io.compress.CompressionCodecFactory
import org.apache.hadoop.mapreduce.lib.input.LineRecordReader

import org.apache.spark.Partition
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.{truncatedString, CaseInsensitiveMap}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.{FilePartition, FileStatusWithMetadata, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.execution.datasources.text.{TextFileFormat, TextOptions}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.util.Utils

/**
 * Replaces Spark's scan of text files by [[NativeTextScanExec]], where that gives the same rows.
 *
 * The rule sees the physical plan before Spark puts transitions between rows and columns into it, so pruning and the
 * filters above the scan are Spark's. What is not replaced: other file systems than local and mounted ones, compressed files,
 * files that may be corrupt and are to be skipped, hidden columns (`_metadata`), streams.
 */
class ReplaceTextScans extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = plan =>
    if (plan.conf.getConf(NativeTextScan.Enabled)) {
      lazy val asksForFile = plan.exists(_.expressions.exists(_.exists {
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

  /** Reader option: how many tasks there should be, whatever their size. */
  val PartitionsOption = "millstream.read.partitions"

  /** The native scan that does what `scan` does, if there is one. */
  def of(scan: FileSourceScanExec, asksForFile: => Boolean): Option[SparkPlan] = {
    val relation = scan.relation
    for {
      format <- TextFormat.of(relation)
      if isPlain(scan) && relation.location.rootPaths.nonEmpty
      conf = relation.sparkSession.sessionState.newHadoopConfWithOptions(relation.options)
      if conf.get(LineRecordReader.MAX_LINE_LENGTH) == null
      if relation.location.rootPaths.forall(_.getFileSystem(conf).isInstanceOf[MillstreamLocalFileSystem])
      if NativeLibrary.isLoaded
      files = relation.location.listFiles(scan.partitionFilters, scan.dataFilters)
      codecs = new CompressionCodecFactory(conf)
      if files.forall(isLocal) && !files.exists(_.files.exists(file => codecs.getCodec(file.getPath) != null))
    } yield NativeTextScanExec(scan, format, asksForFile)(files)
  }

  /** Rows of strings and partition values, in as many partitions as suit, of files that are known now. */
  private def isPlain(scan: FileSourceScanExec): Boolean =
    scan.stream.isEmpty &&
      // Spark may rely on buckets, or on a single task.
      !scan.bucketedScan && scan.outputPartitioning.isInstanceOf[UnknownPartitioning] &&
      scan.output.size == scan.requiredSchema.size + scan.relation.partitionSchema.size &&
      scan.requiredSchema.forall(_.dataType == StringType) &&
      !(scan.partitionFilters ++ scan.dataFilters).exists(_.exists(_.isInstanceOf[PlanExpression[_]]))

  /** A partition of a table may lie elsewhere than the table. */
  private def isLocal(directory: PartitionDirectory): Boolean =
    directory.files.headOption.forall(_.getPath.toUri.getScheme == "file")
}

/** What a row of a text relation is, and what to do about missing files. */
private[millstream] final case class TextFormat(separator: Seq[Byte], wholeFiles: Boolean, skipsMissing: Boolean) {
  /** Whether several tasks may share a file. */
  def isSplittable: Boolean = !wholeFiles && separator.length <= 1
}

private object TextFormat {
  private val ReadsArchives = "spark.sql.files.archive.reader.enabled"

  /** None if the relation is no text, if its rows are not those of the native scan, or if its options are wrong. */
  def of(relation: HadoopFsRelation): Option[TextFormat] =
    for {
      options <- Try(new TextOptions(relation.options)).toOption
      if relation.fileFormat.getClass == classOf[TextFileFormat]
      if options.encoding.isEmpty && !options.ignoreCorruptFiles
      if !relation.sparkSession.sessionState.conf.getConfString(ReadsArchives, "false").toBoolean
    } yield TextFormat(options.lineSeparatorInRead.fold(Seq.empty[Byte])(_.toSeq), options.wholeText, options.ignoreMissingFiles)
}

/**
 * A scan of text files that reads, splits and filters natively.
 *
 * Tasks are packed by bytes and by what opening a file costs: about one task for each core, more where one would read more
 * than `spark.sql.files.maxPartitionBytes`.
 *
 * @param scan Spark's scan that it stands for
 * @param format what a row is
 * @param asksForFile whether the plan asks which file a row is of
 * @param files what to read, by partition; as in Spark's scan, no part of what makes two scans equal
 */
case class NativeTextScanExec(
    scan: FileSourceScanExec,
    private[millstream] val format: TextFormat,
    asksForFile: Boolean)(
    @transient private val files: Seq[PartitionDirectory])
  extends LeafExecNode {

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(files)

  override def nodeName: String = s"NativeTextScan ${scan.tableIdentifier.map(_.unquotedString).getOrElse("")}".trim

  override def output: Seq[Attribute] = scan.output

  override def supportsColumnar: Boolean = true

  override lazy val metrics: Map[String, SQLMetric] = partitionMetrics ++ Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numFiles" -> SQLMetrics.createMetric(sparkContext, "number of files to read"),
    "filesSize" -> SQLMetrics.createSizeMetric(sparkContext, "size of files to read"),
    "filesOpened" -> SQLMetrics.createMetric(sparkContext, "number of files opened"),
    "bytesRead" -> SQLMetrics.createSizeMetric(sparkContext, "size of data read"),
    "filesMissing" -> SQLMetrics.createMetric(sparkContext, "number of missing files left out"),
    "waitTime" -> SQLMetrics.createNanoTimingMetric(sparkContext, "time waiting for readers"))

  private def partitionMetrics: Map[String, SQLMetric] =
    if (scan.relation.partitionSchema.isEmpty) Map.empty
    else Map("numPartitions" -> SQLMetrics.createMetric(sparkContext, "number of partitions read"))

  private lazy val (predicate, pushed) = RowPredicates.encode(scan.dataFilters)

  private def description: Seq[(String, String)] = {
    val ofScan = Seq("Location", "PartitionFilters", "ReadSchema").flatMap(key => scan.metadata.get(key).map(key -> _))
    ("NativeFilters" -> pushed.mkString("[", ", ", "]")) +: ofScan
  }

  override def verboseStringWithOperatorId(): String = {
    val lines = ("Output" -> output.mkString("[", ", ", "]")) +: description
    redacted(s"\n$formattedNodeName\n${lines.map { case (key, value) => s"$key: $value" }.mkString("\n")}\n")
  }

  override def simpleString(maxFields: Int): String = {
    val columns = truncatedString(output, "[", ",", "]", maxFields)
    redacted(s"$nodeName $columns ${description.map { case (key, value) => s"$key: $value" }.mkString(", ")}")
  }

  private def redacted(text: String): String = Utils.redact(conf.stringRedactionPattern, text)

  override protected def doCanonicalize(): SparkPlan = copy(scan = scan.canonicalized.asInstanceOf[FileSourceScanExec])(Nil)

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException("Spark asks a columnar node for rows")

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
    val withValue = scan.requiredSchema.nonEmpty
    val flags = Seq(
      format.wholeFiles -> NativeScan.WHOLE_FILES,
      !withValue -> NativeScan.COUNT,
      asksForFile -> NativeScan.BY_RANGE,
      format.skipsMissing -> NativeScan.SKIP_MISSING,
      true -> NativeScan.VERIFY).collect { case (true, flag) => flag }.sum
    val partitionSchema = scan.relation.partitionSchema
    val task = ScanTask(format.separator.toArray, predicate, flags, conf.getConf(NativeTextScan.MaxReaders), withValue, partitionSchema)
    new TextScanRDD(sparkContext, pack(), task,
      ScanMetrics(metrics("numOutputRows"), metrics("bytesRead"), metrics("filesOpened"), metrics("filesMissing"), metrics("waitTime")))
  }

  /** Cuts the files into tasks of about equal cost: first the one that Spark reads first, then the others in their order. */
  private def pack(): Array[Partition] = {
    val openCost = conf.getConf(NativeTextScan.OpenCostBytes)
    val (count, bytes) = files.iterator.flatMap(_.files).foldLeft((0L, 0L)) { case ((n, sum), file) => (n + 1, sum + file.getLen) }
    tellDriver(count, bytes)
    val packing = new Packing(math.max(openCost, targetCost(bytes + count * openCost)), openCost)
    val first = firstInSpark(count, bytes)
    def add(file: FileStatusWithMetadata): Unit = {
      val path = file.getPath.toUri.getPath
      if (format.isSplittable) packing.addSplit(path, file.getLen) else packing.add(path, 0, file.getLen)
    }
    first.foreach { case (directory, file) =>
      packing.begin(directory.values)
      add(file)
    }
    files.foreach { directory =>
      packing.begin(directory.values)
      directory.files.foreach(file => if (!first.exists(_._2 eq file)) add(file))
    }
    packing.result()
  }

  /**
   * The file of the longest range that Spark would read, which it would read first. A csv schema is inferred from a scan of
   * text, and has the names of columns from the first row.
   */
  private def firstInSpark(count: Long, bytes: Long): Option[(PartitionDirectory, FileStatusWithMetadata)] = {
    val longest =
      if (format.wholeFiles) Long.MaxValue
      else FilePartition.maxSplitBytes(scan.relation.sparkSession, bytes + count * conf.filesOpenCostInBytes)
    val located = files.iterator.flatMap(directory => directory.files.iterator.map(directory -> _))
    located.maxByOption { case (_, file) => math.min(file.getLen, longest) }
  }

  /** What a task should cost of all that is to be done. */
  private def targetCost(all: Long): Long = {
    def share(tasks: Int): Long = (all + tasks - 1) / tasks
    val cores = conf.filesMinPartitionNum.orElse(conf.getConf(SQLConf.LEAF_NODE_DEFAULT_PARALLELISM)).getOrElse(sparkContext.defaultParallelism)
    val suitable = math.min(conf.filesMaxPartitionBytes, share(cores))
    val wanted = CaseInsensitiveMap(scan.relation.options).get(NativeTextScan.PartitionsOption)
    wanted.map(tasks => share(math.max(1, tasks.toInt))).getOrElse(conf.filesMaxPartitionNum.fold(suitable)(most => math.max(suitable, share(most))))
  }

  private def tellDriver(count: Long, bytes: Long): Unit = {
    metrics("numFiles").set(count)
    metrics("filesSize").set(bytes)
    metrics.get("numPartitions").foreach(_.set(files.length))
    val execution = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    SQLMetrics.postDriverMetricUpdates(sparkContext, execution, Seq("numFiles", "filesSize", "numPartitions").flatMap(metrics.get))
  }
}

/**
 * Packs ranges of files, in order, into partitions that cost about `target` bytes each.
 *
 * A partition ends where all so far should have cost a multiple of the target, so that one which is somewhat too large makes
 * the next one smaller, and there are as many as there should be.
 */
private[millstream] final class Packing(target: Long, openCost: Long) {
  private val partitions = Array.newBuilder[Partition]
  private val sections = mutable.ArrayBuffer.empty[Section]
  private val paths = mutable.ArrayBuffer.empty[String]
  private val starts = mutable.ArrayBuffer.empty[Long]
  private val lengths = mutable.ArrayBuffer.empty[Long]
  private var values: InternalRow = InternalRow.empty
  private var spent = 0L
  private var quota = target
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
      val room = quota - spent - openCost
      val left = length - start
      // A small rest is no task of its own, and where there is hardly room the file begins in the next one.
      if (left <= room + target / 4) {
        add(path, start, left)
        start = length
      } else if (hasSome && room < target / 4) {
        endPartition()
      } else {
        // To read fewer bytes than opening costs would not pay.
        val part = math.min(left, Seq(room, openCost, 1L).max)
        add(path, start, part)
        start += part
      }
    }
  }

  /** Adds a range that one task has. */
  def add(path: String, start: Long, length: Long): Unit = {
    if (hasSome && spent + length + openCost > quota + target / 4) endPartition()
    paths += path
    starts += start
    lengths += length
    spent += length + openCost
    if (spent >= quota) endPartition()
  }

  def result(): Array[Partition] = {
    endPartition()
    partitions.result()
  }

  private def hasSome: Boolean = paths.nonEmpty || sections.nonEmpty

  private def endSection(): Unit = if (paths.nonEmpty) {
    sections += Section(values, paths.toArray, starts.toArray, lengths.toArray)
    Seq(paths, starts, lengths).foreach(_.clear())
  }

  private def endPartition(): Unit = if (hasSome) {
    endSection()
    partitions += ScanPartition(count, sections.toArray)
    count += 1
    sections.clear()
    // After a range that is many times too large the next partitions are not to be tiny.
    quota = math.max(quota + target, spent + target / 2)
  }
}
