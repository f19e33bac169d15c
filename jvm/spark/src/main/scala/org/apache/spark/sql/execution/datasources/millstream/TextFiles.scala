package org.apache.spark.sql.execution.datasources.millstream

import java.io.{File, FileInputStream, FileNotFoundException, FilterInputStream, IOException, InputStream}

import scala.collection.mutable

import io.millstream.hadoop.MillstreamLocalFileSystem
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.io.Text
import org.apache.hadoop.io.compress.CompressionCodecFactory
import org.apache.hadoop.util.LineReader

import org.apache.spark.TaskContext
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.executor.InputMetrics
import org.apache.spark.rdd.InputFileBlockHolder
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration

/**
 * The lines of all files below a path, as `spark.read.option("recursiveFileLookup", true).text(path)` gives them.
 *
 * Local files that one task reads anyway are read here: packed into few partitions, without Hadoop's cost of 200 us a file
 * for copies of its configuration. Large files, which several tasks should share, and other file systems go Spark's way.
 */
object TextFiles {
  /** What opening a file counts for, in bytes. */
  private val OpenCostBytes = 32L << 10
  private val BufferBytes = 64 << 10
  private val MarkBytes = 3

  private val Schema = new StructType().add("value", "string")

  /** Consecutive files of one directory. */
  private final case class Run(directory: String, names: Array[String], lengths: Array[Long])

  /**
   * Reads the lines.
   *
   * @param partitions number of partitions, or 0 for one that suits the data and the cores
   */
  def read(spark: SparkSession, path: String, partitions: Int): DataFrame = {
    require(partitions >= 0, s"partitions must not be negative: $partitions")
    val conf = spark.sessionState.newHadoopConf()
    val stock = spark.read.option("recursiveFileLookup", "true")
    val root = new Path(path)
    root.getFileSystem(conf) match {
      case fs: MillstreamLocalFileSystem if listsNatively(spark, fs) && fs.exists(root) && failsOnBadFiles(spark) =>
        SparkLine.ifItFits(readLocal(spark, fs, fs.makeQualified(root), partitions, conf))
          .getOrElse(coalesced(stock.text(path), partitions))
      case _ => coalesced(stock.text(path), partitions)
    }
  }

  private def listsNatively(spark: SparkSession, fs: MillstreamLocalFileSystem) =
    fs.listsNatively && spark.sessionState.conf.getConf(IndexLocalFiles.Enabled)

  /** What Spark is told to ignore in files it reads, it alone ignores. */
  private def failsOnBadFiles(spark: SparkSession) =
    !spark.sessionState.conf.ignoreCorruptFiles && !spark.sessionState.conf.ignoreMissingFiles

  private def coalesced(lines: DataFrame, partitions: Int) =
    if (partitions > 0) lines.coalesce(partitions) else lines

  private def readLocal(
      spark: SparkSession,
      fs: MillstreamLocalFileSystem,
      root: Path,
      partitions: Int,
      conf: Configuration): Option[DataFrame] =
    CompactFileIndex.create(spark, fs, Seq(root), Map("recursiveFileLookup" -> "true"), None).map { index =>
      val (whole, large) = index.listFiles(Nil, Nil).iterator.flatMap(_.files)
        .map(f => (new File(f.getPath.toUri.getPath), f.getLen))
        .partition { case (_, length) => length <= spark.sessionState.conf.filesMaxPartitionBytes }
      val files = whole.toArray
      val packed = pack(files, if (partitions > 0) partitions else suitable(spark, files.map(_._2)))
      val read = new ReadRuns(new SerializableConfiguration(conf))
      val rows = spark.sparkContext.parallelize(packed, math.max(1, packed.length)).flatMap(read)
      val small = spark.asInstanceOf[ClassicSession].internalCreateDataFrame(rows, Schema, isStreaming = false)
      readBySpark(spark, large.map { case (file, _) => new Path(file.toURI) }.toSeq) match {
        case Nil => small
        case split => coalesced((if (files.isEmpty) split else small +: split).reduce(_ union _), partitions)
      }
    }

  /**
   * Names are names here, whatever characters of patterns are in them. Spark, told not to expand patterns, reads all paths
   * once more for each that looks like one, so these are read one by one.
   */
  private def readBySpark(spark: SparkSession, files: Seq[Path]): Seq[DataFrame] = {
    val (patterns, plain) = files.partition(SparkHadoopUtil.get.isGlobPath)
    val together = if (plain.isEmpty) Nil else Seq(spark.read.text(plain.map(_.toString): _*))
    together ++ patterns.map(file => spark.read.option(DataSource.GLOB_PATHS_KEY, "false").text(file.toString))
  }

  /** One for every core, more where a partition would be larger than Spark would make it. */
  private def suitable(spark: SparkSession, lengths: Array[Long]): Int = {
    val cost = lengths.iterator.map(_ + OpenCostBytes).sum
    val forSize = (cost + spark.sessionState.conf.filesMaxPartitionBytes - 1) / spark.sessionState.conf.filesMaxPartitionBytes
    math.max(forSize, spark.sparkContext.defaultParallelism.toLong).toInt
  }

  /** Cuts the files, in their order, into at most `partitions` groups of about equal cost. */
  private def pack(files: Array[(File, Long)], partitions: Int): Seq[Array[Run]] = {
    val total = files.iterator.map(_._2 + OpenCostBytes).sum
    val groups = mutable.LinkedHashMap.empty[Int, mutable.ArrayBuffer[(File, Long)]]
    var before = 0L
    files.foreach { file =>
      val group = (before.toDouble * partitions / total).toInt.min(partitions - 1)
      groups.getOrElseUpdate(group, mutable.ArrayBuffer.empty) += file
      before += file._2 + OpenCostBytes
    }
    groups.valuesIterator.map(runs).toSeq
  }

  private def runs(files: collection.Seq[(File, Long)]): Array[Run] = {
    val byDirectory = mutable.LinkedHashMap.empty[String, mutable.ArrayBuffer[(File, Long)]]
    files.foreach { f => byDirectory.getOrElseUpdate(f._1.getParent, mutable.ArrayBuffer.empty) += f }
    byDirectory.iterator.map { case (directory, inside) =>
      Run(directory, inside.map(_._1.getName).toArray, inside.map(_._2).toArray)
    }.toArray
  }

  /** Reads the files of a partition, line by line; tells Spark which file it is at, and how much was read. */
  private final class ReadRuns(conf: SerializableConfiguration)
    extends (Array[Run] => Iterator[InternalRow]) with Serializable {

    override def apply(runs: Array[Run]): Iterator[InternalRow] = {
      val codecs = new CompressionCodecFactory(conf.value)
      val metrics = TaskContext.get().taskMetrics().inputMetrics
      var current: Option[Lines] = None
      def finish(): Unit = {
        current.foreach(_.close())
        InputFileBlockHolder.unset()
      }
      TaskContext.get().addTaskCompletionListener[Unit](_ => finish())
      val all = for {
        run <- runs.iterator
        i <- run.names.indices.iterator
        line <- {
          current = Some(lines(new File(run.directory, run.names(i)), run.lengths(i), codecs, metrics))
          current.get
        }
      } yield {
        metrics.incRecordsRead(1)
        new GenericInternalRow(Array[Any](line))
      }
      all ++ {
        finish()
        Iterator.empty
      }
    }

    private def lines(file: File, length: Long, codecs: CompressionCodecFactory, metrics: InputMetrics): Lines = reading(file) {
      // The spelling of Hadoop's own listings, which input_file_name() shows.
      val path = new Path("file", "", file.getPath)
      InputFileBlockHolder.set(path.toUri.toString, 0, length)
      val codec = codecs.getCodec(path)
      val bytes = new CountedStream(open(file, path), metrics)
      val stream = if (codec == null) bytes else codec.createInputStream(bytes)
      new Lines(file, stream, math.min(BufferBytes.toLong, length + 1).toInt)
    }

    /** Hadoop checks a file against its checksums if it has any. */
    private def open(file: File, path: Path): InputStream =
      if (new File(file.getParent, s".${file.getName}.crc").exists) {
        path.getFileSystem(conf.value).open(path)
      } else {
        new FileInputStream(file)
      }
  }

  private final class CountedStream(counted: InputStream, metrics: InputMetrics) extends FilterInputStream(counted) {
    override def read(): Int = {
      val byte = in.read()
      if (byte >= 0) metrics.incBytesRead(1)
      byte
    }

    override def read(buffer: Array[Byte], offset: Int, length: Int): Int = {
      val bytes = in.read(buffer, offset, length)
      if (bytes > 0) metrics.incBytesRead(bytes)
      bytes
    }
  }

  /** Fails as Spark's own readers do. */
  private def reading[T](file: File)(read: => T): T =
    try {
      read
    } catch {
      case e: FileNotFoundException => throw QueryExecutionErrors.fileNotExistError(file.toPath.toUri.toString, e)
      case e: IOException => throw QueryExecutionErrors.cannotReadFilesError(e, file.toPath.toUri.toString)
    }

  /** Splits as Hadoop's text input does: at LF, CR or CRLF, without a byte order mark; a file that is only a mark is empty. */
  private final class Lines(file: File, in: InputStream, bufferBytes: Int) extends Iterator[UTF8String] {
    private val reader = new LineReader(in, bufferBytes)
    private val text = new Text
    private var open = true
    private var atStart = true
    private var ready = false

    override def hasNext: Boolean = {
      if (!ready && open) {
        val bytes = reading(file)(reader.readLine(text))
        ready = bytes > 0 && !(atStart && startsWithMark && bytes == MarkBytes)
        if (!ready) close()
      }
      ready
    }

    override def next(): UTF8String = {
      if (!hasNext) throw new NoSuchElementException("no more lines")
      ready = false
      val skipped = if (atStart && startsWithMark) MarkBytes else 0
      atStart = false
      UTF8String.fromBytes(java.util.Arrays.copyOfRange(text.getBytes, skipped, text.getLength))
    }

    private def startsWithMark: Boolean = {
      val bytes = text.getBytes
      text.getLength >= MarkBytes && bytes(0) == 0xEF.toByte && bytes(1) == 0xBB.toByte && bytes(2) == 0xBF.toByte
    }

    def close(): Unit = if (open) {
      open = false
      in.close()
    }
  }
}
