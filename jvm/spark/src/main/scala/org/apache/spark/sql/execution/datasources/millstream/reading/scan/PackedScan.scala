package org.apache.spark.sql.execution.datasources.millstream.reading.scan

import java.net.URI

import io.millstream.hadoop.codec.TextCodec
import io.millstream.hadoop.reading.NativeIndex
import org.apache.hadoop.conf.Configuration

import org.apache.spark.Partition
import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions.{Attribute, PlanExpression}
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.catalyst.util.{truncatedString, CaseInsensitiveMap}
import org.apache.spark.sql.execution.{FileSourceScanExec, LeafExecNode, SQLExecution}
import org.apache.spark.sql.execution.datasources.{FileIndex, FilePartition, FileStatusWithMetadata, PartitionDirectory}
import org.apache.spark.sql.execution.datasources.millstream.compressed.{CompressedFile, CompressedFiles}
import org.apache.spark.sql.execution.datasources.millstream.listing.{ListedFiles, ListedRelations}
import org.apache.spark.sql.execution.datasources.millstream.settings.{IndexSettings, ReadSettings}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/**
 * A scan whose tasks are packed by the bytes of files and the cost of opening them: about one task for each core, and
 * more if a task would otherwise read more than `spark.sql.files.maxPartitionBytes`.
 */
private[millstream] trait PackedScan extends LeafExecNode {

  /** The replaced scan of Spark. */
  def scan: FileSourceScanExec

  /** The documentation's name for such a scan. */
  protected def kind: String

  /** The files to read, by partition. */
  protected def files: Seq[PartitionDirectory]

  /** The files' file system. */
  protected def fileSystem: URI

  /** Whether Spark would let several tasks share a file. */
  protected def isSplittable(file: FileStatusWithMetadata): Boolean

  /** Whether native code decodes some of the files. */
  protected def decodes: Boolean

  /** The codec with which native code decodes a file, if it [[decodes]] any; None if the file is not decoded. */
  protected def nativeCodec(file: FileStatusWithMetadata): Option[TextCodec]

  /** Whether several tasks may share a compressed file. */
  protected def mayDivide: Boolean

  /**
   * Whether rows are only counted. Then a single task reads a large file without an index the first time, and builds
   * the index meanwhile: decoding takes longer than counting.
   */
  protected def onlyCounts: Boolean

  /** The configuration of the file system. */
  protected def hadoopConf: Configuration

  /** Details for the description of the plan, in addition to Spark's. */
  protected def details: Seq[(String, String)]

  protected final def settings: ReadSettings = ReadSettings.of(conf)

  override def output: Seq[Attribute] = scan.output

  protected final def scanMetrics: Map[String, SQLMetric] = partitionMetrics ++ Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numFiles" -> SQLMetrics.createMetric(sparkContext, "number of files to read"),
    "filesSize" -> SQLMetrics.createSizeMetric(sparkContext, "size of files to read"),
    "filesUndivided" -> SQLMetrics.createMetric(sparkContext, "number of large compressed files read by one task each"),
    "waitTime" -> SQLMetrics.createNanoTimingMetric(sparkContext, "time waiting for readers"))

  private def partitionMetrics: Map[String, SQLMetric] =
    if (scan.relation.partitionSchema.isEmpty) Map.empty
    else Map("numPartitions" -> SQLMetrics.createMetric(sparkContext, "number of partitions read"))

  /** Begins like the names of Spark's own scans, by which tools find scans in event logs. */
  override def nodeName: String = s"Scan $scanned ($kind)"

  /** The format, and the table if there is one. */
  private def scanned: String =
    (scan.relation.toString +: scan.tableIdentifier.map(_.unquotedString).toSeq).mkString(" ")

  /** For event logs ([[DescribedScans]]): the metadata of Spark's own scan, and our additions. */
  def scanMetadata: Map[String, String] = scan.metadata ++ details

  /** This scan in its compiled class. */
  protected def compiled: PackedScan

  /** Cached, so that a plan with several uses of this scan has one copy of it. */
  @transient private lazy val forExecutors = compiled

  /**
   * Aggregations and other nodes send the plan below them to executors, which do not have the classes of
   * [[DescribedScans]].
   */
  protected def writeReplace(): AnyRef = forExecutors

  private def description(keys: String*): Seq[String] =
    (details ++ keys.flatMap(key => scan.metadata.get(key).map(key -> _))).map { case (key, value) => s"$key: $value" }

  override def verboseStringWithOperatorId(): String = {
    val lines = s"Output: ${output.mkString("[", ", ", "]")}" +: description(
      "Location",
      "PartitionFilters",
      "PushedFilters",
      "ReadSchema")
    redacted(s"\n$formattedNodeName\n${lines.mkString("\n")}\n")
  }

  override def simpleString(maxFields: Int): String = {
    val columns = truncatedString(output, "[", ",", "]", maxFields)
    val facts = description("DataFilters", "Format", "Location", "PartitionFilters", "PushedFilters", "ReadSchema")
    redacted(s"$kind $scanned $columns ${facts.mkString(", ")}")
  }

  private def redacted(text: String): String = Utils.redact(conf.stringRedactionPattern, text)

  /**
   * Packs the files into tasks of about equal cost: first the file that Spark would read first, then the others in
   * order.
   */
  protected final def pack(): Array[Partition] = {
    // A limit below the cost of opening a file is respected.
    val openCost = math.min(settings.openCostBytes, conf.filesMaxPartitionBytes)
    val (count, bytes) = files.iterator.flatMap(_.files).foldLeft((0L, 0L)) { case ((n, sum), file) =>
      (n + 1, sum + file.getLen)
    }
    val (large, indexes) = openIndexes(count, openCost)
    reportToDriver(count, bytes)
    try {
      def decoded(file: FileStatusWithMetadata) = Option.when(decodes)(nativeCodec(file)).flatten.map { codec =>
        // Creating a path takes longer than listing a file.
        val version = Option.unless(large.isEmpty)(file.getPath.toString).flatMap(large.get)
        val index = version.flatMap(indexes.get)
        Decoded(codec, version, index, makesIndex = index.isEmpty && version.exists(makesIndex))
      }
      def cost(file: FileStatusWithMetadata): Long = decoded(file).fold(file.getLen)(_.length(file.getLen))
      val all = if (decodes) files.iterator.flatMap(_.files).map(cost).sum else bytes
      val packing = new RangePacking(fileSystem, math.max(openCost, targetCost(all + count * openCost)), openCost)
      def add(file: FileStatusWithMetadata): Unit = decoded(file) match {
        case Some(how) => packing.addDecoded(file, how)
        case None => if (isSplittable(file)) packing.addSplit(file) else packing.add(file)
      }
      val first = firstInSpark(count, bytes)
      first.foreach { case ((directory, file), _) =>
        packing.begin(directory.values)
        add(file)
      }
      val firstIndex = first.fold(-1)(_._2)
      var index = 0
      for (directory <- files) {
        packing.begin(directory.values)
        for (file <- directory.files) {
          if (index != firstIndex) add(file)
          index += 1
        }
      }
      packing.result()
    } finally {
      indexes.values.foreach(_.close())
    }
  }

  /** Whether the task that reads a whole file builds its index. */
  private def makesIndex(file: CompressedFile): Boolean =
    onlyCounts && file.codec != TextCodec.BZIP2 && IndexSettings.of(conf).isEnabled && CompressedFiles.mayHaveIndex(
      file)

  private def ignoresDamage: Boolean =
    new FileSourceOptions(CaseInsensitiveMap(scan.relation.options)).ignoreCorruptFiles

  /** The files that one task should not read alone, by path, and their indexes. */
  private def openIndexes(
      count: Long,
      openCost: Long): (Map[String, CompressedFile], Map[CompressedFile, NativeIndex]) = {
    val settings = IndexSettings.of(conf)
    def estimate(file: FileStatusWithMetadata): Long =
      file.getLen * (if (nativeCodec(file).isEmpty) 1 else CompressedFiles.Ratio)
    // bzip2 takes much longer to decode than the formats with indexes.
    def mayBeLarge(file: FileStatusWithMetadata) =
      nativeCodec(file).exists(codec =>
        file.getLen >= (if (codec == TextCodec.BZIP2) settings.minSize / 4 else settings.minSize))
    if (decodes && mayDivide && files.exists(_.files.exists(mayBeLarge))) {
      val target = targetCost(files.iterator.flatMap(_.files).map(estimate).sum + count * openCost)
      val large = files.flatMap(_.files).filter(file => mayBeLarge(file) && estimate(file) > target)
      val listed = for (file <- large; codec <- nativeCodec(file)) yield CompressedFile.of(file.fileStatus, codec)
      val now = CompressedFiles.current(listed, hadoopConf)
      val indexable = now.filter(_.codec != TextCodec.BZIP2)
      val found =
        if (ignoresDamage) CompressedFiles.withoutIndexes(
          indexable,
          "damaged files are ignored, and a file that does not match its index would count as damaged")
        else CompressedFiles.indexes(indexable, settings, hadoopConf, sparkContext, onlyCounts)
      metrics("filesUndivided").set(indexable.count(!found.contains(_)))
      (
        now.map(file => file.path.toString -> file).toMap,
        for ((file, bytes) <- found; index <- Option(NativeIndex.of(bytes))) yield file -> index)
    } else {
      (Map.empty, Map.empty)
    }
  }

  /**
   * The file that Spark would read first, which is the one with the longest range, and its position. This matters
   * because a CSV schema is inferred from a scan of text and takes the names of columns from the first row.
   */
  private def firstInSpark(count: Long, bytes: Long): Option[((PartitionDirectory, FileStatusWithMetadata), Int)] = {
    val longest = FilePartition.maxSplitBytes(scan.relation.sparkSession, bytes + count * conf.filesOpenCostInBytes)
    val located = files.iterator.flatMap(directory => directory.files.iterator.map(directory -> _)).zipWithIndex
    located.maxByOption { case ((_, file), _) =>
      if (file.getLen > longest && isSplittable(file)) longest else file.getLen
    }
  }

  /** The target cost of a task, given the total cost. */
  private def targetCost(all: Long): Long = {
    def share(tasks: Int): Long = (all + tasks - 1) / tasks
    val cores = conf.filesMinPartitionNum.orElse(
      conf.getConf(SQLConf.LEAF_NODE_DEFAULT_PARALLELISM)).getOrElse(sparkContext.defaultParallelism)
    val suitable = math.min(conf.filesMaxPartitionBytes, share(cores))
    val wanted = CaseInsensitiveMap(scan.relation.options).get(PackedScan.PartitionsOption).map { text =>
      text.trim.toIntOption.filter(_ > 0).getOrElse(
        throw new IllegalArgumentException(
          s"the option ${PackedScan.PartitionsOption} must be a positive number of tasks, not '$text'"))
    }
    wanted.map(share).getOrElse(conf.filesMaxPartitionNum.fold(suitable)(most => math.max(suitable, share(most))))
  }

  private def reportToDriver(count: Long, bytes: Long): Unit = {
    metrics("numFiles").set(count)
    metrics("filesSize").set(bytes)
    metrics.get("numPartitions").foreach(_.set(files.length))
    val execution = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    SQLMetrics.postDriverMetricUpdates(
      sparkContext,
      execution,
      Seq("numFiles", "filesSize", "numPartitions", "filesUndivided").flatMap(metrics.get))
  }
}

private[millstream] object PackedScan {

  /** Reader option: the number of tasks, regardless of their size. */
  val PartitionsOption = "millstream.read.partitions"

  /** Whether the rows that an inference samples depend on Spark's partitions. */
  private def isSampled(location: FileIndex): Boolean = location match {
    case files: ListedFiles => files.isSampled
    case _ => false
  }

  /** Whether the files of `scan` are known now and may be read in any number of partitions. */
  def suits(scan: FileSourceScanExec): Boolean =
    scan.stream.isEmpty &&
      // Spark may rely on buckets or on a single task.
      !scan.bucketedScan && scan.outputPartitioning.isInstanceOf[UnknownPartitioning] &&
      scan.relation.location.rootPaths.nonEmpty && !isSampled(scan.relation.location) &&
      !ListedRelations.readsArchives(scan.conf) &&
      !(scan.partitionFilters ++ scan.dataFilters).exists(_.exists(_.isInstanceOf[PlanExpression[_]]))
}
