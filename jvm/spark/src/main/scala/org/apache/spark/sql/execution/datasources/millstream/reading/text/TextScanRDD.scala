package org.apache.spark.sql.execution.datasources.millstream.reading.text

import java.io.{FileNotFoundException, InterruptedIOException, IOException}
import java.net.URI

import io.millstream.hadoop.reading.{ListedFileSystem, NativeScan, RemoteFiles, RequestCounts}
import org.apache.hadoop.fs.Path

import org.apache.spark.{InterruptibleIterator, Partition, SparkContext, TaskContext}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.{InputFileBlockHolder, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.datasources.millstream.compressed.{CompressedFile, CompressedFiles, IndexStore}
import org.apache.spark.sql.execution.datasources.millstream.reading.scan.{RequestMetrics, ScanPartition}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.vectorized.{ColumnVectorUtils, ConstantColumnVector}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.util.SerializableConfiguration

/** Settings shared by all tasks of a scan. */
private[millstream] final case class ScanTask(
    separator: Array[Byte],
    predicate: Array[Byte],
    words: Array[Byte],
    flags: Int,
    maxReaders: Int,
    withValue: Boolean,
    partitionSchema: StructType) {

  /** Whether batches are separated by file, so that a row's file is known. */
  def byFile: Boolean = (flags & NativeScan.BY_RANGE) != 0

  /** Whether distinct rows come with their numbers of occurrences. */
  def distinct: Boolean = (flags & NativeScan.DISTINCT) != 0
}

private[millstream] final case class ScanMetrics(
    rows: SQLMetric,
    bytes: SQLMetric,
    opened: SQLMetric,
    missing: SQLMetric,
    waitTime: SQLMetric,
    requests: RequestMetrics)

/**
 * Batches of native scans, one scan for each partition.
 *
 * @param store where indexes built by tasks are kept
 * @param conf finds the file system of the files, unless they are local and no index is built
 */
private[millstream] final class TextScanRDD(
    context: SparkContext,
    @transient private val scanPartitions: Array[Partition],
    task: ScanTask,
    store: IndexStore,
    conf: Option[Broadcast[SerializableConfiguration]],
    metrics: ScanMetrics)
    extends RDD[ColumnarBatch](context, Nil) {

  override protected def getPartitions: Array[Partition] = scanPartitions

  override protected def getPreferredLocations(split: Partition): Seq[String] = split.asInstanceOf[ScanPartition].hosts

  override def compute(split: Partition, context: TaskContext): Iterator[ColumnarBatch] = {
    val partition = split.asInstanceOf[ScanPartition]
    val files = conf.map(conf => ListedFileSystem.files(partition.ranges, conf.value.value))
    val save = (file: CompressedFile, index: Array[Byte]) =>
      conf.foreach(conf => CompressedFiles.save(file, index, store, conf.value.value))
    val batches = new ScanBatches(partition, files.orNull, task, save, metrics, context)
    context.addTaskCompletionListener[Unit](_ => batches.abandon())
    new InterruptibleIterator(context, batches)
  }
}

/** @param saveIndex stores the new index of a file */
private final class ScanBatches(
    partition: ScanPartition,
    files: RemoteFiles,
    task: ScanTask,
    saveIndex: (CompressedFile, Array[Byte]) => Unit,
    metrics: ScanMetrics,
    context: TaskContext)
    extends Iterator[ColumnarBatch] {

  private val scan = {
    // The rows of a batch have the same values in the partition columns.
    val grouping = if (partition.sections.length > 1 && task.partitionSchema.nonEmpty) NativeScan.BY_RANGE else 0
    new NativeScan(
      partition.ranges,
      files,
      task.separator,
      task.predicate,
      task.words,
      task.flags | grouping,
      task.maxReaders,
      () => context.isInterrupted())
  }
  private val value = new NativeRows(scan)
  private val counts = Option.when(task.distinct)(new NativeCounts(scan))
  private val sections = partition.sections.iterator
  private var section = sections.next()
  private var batch = emptyBatch
  private val input = context.taskMetrics().inputMetrics

  private var delivered = 0L
  private var left = 0L
  private var bytesRead = 0L
  private var opened = 0L
  private var missing = 0L
  private var waited = 0L
  private var requests = RequestCounts.NONE
  private val ranges = partition.ranges.cursor()
  private var current = -1

  /** Ends the scan. Rows stay valid: a thread of another operator may outlive the task and still read them. */
  def abandon(): Unit = {
    scan.abandon()
    if (task.byFile) InputFileBlockHolder.unset()
  }

  private def emptyBatch: ColumnarBatch = {
    val constants = task.partitionSchema.fields.toSeq.zipWithIndex.map { case (field, i) =>
      val constant = new ConstantColumnVector(1, field.dataType)
      ColumnVectorUtils.populate(constant, section.partitionValues, i)
      constant
    }
    new ColumnarBatch((Option.when(task.withValue)(value) ++ counts ++ constants).toArray[ColumnVector])
  }

  override def hasNext: Boolean = left > 0 || fetch()

  /** A Spark batch has at most as many rows as an array can have elements, so a native batch may become several. */
  override def next(): ColumnarBatch = {
    if (!hasNext) throw new NoSuchElementException("no more batches")
    val rows = math.min(left, ScanBatches.MaxRows).toInt
    if (task.withValue) value.show(delivered)
    counts.foreach(_.show(delivered))
    delivered += rows
    left -= rows
    batch.setNumRows(rows)
    metrics.rows += rows
    batch
  }

  private def fetch(): Boolean = {
    var found = reading(scan.next())
    while (found && scan.rows == 0) {
      context.killTaskIfInterrupted()
      account()
      found = reading(scan.next())
    }
    left = if (found) scan.rows else 0L
    if (found) input.incRecordsRead(scan.occurrences)
    delivered = 0
    account()
    if (task.byFile) setInputFile(found)
    if (found) {
      enterSection()
    } else {
      saveIndexes()
      scan.close()
    }
    found
  }

  private def saveIndexes(): Unit = scan.takeIndexes().forEach { (number, index) =>
    val range = partition.ranges.at(number)
    saveIndex(CompressedFile(range.path, range.version, range.codec), index)
  }

  private def enterSection(): Unit = if (scan.range >= section.end) {
    while (scan.range >= section.end) section = sections.next()
    batch = emptyBatch
  }

  private def setInputFile(found: Boolean): Unit =
    if (!found) {
      InputFileBlockHolder.unset()
    } else if (scan.range != current) {
      while (current < scan.range) {
        ranges.next()
        current += 1
      }
      InputFileBlockHolder.set(ranges.uri, ranges.start, ranges.length)
    }

  private def account(): Unit = {
    input.incBytesRead(scan.bytesRead - bytesRead)
    metrics.bytes += scan.bytesRead - bytesRead
    metrics.opened += scan.files - opened
    metrics.missing += scan.missingFiles - missing
    metrics.waitTime += scan.waitedNanos - waited
    bytesRead = scan.bytesRead
    opened = scan.files
    missing = scan.missingFiles
    waited = scan.waitedNanos
    val made = scan.requests
    metrics.requests.add(made.minus(requests))
    requests = made
  }

  /** Converts errors to those of Spark's own readers. */
  private def reading(next: => Boolean): Boolean =
    try {
      next
    } catch {
      case e: InterruptedIOException =>
        context.killTaskIfInterrupted()
        throw e
      case e: FileNotFoundException =>
        val path = partition.ranges.at(scan.range).uri
        // Native errors for a local file are less specific than Hadoop's.
        val missing =
          if (files == null) new FileNotFoundException(s"File ${new Path(new URI(path))} does not exist") else e
        throw QueryExecutionErrors.fileNotExistError(path, missing)
      case e: IOException =>
        throw QueryExecutionErrors.cannotReadFilesError(e, partition.ranges.at(scan.range).uri)
    }
}

private object ScanBatches {
  private val MaxRows = Int.MaxValue - 8L
}
