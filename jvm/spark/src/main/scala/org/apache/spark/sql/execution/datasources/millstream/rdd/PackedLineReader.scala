package org.apache.spark.sql.execution.datasources.millstream.rdd

import java.io.{EOFException, FileNotFoundException, InterruptedIOException, IOException}
import java.util.{Map => JavaMap}
import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import io.millstream.hadoop.natives.NativeLibrary
import io.millstream.hadoop.reading.{ListedFileSystem, NativeScan, ReadCounter}
import org.apache.hadoop.io.{LongWritable, Text}
import org.apache.hadoop.io.compress.CompressionCodecFactory
import org.apache.hadoop.mapred.{FileSplit, JobConf, RecordReader}
import org.apache.hadoop.mapreduce.lib.input.LineRecordReader

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.IGNORE_MISSING_FILES
import org.apache.spark.rdd.InputFileBlockHolder
import org.apache.spark.sql.execution.datasources.millstream.reading.scan.{CopiedRows, RowPredicates, ScanFiles}
import org.apache.spark.sql.execution.datasources.millstream.settings.Switches

/** The lines of some ranges, with the offsets at which they begin. */
private trait Lines {
  def next(key: LongWritable, value: Text): Boolean
  def close(): Unit
}

/**
 * The lines of a [[PackedSplit]]: plain files are read natively, others by Hadoop's own reader, range by range.
 *
 * A Python writer thread may still read when the task ends and closes this reader, so methods are synchronized.
 *
 * @param readByHadoop creates Hadoop's reader of a split
 */
private[rdd] final class PackedLineReader(
    split: PackedSplit,
    job: JobConf,
    readByHadoop: (FileSplit, JobConf) => RecordReader[LongWritable, Text])
    extends RecordReader[LongWritable, Text] with Logging {

  private val ranges = split.ranges
  private val skipsMissing = SparkEnv.get.conf.get(IGNORE_MISSING_FILES)
  private val codecs = new CompressionCodecFactory(job)
  private val isNative =
    PackedLineReader.isNative(job, ranges.headOption.exists(range => ScanFiles.isLocal(range.fileSystem)))
  private lazy val jobOfRanges = new JobOfManyFiles(job)
  private val taskThread = Thread.currentThread()

  private var begun = 0
  private var current: Lines = NoLines
  private var position = 0L

  override def createKey(): LongWritable = new LongWritable

  override def createValue(): Text = new Text

  override def next(key: LongWritable, value: Text): Boolean = synchronized {
    try {
      while (!current.next(key, value)) {
        current.close()
        current = NoLines
        if (begun == ranges.length) return false
        current = begin()
      }
      position = key.get
      true
    } catch {
      case NonFatal(e) =>
        failTask(e)
        throw e
    }
  }

  override def getPos: Long = position

  override def getProgress: Float = begun.toFloat / ranges.length

  override def close(): Unit = synchronized {
    current.close()
    current = NoLines
    begun = ranges.length
  }

  private def begin(): Lines = {
    val first = begun
    val end = Some(ranges.indexWhere(!isReadNatively(_), first)).filter(_ >= 0).getOrElse(ranges.length)
    if (end > first) {
      begun = end
      new NativeLines(split, first, ranges.slice(first, end), job, skipsMissing, hadoopLines)
    } else {
      begun += 1
      hadoopLines(ranges(first))
    }
  }

  private def isReadNatively(range: FileRange): Boolean =
    range.codec.nonEmpty || isNative && codecs.getCodec(range.hadoopPath) == null

  private def hadoopLines(range: FileRange): Lines =
    try {
      new HadoopLines(
        range,
        readByHadoop(new FileSplit(range.hadoopPath, range.start, range.length, Array.empty[String]), jobOfRanges))
    } catch {
      case e: FileNotFoundException if skipsMissing =>
        logWarning(s"Skipped missing file: ${range.hadoopPath}", e)
        NoLines
    }

  /**
   * Makes the task fail. If a caller caught the failure of one file and continued, the following files of the split
   * would be lost. In the thread that writes to Python, Spark itself handles failures and decides whether they matter.
   */
  private def failTask(cause: Throwable): Unit =
    if (ranges.length > 1 && Thread.currentThread() == taskThread) {
      Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit] { context =>
        if (!context.isFailed()) throw new IOException(
          s"a failure to read a file was ignored; set ${Switches.TextFiles.key}=false",
          cause)
      })
    }
}

private[rdd] object PackedLineReader {

  /** Settings with which only Hadoop's reader is used. */
  private val NotNative = Seq("textinputformat.record.delimiter", LineRecordReader.MAX_LINE_LENGTH)

  /** Whether plain files are read natively. */
  def isNative(job: JobConf, isLocal: Boolean): Boolean =
    NativeLibrary.isLoaded && NotNative.forall(job.get(_) == null) && (!isLocal || ScanFiles.verifiesChecksums(job))

  /** Sets the file for `input_file_name()` and similar functions. */
  def setInputFile(range: FileRange): Unit =
    InputFileBlockHolder.set(range.hadoopPath.toString, range.start, range.length)
}

private object NoLines extends Lines {
  override def next(key: LongWritable, value: Text): Boolean = false
  override def close(): Unit = ()
}

private final class HadoopLines(range: FileRange, reader: RecordReader[LongWritable, Text]) extends Lines {
  PackedLineReader.setInputFile(range)

  override def next(key: LongWritable, value: Text): Boolean = reader.next(key, value)
  override def close(): Unit = reader.close()
}

/** Lines copied from native memory, several at a time; `ranges` are those of `split` from `first` on. */
private final class NativeLines(
    split: PackedSplit,
    first: Int,
    ranges: Array[FileRange],
    job: JobConf,
    skipsMissing: Boolean,
    hadoopLines: FileRange => Lines)
    extends Lines {

  private val context = Option(TaskContext.get())
  private val scan = {
    val flags = NativeScan.BY_RANGE | NativeScan.VERIFY | (if (skipsMissing) NativeScan.SKIP_MISSING else 0)
    val packed = split.slice(first, first + ranges.length)
    new NativeScan(
      packed,
      ListedFileSystem.filesCountedByCaller(packed, job),
      Array.emptyByteArray,
      RowPredicates.Always,
      NativeScan.WHOLE_ROWS,
      flags,
      split.maxReaders,
      () => context.exists(_.isInterrupted()))
  }
  private val counter =
    if (ScanFiles.isLocal(ranges.head.fileSystem)) ReadCounter.local()
    else ReadCounter.of(ranges.head.hadoopPath.getFileSystem(job))
  private var row = 0L
  private var rows = 0L
  private var range = -1
  private var bytesRead = 0L

  private val copied = new CopiedRows(scan)

  override def next(key: LongWritable, value: Text): Boolean = {
    while (row == rows) if (!fetch()) return false
    copied.copy(row, value)
    // The first line does not contain a byte order mark, but its offset is still 0.
    key.set(if (row == 0 && scan.offset == 0) 0 else scan.offset + copied.start(row))
    row += 1
    true
  }

  private def fetch(): Boolean = {
    var found = reading(counter.fetching(() => scan.next()))
    while (found && scan.rows == 0) {
      context.foreach(_.killTaskIfInterrupted())
      found = reading(counter.fetching(() => scan.next()))
    }
    row = 0
    rows = if (found) scan.rows else 0
    copied.begin(rows)
    counter.count(scan.bytesRead - bytesRead)
    bytesRead = scan.bytesRead
    if (found && scan.range != range) {
      range = scan.range
      PackedLineReader.setInputFile(ranges(range))
    }
    found
  }

  /** After a failure, reads the file with Hadoop's reader, so that Hadoop's error is thrown if it fails too. */
  private def reading(next: => Boolean): Boolean =
    try {
      next
    } catch {
      case e: InterruptedIOException =>
        context.foreach(_.killTaskIfInterrupted())
        throw e
      case e: IOException
          if e.isInstanceOf[EOFException] || ranges(
            scan.range).codec.nonEmpty && !e.isInstanceOf[FileNotFoundException] =>
        // Hadoop may find no error in a file that has shrunk, cannot read parts of a compressed one, and its decoders
        // do not name the file.
        val message = s"${ranges(scan.range).hadoopPath}: ${e.getMessage}"
        throw (if (e.isInstanceOf[EOFException]) new EOFException(message).initCause(e)
               else new IOException(message, e))
      case e: IOException =>
        val lines = hadoopLines(ranges(scan.range))
        try {
          val (key, value) = (new LongWritable, new Text)
          while (lines.next(key, value)) {}
        } finally {
          lines.close()
        }
        throw e
    }

  override def close(): Unit = scan.close()
}

/**
 * A job configuration that caches its settings by prefix: otherwise a thousand settings are searched for every file
 * opened.
 */
private final class JobOfManyFiles(job: JobConf) extends JobConf(job) {
  private val found = new ConcurrentHashMap[String, JavaMap[String, String]]

  override def getPropsWithPrefix(prefix: String): JavaMap[String, String] =
    found.computeIfAbsent(prefix, super.getPropsWithPrefix(_))
}
