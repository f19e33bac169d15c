package org.apache.spark.sql.execution.datasources.millstream.rdd

import java.util.HashMap

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.millstream.hadoop.codec.{FileCodec, TextCodec}
import io.millstream.hadoop.listing.{ListedVersions, Version}
import io.millstream.hadoop.reading.{ListedFileSystem, NativeIndex}
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.hadoop.io.{LongWritable, Text}
import org.apache.hadoop.mapred.{FileSplit, InputSplit, JobConf, RecordReader, Reporter, TextInputFormat}
import org.apache.hadoop.mapreduce.MRJobConfig
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat.{INPUT_DIR, NUM_INPUT_FILES, SPLIT_MINSIZE}

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.{
  FILES_MAX_PARTITION_BYTES,
  HADOOP_RDD_IGNORE_EMPTY_SPLITS,
  IGNORE_CORRUPT_FILES
}
import org.apache.spark.sql.execution.datasources.millstream.compressed.{CompressedFile, CompressedFiles}
import org.apache.spark.sql.execution.datasources.millstream.hadoop.FileCodecs
import org.apache.spark.sql.execution.datasources.millstream.internals.SparkLine
import org.apache.spark.sql.execution.datasources.millstream.reading.scan.ScanFiles
import org.apache.spark.sql.execution.datasources.millstream.settings.{IndexSettings, ReadSettings, Switches}
import org.apache.spark.sql.execution.datasources.millstream.tasks.Packing

/**
 * Hadoop's input format for lines, which packs the splits of small files if Spark reads lines of files that Millstream
 * lists.
 *
 * Hadoop lists and splits the files. Only Spark's own RDDs that are created by `sc.textFile` or a similar call, and
 * whose users cannot see the splits, get packed ones; all other callers get Hadoop's splits.
 */
class PackedTextInputFormat extends TextInputFormat {

  /** The files of the last listing. */
  private var listed = Array.empty[FileStatus]
  private val versions = new HashMap[Path, String]

  override protected def listStatus(job: JobConf): Array[FileStatus] = {
    versions.clear()
    listed = ListedVersions.collect(versions, () => super.listStatus(job))
    listed
  }

  override def getSplits(job: JobConf, minPartitions: Int): Array[InputSplit] = {
    val splits = super.getSplits(job, minPartitions)
    SparkLine.ifSupported(SparkContext.getActive.filter(mayPack(
      _,
      job,
      splits)).map(pack(_, job, minPartitions, splits))).getOrElse(splits)
  }

  override def getRecordReader(split: InputSplit, job: JobConf, reporter: Reporter): RecordReader[LongWritable, Text] =
    split match {
      case packed: PackedSplit =>
        PackedTextInputFormat.refuseCallersThatUseSplits()
        reporter.setStatus(packed.toString)
        new PackedLineReader(packed, job, super.getRecordReader(_, _, reporter))
      case _ => super.getRecordReader(split, job, reporter)
    }

  private def mayPack(context: SparkContext, job: JobConf, splits: Array[InputSplit]): Boolean =
    PackedTextInputFormat.isEnabled(context) && !context.conf.get(IGNORE_CORRUPT_FILES) &&
      PackedTextInputFormat.isCalledForLines && PackedTextInputFormat.isPlain(job, context) &&
      splits.nonEmpty && splits.map { case split: FileSplit =>
        PackedTextInputFormat.fileSystemOf(split.getPath)
      }.distinct.length == 1 &&
      splits.head.asInstanceOf[FileSplit].getPath.getFileSystem(job).isInstanceOf[ListedFileSystem]

  private def pack(
      context: SparkContext,
      job: JobConf,
      minPartitions: Int,
      splits: Array[InputSplit]): Array[InputSplit] = {
    val fileSystem = splits.head.asInstanceOf[FileSplit].getPath.getFileSystem(job).getUri
    val statuses = if (fileSystem.getScheme == "file") Map.empty[Path, FileStatus]
    else listed.map(status => status.getPath -> status).toMap
    val all = splits.toSeq.map { case split: FileSplit =>
      val status = statuses.get(split.getPath)
      val version = status.fold(PackedSplit.Unknown) { status =>
        new Version(status.getLen, 0, Option(Version.tagOf(status)).getOrElse(versions.get(status.getPath)))
      }
      FileRange(
        fileSystem,
        split.getPath.toUri.getPath,
        split.getStart,
        split.getLength,
        version)
    }
    val settings = ReadSettings.of(context)
    def cost(range: FileRange): Long = bytes(range) + settings.openCostBytes
    val tasks = math.max(minPartitions, PackedTextInputFormat.TasksPerCore * context.defaultParallelism)
    val found = decoded(if (context.conf.get(HADOOP_RDD_IGNORE_EMPTY_SPLITS)) all.filter(_.length > 0) else all, job)
    val ranges = divided(
      found,
      math.min(found.map(cost).sum / math.max(1, tasks), context.conf.get(FILES_MAX_PARTITION_BYTES)),
      context,
      job)
    val hosts = if (statuses.isEmpty) Map.empty[(String, Long), Array[String]]
    else splits.map { case split: FileSplit =>
      (split.getPath.toUri.getPath, split.getStart) -> split.getLocations
    }.toMap
    def hostsOf(range: FileRange) =
      hosts.getOrElse((range.path, if (range.index.isEmpty) range.start else 0), Array.empty[String])
    val target = math.min(ranges.map(cost).sum / math.max(1, tasks), context.conf.get(FILES_MAX_PARTITION_BYTES))
    val largest = largestSplit(splits, job, ranges.map(bytes).sum / math.max(1, minPartitions))
    // A task is full by its bytes or by its cost, whichever comes first.
    def share(range: FileRange): Long = math.max(cost(range), (bytes(range).toDouble / largest * target).toLong)
    val packed = Iterator.iterate(target)(_ / 2).map(Packing.consecutive(ranges, _)(share)).find(_.size >= math.min(
      minPartitions,
      ranges.size)).get
    val readers = settings.readers(packed.size, fileSystem.getScheme == "file", context)
    packed.map(task => PackedSplit(task, readers, mostHosts(task, hostsOf))).toArray
  }

  /** The bytes of rows in a range, as far as known. */
  private def bytes(range: FileRange): Long =
    if (range.codec.isEmpty || range.index.nonEmpty) range.length else range.length * CompressedFiles.Ratio

  /** The ranges, with the codec of those that native code decodes: whole files, or parts of bzip2 files. */
  private def decoded(ranges: Seq[FileRange], job: JobConf): Seq[FileRange] =
    if (PackedLineReader.isNative(job, ScanFiles.isLocal(ranges.headOption.fold(PackedSplit.Local)(_.fileSystem)))) {
      val codecs = FileCodecs.ofHadoop(job)
      ranges.map { range =>
        val codec = codecs.of(range.path.substring(range.path.lastIndexOf('/') + 1))
        codec.flatMap(codec => Option(FileCodec.textCodec(codec))).fold(range)(codec => range.copy(codec = Some(codec)))
      }
    } else {
      ranges
    }

  /** The ranges, with large compressed files split if they have an index. */
  private def divided(ranges: Seq[FileRange], target: Long, context: SparkContext, job: JobConf): Seq[FileRange] = {
    val settings = IndexSettings.of(context)
    val large = ranges.filter(range =>
      range.codec.exists(_ != TextCodec.BZIP2) && range.length >= settings.minSize && bytes(range) > target)
    if (large.isEmpty) {
      ranges
    } else {
      val paths = large.map(range => range.path -> range).toMap
      val files = for (status <- listed.toSeq; range <- paths.get(status.getPath.toUri.getPath); codec <- range.codec)
        yield CompressedFile(status.getPath, Version.of(status).withTag(range.version.tag), codec)
      val found = CompressedFiles.indexes(files.distinct, settings, job, context, onlyCounts = false)
      val indexes = found.map { case (file, index) => file.path.toUri.getPath -> index }
      ranges.flatMap(range =>
        if (range.codec.isEmpty) Seq(range) else indexes.get(range.path).fold(Seq(range))(pieces(range, _, target)))
    }
  }

  private def pieces(range: FileRange, bytes: Array[Byte], target: Long): Seq[FileRange] =
    Using.resource(NativeIndex.of(bytes)) { index =>
      val count = math.max(1, index.length / math.max(1, target)).toInt
      val inner = (1 until count).map(i => index.cut(0, (index.length.toDouble * i / count).toLong))
      val cuts = (0L +: inner :+ index.length).distinct
      for ((start, end) <- cuts.zip(cuts.tail))
        yield range.copy(
          start = start,
          length = end - start,
          version = new Version(range.length, 0, range.version.tag),
          index = index.slice(start, end))
    }

  /** The hosts of most of a task's bytes. */
  private def mostHosts(task: Seq[FileRange], hostsOf: FileRange => Array[String]): Seq[String] = {
    val bytes = for (range <- task; host <- hostsOf(range) if host != "localhost") yield host -> range.length
    bytes.groupMapReduce(_._1)(_._2)(
      _ + _).toSeq.sortBy { case (host, sum) => (-sum, host) }.take(PackedTextInputFormat.MostHosts).map(_._1)
  }

  /** The size of the largest split, as Hadoop computes it. */
  private def largestSplit(splits: Array[InputSplit], job: JobConf, goal: Long): Long = {
    val path = splits.head.asInstanceOf[FileSplit].getPath
    val fileSystem = if (path.toUri.getScheme == "file") FileSystem.getLocal(job) else path.getFileSystem(job)
    val blockSize = fileSystem.getDefaultBlockSize(path)
    computeSplitSize(goal, job.getLong(SPLIT_MINSIZE, 1).max(1), blockSize)
  }
}

private[millstream] object PackedTextInputFormat {

  /** More tasks than cores, since neither the cost of processing a line nor the later number of cores is known. */
  private val TasksPerCore = 4

  /** The number that Spark takes into account. */
  private val MostHosts = 3

  private val HadoopRDD = "org.apache.spark.rdd.HadoopRDD"
  private val Mapped = "org.apache.spark.rdd.MapPartitionsRDD"
  private val WithSplits = s"$HadoopRDD$$HadoopMapPartitionsWithSplitRDD"

  /** RDDs that pass the file of a split to a process, or match the rows of two RDDs by partition. */
  private val WantSplits = Set("org.apache.spark.rdd.PipedRDD", "org.apache.spark.rdd.ZippedPartitionsBaseRDD")
  private val OfTheJob = Set(INPUT_DIR, NUM_INPUT_FILES, MRJobConfig.WORKING_DIR)

  /** Scheme and authority. */
  private def fileSystemOf(path: Path): (String, String) = (path.toUri.getScheme, path.toUri.getAuthority)

  private def isEnabled(context: SparkContext): Boolean = ReadSettings.get(context, Switches.TextFiles)

  /**
   * Whether a `HadoopRDD` requests its splits on behalf of an RDD that maps its rows, as with `sc.textFile`. The call
   * stack is the only source for this, because the input format does not learn about its RDD.
   */
  private def isCalledForLines: Boolean = {
    val rdds = callers("getPartitions")
    rdds.take(2) == Seq(HadoopRDD, Mapped) && !rdds.exists(WantSplits)
  }

  private def callers(method: String): Seq[String] =
    StackWalker.getInstance().walk(_.iterator.asScala.filter(_.getMethodName == method).map(_.getClassName).toVector)

  /**
   * Whether a job has only the settings of every Spark job. Hive tables set more, and their readers may look at splits.
   */
  private def isPlain(job: JobConf, context: SparkContext): Boolean = {
    val plain = new JobConf(context.hadoopConfiguration)
    job.iterator.asScala.map(_.getKey).forall(key => OfTheJob(key) || plain.getRaw(key) != null)
  }

  /**
   * RDDs that map with splits get Hadoop's splits, unless the same RDD was used for lines before; that case is refused.
   */
  private def refuseCallersThatUseSplits(): Unit =
    if (callers("compute").contains(WithSplits)) {
      throw new IllegalStateException(
        "mapPartitionsWithInputSplit needs Hadoop's splits, but this RDD was used before with packed ones: " +
          s"set ${Switches.TextFiles.key}=false")
    }
}
