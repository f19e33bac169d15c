package org.apache.spark.sql.execution.datasources.millstream.rdd

import scala.jdk.CollectionConverters._

import io.millstream.hadoop.MillstreamLocalFileSystem
import org.apache.hadoop.fs.FileSystem
import org.apache.hadoop.io.{LongWritable, Text}
import org.apache.hadoop.mapred.{FileSplit, InputSplit, JobConf, RecordReader, Reporter, TextInputFormat}
import org.apache.hadoop.mapreduce.MRJobConfig
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat.{INPUT_DIR, NUM_INPUT_FILES, SPLIT_MINSIZE}

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.{ConfigEntry, FILES_MAX_PARTITION_BYTES, HADOOP_RDD_IGNORE_EMPTY_SPLITS, IGNORE_CORRUPT_FILES}
import org.apache.spark.sql.execution.datasources.millstream.{Packing, ReadSettings, SparkLine}
import org.apache.spark.sql.internal.SQLConf

/**
 * Hadoop's input format for lines, whose splits of small files are put together where Spark reads lines of local files.
 *
 * Listing and splitting is Hadoop's. Everybody but Spark's own RDDs gets Hadoop's splits, and so does an RDD whose users may see
 * splits, or that is not made by `sc.textFile` or a call like it.
 */
class PackedTextInputFormat extends TextInputFormat {

  override def getSplits(job: JobConf, minPartitions: Int): Array[InputSplit] = {
    val splits = super.getSplits(job, minPartitions)
    SparkLine.ifItFits(SparkContext.getActive.filter(mayPack(_, job, splits)).map(pack(_, job, minPartitions, splits))).getOrElse(splits)
  }

  override def getRecordReader(split: InputSplit, job: JobConf, reporter: Reporter): RecordReader[LongWritable, Text] =
    split match {
      case packed: PackedSplit =>
        PackedTextInputFormat.refuseOnesWhoSeeSplits()
        reporter.setStatus(packed.toString)
        new PackedLineReader(packed, job, super.getRecordReader(_, _, reporter))
      case _ => super.getRecordReader(split, job, reporter)
    }

  private def mayPack(context: SparkContext, job: JobConf, splits: Array[InputSplit]): Boolean =
    PackedTextInputFormat.isEnabled(context) && !context.conf.get(IGNORE_CORRUPT_FILES) &&
      PackedTextInputFormat.isCalledForLines && PackedTextInputFormat.isPlain(job, context) &&
      splits.forall { case split: FileSplit => split.getPath.toUri.getScheme == "file" } && splits.nonEmpty &&
      splits.head.asInstanceOf[FileSplit].getPath.getFileSystem(job).isInstanceOf[MillstreamLocalFileSystem]

  private def pack(context: SparkContext, job: JobConf, minPartitions: Int, splits: Array[InputSplit]): Array[InputSplit] = {
    val all = splits.toSeq.map { case split: FileSplit => FileRange(split.getPath.toUri.getPath, split.getStart, split.getLength) }
    val ranges = if (context.conf.get(HADOOP_RDD_IGNORE_EMPTY_SPLITS)) all.filter(_.length > 0) else all
    val settings = ReadSettings.of(context)
    def cost(range: FileRange): Long = range.length + settings.openCostBytes
    val tasks = math.max(minPartitions, PackedTextInputFormat.TasksPerCore * context.defaultParallelism)
    val target = math.min(ranges.map(cost).sum / math.max(1, tasks), context.conf.get(FILES_MAX_PARTITION_BYTES))
    val largest = largestSplit(splits, job, ranges.map(_.length).sum / math.max(1, minPartitions))
    // A task is full of bytes, or of what it costs, whichever comes first.
    def share(range: FileRange): Long = math.max(cost(range), (range.length.toDouble / largest * target).toLong)
    val packed = Iterator.iterate(target)(_ / 2).map(Packing.consecutive(ranges, _)(share)).find(_.size >= math.min(minPartitions, ranges.size))
    packed.get.map(PackedSplit(_, settings.maxReaders)).toArray
  }

  /** As Hadoop computes it. */
  private def largestSplit(splits: Array[InputSplit], job: JobConf, goal: Long): Long = {
    val blockSize = FileSystem.getLocal(job).getDefaultBlockSize(splits.head.asInstanceOf[FileSplit].getPath)
    computeSplitSize(goal, job.getLong(SPLIT_MINSIZE, 1).max(1), blockSize)
  }
}

private[millstream] object PackedTextInputFormat {
  val Enabled: ConfigEntry[Boolean] = SQLConf.buildConf("spark.millstream.rdd.enabled")
    .doc("Whether sc.textFile reads many small local files in one task, and natively.")
    .booleanConf
    .createWithDefault(true)

  /** More tasks than cores, since nobody knows what is done with a line, or how many cores there will be. */
  private val TasksPerCore = 4

  private val HadoopRDD = "org.apache.spark.rdd.HadoopRDD"
  private val Mapped = "org.apache.spark.rdd.MapPartitionsRDD"
  private val WithSplits = s"$HadoopRDD$$HadoopMapPartitionsWithSplitRDD"
  /** They tell a process the file of a split, or match the rows of two RDDs by partition. */
  private val WantSplits = Set("org.apache.spark.rdd.PipedRDD", "org.apache.spark.rdd.ZippedPartitionsBaseRDD")
  private val OfTheJob = Set(INPUT_DIR, NUM_INPUT_FILES, MRJobConfig.WORKING_DIR)

  private def isEnabled(context: SparkContext): Boolean = ReadSettings.get(context, Enabled)

  /**
   * Whether a `HadoopRDD` asks for its splits because an RDD that maps its rows asks it, as the one of `sc.textFile` does.
   * Nobody else can know which splits a caller looks at, and the input format is told nothing about its RDD.
   */
  private def isCalledForLines: Boolean = {
    val rdds = callers("getPartitions")
    rdds.take(2) == Seq(HadoopRDD, Mapped) && !rdds.exists(WantSplits)
  }

  private def callers(method: String): Seq[String] =
    StackWalker.getInstance().walk(_.iterator.asScala.filter(_.getMethodName == method).map(_.getClassName).toVector)

  /** Whether a job is configured as Spark configures all: tables of Hive say more, and what reads them may look at splits. */
  private def isPlain(job: JobConf, context: SparkContext): Boolean = {
    val plain = new JobConf(context.hadoopConfiguration)
    job.iterator.asScala.map(_.getKey).forall(key => OfTheJob(key) || plain.getRaw(key) != null)
  }

  /** Those that map with splits get Hadoop's, unless somebody else asked for lines of the same RDD before. */
  private def refuseOnesWhoSeeSplits(): Unit =
    if (callers("compute").contains(WithSplits)) {
      throw new IllegalStateException("mapPartitionsWithInputSplit after another use of the same RDD needs Hadoop's splits: " +
        s"set ${Enabled.key}=false")
    }
}
