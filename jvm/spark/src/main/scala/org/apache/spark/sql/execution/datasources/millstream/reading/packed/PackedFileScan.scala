package org.apache.spark.sql.execution.datasources.millstream.reading.packed

import java.net.URI

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import io.millstream.hadoop.codec.TextCodec
import io.millstream.hadoop.reading.{FileRanges, FileReadAhead}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FSDataInputStream
import org.apache.hadoop.io.Text
import org.apache.hadoop.io.compress.CompressionCodec

import org.apache.spark.{Partition, SparkConf, TaskContext}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.paths.SparkPath
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.{FileSourceOptions, InternalRow}
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.binaryfile.BinaryFileFormat
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat
import org.apache.spark.sql.execution.datasources.millstream.hadoop.FileCodecClasses
import org.apache.spark.sql.execution.datasources.millstream.internals.SparkLine
import org.apache.spark.sql.execution.datasources.millstream.listing.CompactFileIndex
import org.apache.spark.sql.execution.datasources.millstream.reading.scan.{
  DescribedScans,
  PackedScan,
  RequestMetrics,
  ScanFiles,
  ScanPartition
}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.text.TextFileFormat
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.util.SerializableConfiguration

private[millstream] object PackedFileScan {

  /**
   * Minimum share of a columnar file that is assumed to be needed: it makes files of up to a MiB on S3 and HDFS be read
   * whole.
   */
  val LeastOfColumns: Double = 1.0 / 8

  /** The packed scan equivalent to `scan`, with the same readers, if there is one. */
  def of(scan: FileSourceScanExec, files: ScanFiles): Option[SparkPlan] =
    // Only Spark's own scan understands an index's additional metadata of files.
    Option.when(files.directories.forall(_.files.forall(_.metadata.isEmpty)))(constructor.newInstance(scan, files))

  /** Makes scans whose metadata are in event logs. */
  private lazy val constructor = DescribedScans.of(classOf[PackedFileScanExec])
}

/**
 * A scan that uses Spark's reader of the format, but packs the tasks itself, passes a configuration that is cheap to
 * copy (readers copy it for each file), and reads small files ahead.
 *
 * @param scan the replaced scan of Spark
 * @param local the files to read; as in Spark's scan, they do not count for equality
 */
case class PackedFileScanExec(scan: FileSourceScanExec)(@transient private val local: ScanFiles) extends PackedScan {
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(local)

  override protected def compiled: PackedScan = copy()(local)

  override protected def kind: String = "PackedFileScan"

  override protected def files: Seq[PartitionDirectory] = local.directories

  override protected def fileSystem: URI = local.fileSystem

  override def supportsColumnar: Boolean = scan.supportsColumnar

  override def vectorTypes: Option[Seq[String]] = scan.vectorTypes

  private lazy val requestMetrics = RequestMetrics.of(local, sparkContext)

  override lazy val metrics: Map[String, SQLMetric] = scanMetrics ++ requestMetrics.all ++
    Map("filesReadAhead" -> SQLMetrics.createMetric(sparkContext, "number of files read ahead")) ++
    Option.when(supportsColumnar)("scanTime" -> SQLMetrics.createNanoTimingMetric(sparkContext, "scan time")) ++
    Option.when(isColumnar)("filesContinued" -> SQLMetrics.createMetric(
      sparkContext,
      "number of files read by reusing an open reader")) ++
    Option.when(isParquet)("filesDecoded" -> SQLMetrics.createMetric(sparkContext, "number of files decoded natively"))

  private def isParquet: Boolean = scan.relation.fileFormat.isInstanceOf[ParquetFileFormat]

  private def isColumnar: Boolean = isParquet || scan.relation.fileFormat.isInstanceOf[OrcFileFormat]

  override protected def details: Seq[(String, String)] =
    Seq("Batched" -> supportsColumnar.toString) ++
      Option(local).filter(_ => decodes).map("Compression" -> _.nativeCodecs.mkString("[", ", ", "]")) ++
      Option(local).flatMap(_.transport).map("Transport" -> _)

  @transient private lazy val splittable = mutable.HashMap.empty[Option[CompressionCodec], Boolean]

  /** Cached by codec: whether a file can be split depends only on its codec, and the check is expensive. */
  override protected def isSplittable(file: FileStatusWithMetadata): Boolean = {
    val relation = scan.relation
    splittable.getOrElseUpdate(
      local.codec(file),
      relation.fileFormat.isSplitable(relation.sparkSession, relation.options, file.getPath))
  }

  /** Whether our reader of the format accepts lines decoded natively. */
  private lazy val decodesLines: Boolean = SmallFile.takesLines(scan.relation) && local.haveNativeLines

  override protected def decodes: Boolean = decodesLines && local.nativeCodecs.nonEmpty

  override protected def nativeCodec(file: FileStatusWithMetadata): Option[TextCodec] = local.nativeCodec(file)

  override protected def mayDivide: Boolean = true

  override protected def onlyCounts: Boolean = false

  override protected def hadoopConf: Configuration = local.conf

  override protected def doCanonicalize(): SparkPlan =
    PackedFileScanExec(scan.canonicalized.asInstanceOf[FileSourceScanExec])(null)

  /** Conditions that readers may use to skip rows. */
  private def pushedFilters: Seq[Filter] = {
    val nested = DataSourceUtils.supportNestedPredicatePushdown(scan.relation)
    scan.dataFilters.filterNot(
      _.references.exists(CompactFileIndex.isOfMetadata)).flatMap(DataSourceStrategy.translateFilter(_, nested))
  }

  /** The share of each file's bytes that readers need, estimated from the columns' types. */
  private def needed: Double = scan.relation.fileFormat match {
    case _: BinaryFileFormat => if (scan.requiredSchema.fieldNames.contains("content")) 1 else 0
    // At least the footer, in a file of any size; a small file costs one request, whatever part of it is needed.
    case _ if isColumnar =>
      math.max(
        PackedFileScan.LeastOfColumns,
        scan.requiredSchema.defaultSize.toDouble / math.max(1, scan.relation.dataSchema.defaultSize))
    case _ => 1
  }

  private def showsTimes: Boolean =
    scan.relation.fileFormat.isInstanceOf[BinaryFileFormat] && scan.requiredSchema.fieldNames.contains(
      "modificationTime")

  private lazy val inputRDD: RDD[InternalRow] = {
    val relation = scan.relation
    val format = relation.fileFormat match {
      case _: CSVFileFormat if local.arePlainLines || decodesLines => new SmallCsvFormat
      case _: JsonFileFormat if local.arePlainLines || decodesLines => new SmallJsonFormat
      case _: TextFileFormat if decodes => new DecodedTextFormat
      case other => other
    }
    val conf = SlimConfiguration.of(local.conf, relation.sparkSession.sparkContext.getConf)
    val read = format.buildReaderWithPartitionValues(
      relation.sparkSession,
      relation.dataSchema,
      relation.partitionSchema,
      scan.requiredSchema,
      pushedFilters,
      relation.options + (FileFormat.OPTION_RETURNING_BATCH -> supportsColumnar.toString),
      conf)
    def continued[Footer](files: => ColumnarFiles[Footer]): PartitionedFile => Iterator[InternalRow] =
      SparkLine.ifSupported(Some(new ContinuedReader(
        read,
        files,
        relation.partitionSchema.length,
        metrics("filesContinued")))).getOrElse(read)
    val reader = format match {
      case _: ParquetFileFormat => continued(new ParquetFiles(NativeColumns.of(scan, conf), metrics("filesDecoded")))
      case _: OrcFileFormat =>
        continued(new OrcFiles(relation.sparkSession.sparkContext.broadcast(new SerializableConfiguration(conf))))
      case _ => read
    }
    val full = Option.unless(local.isLocal)(sparkContext.broadcast(new SerializableConfiguration(local.conf)))
    val partitions = pack()
    val readers = settings.readers(partitions.length, local.isLocal, sparkContext)
    new PackedFileScanRDD(
      scan,
      reader,
      partitions,
      full,
      needed,
      showsTimes,
      local.verifiesChecksums,
      readers,
      metrics("filesReadAhead"),
      metrics("waitTime"),
      requestMetrics)
  }

  override protected def doExecute(): RDD[InternalRow] = {
    val rows = metrics("numOutputRows")
    val (schema, isUnsafe) = (this.schema, !scan.relation.fileFormat.isInstanceOf[ParquetFileFormat])
    inputRDD.mapPartitionsWithIndex { (index, read) =>
      val counted = read.map { row =>
        rows += 1
        row
      }
      if (isUnsafe) {
        counted
      } else {
        val toUnsafe = UnsafeProjection.create(schema)
        toUnsafe.initialize(index)
        counted.map(toUnsafe)
      }
    }
  }

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
    val (rows, scanTime) = (metrics("numOutputRows"), metrics("scanTime"))
    inputRDD.asInstanceOf[RDD[ColumnarBatch]].mapPartitions(new TimedBatches(_, rows, scanTime))
  }
}

private final class TimedBatches(batches: Iterator[ColumnarBatch], rows: SQLMetric, scanTime: SQLMetric)
    extends Iterator[ColumnarBatch] {
  override def hasNext: Boolean = {
    val start = System.nanoTime()
    val found = batches.hasNext
    scanTime += System.nanoTime() - start
    found
  }

  override def next(): ColumnarBatch = {
    val batch = batches.next()
    rows += batch.numRows()
    batch
  }
}

/**
 * The part of a configuration that readers need, without the more than a thousand defaults, which Hadoop's code
 * contains as well, and without the application's settings. Readers copy it for every file. Third-party classes that it
 * names (codecs, keys of encrypted Parquet files) get all of it.
 */
private object SlimConfiguration {
  private val DefaultResource = "-default.xml"
  private val Encryption = Seq("parquet.crypto.", "parquet.encryption.")

  def of(full: Configuration, application: SparkConf): Configuration = {
    val keys = full.iterator.asScala.map(_.getKey).toSeq
    if (FileCodecClasses.hasOthers(full) || keys.exists(key => Encryption.exists(key.startsWith))) {
      full
    } else {
      val slim = new Configuration(false)
      keys.filter(isForReaders(full, application, _)).foreach(key => Option(full.get(key)).foreach(slim.set(key, _)))
      slim
    }
  }

  private def isForReaders(full: Configuration, application: SparkConf, key: String): Boolean =
    if (key.startsWith("spark.")) key.startsWith("spark.sql.") || !application.getOption(key).contains(full.get(key))
    else key.startsWith("io.compression.") || !isDefault(full, key)

  private def isDefault(full: Configuration, key: String): Boolean =
    Option(full.getPropertySources(key)).exists(_.forall(_.endsWith(DefaultResource)))
}

/**
 * Spark's scan of files with our partitions, which reads small files ahead.
 *
 * @param needed the share of each file's bytes that the readers are expected to need
 * @param showsTimes whether rows contain a file's modification time, as its reader requests it
 * @param verifies whether native code compares files with the checksums next to them
 * @param conf the whole configuration, to find the file system of the files, unless they are local; it is in Hadoop's
 *     cache when the readers request it with a slim configuration
 */
private final class PackedFileScanRDD(
    scan: FileSourceScanExec,
    read: PartitionedFile => Iterator[InternalRow],
    @transient private val scanPartitions: Array[Partition],
    conf: Option[Broadcast[SerializableConfiguration]],
    needed: Double,
    showsTimes: Boolean,
    verifies: Boolean,
    maxReaders: Int,
    filesReadAhead: SQLMetric,
    waitTime: SQLMetric,
    requests: RequestMetrics)
    extends FileScanRDD(
      scan.relation.sparkSession,
      FileAhead.serving(read),
      Nil,
      StructType(scan.requiredSchema.fields ++ scan.relation.partitionSchema.fields),
      scan.fileConstantMetadataColumns,
      scan.relation.fileFormat.fileConstantMetadataExtractors,
      new FileSourceOptions(CaseInsensitiveMap(scan.relation.options))) {

  private val ignoresDamage = new FileSourceOptions(CaseInsensitiveMap(scan.relation.options)).ignoreCorruptFiles

  override protected def getPartitions: Array[Partition] = scanPartitions

  override protected def getPreferredLocations(split: Partition): Seq[String] = split.asInstanceOf[ScanPartition].hosts

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val partition = split.asInstanceOf[ScanPartition]
    val hadoop = conf.map(_.value.value).orNull
    val ahead =
      new FileReadAhead(partition.ranges, hadoop, needed, showsTimes, maxReaders, () => context.isInterrupted())
    lazy val decoded =
      new DecodedLines(partition.ranges.filter(_.isDecoded), hadoop, verifies, ignoresDamage, maxReaders, context)
    var decodedFiles = 0
    val shared = new Shared
    // Runs after the listeners that are added later: those of Spark's scan, and of operators that still use its last
    // batch.
    context.addTaskCompletionListener[Unit] { _ =>
      ahead.close()
      filesReadAhead += ahead.filesServed
      waitTime += ahead.waitedNanos
      requests.add(ahead.requests)
      if (decodedFiles > 0) {
        decoded.close()
        waitTime += decoded.waitedNanos
        requests.add(decoded.requests)
      }
      shared.close()
    }
    val range = partition.ranges.cursor()
    val files = for {
      (section, before) <- partition.sections.iterator.zip(Iterator(0) ++ partition.sections.iterator.map(_.end))
      _ <- before until section.end
      if range.next()
    } yield {
      val index = decodedFiles
      if (range.isDecoded) decodedFiles += 1
      val lines = Option.when(range.isDecoded)((separator: Option[Array[Byte]]) => decoded.of(index, separator))
      new FileAhead(section.partitionValues, range, ahead, shared, lines)
    }
    super.compute(FilePartition(split.index, files.toArray[PartitionedFile]), context)
  }
}

/** An object that a reader creates once for all files of a task. */
private final class Shared extends AutoCloseable {
  private var made = Option.empty[Any]

  /** A reader always requests the same type. */
  def get[T](make: => T): T = {
    if (made.isEmpty) made = Some(make)
    made.get.asInstanceOf[T]
  }

  override def close(): Unit = made.foreach {
    case open: AutoCloseable => open.close()
    case _ =>
  }
}

/**
 * A file whose bytes may be in memory already when it is opened.
 *
 * @param decoded its lines between separators, if native code decodes it
 */
private final class FileAhead(
    values: InternalRow,
    range: FileRanges#Cursor,
    val ahead: FileReadAhead,
    val shared: Shared,
    decoded: Option[Option[Array[Byte]] => Iterator[Text]])
    extends PartitionedFile(
      values,
      SparkPath.fromUrlString(range.uri),
      range.start,
      range.length,
      Array.empty,
      range.modificationTime,
      range.size) {

  private val name = range.file

  /**
   * Its lines between these separators, if it is compressed or in memory. The same text object is returned for every
   * line.
   */
  def lines(separator: Option[Array[Byte]]): Option[Iterator[Text]] =
    decoded.map(_(separator)).orElse(bytes.map(SmallFile.lines(_, separator)))

  private def isWhole: Boolean = length == fileSize

  /** All its bytes, if they are in memory. */
  private def bytes: Option[Array[Byte]] = Option.when(isWhole)(ahead.bytes(name)).flatMap(Option(_))

  /** A decoder's result for all its bytes; None if they are not in memory, or it returns null. */
  def decoded(decode: Array[Byte] => Array[Byte]): Option[Array[Byte]] =
    Option.when(isWhole)(ahead.read(name, bytes => decode(bytes))).flatMap(Option(_))

  /** The same for a reader that reads parts. */
  def stream: Option[FSDataInputStream] = Option.when(isWhole)(ahead.open(name)).flatMap(Option(_))
}

private object FileAhead {

  /** A reader that can use the bytes in memory. */
  def serving(read: PartitionedFile => Iterator[InternalRow]): PartitionedFile => Iterator[InternalRow] = {
    case file: FileAhead => file.ahead.serve(() => read(file))
    case file => read(file)
  }
}
