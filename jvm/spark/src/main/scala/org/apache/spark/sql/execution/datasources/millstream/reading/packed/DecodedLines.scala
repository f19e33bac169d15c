package org.apache.spark.sql.execution.datasources.millstream.reading.packed

import java.io.{FileNotFoundException, InterruptedIOException, IOException}

import io.millstream.hadoop.reading.{FileRanges, ListedFileSystem, NativeScan, ReadCounter, RequestCounts}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.io.Text

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.datasources.millstream.reading.scan.{CopiedRows, RowPredicates}

/**
 * The lines of a task's compressed files, which native code decodes and reads ahead, for Spark's line parsers. Files
 * are requested in order; some may be skipped.
 *
 * @param conf finds their file system, unless they are local
 * @param verifies whether they are compared with the checksums next to them
 * @param ignoresDamage whether the query ignores damaged files: the failure then comes after all undamaged lines
 */
private[millstream] final class DecodedLines(
    ranges: FileRanges,
    conf: Configuration,
    verifies: Boolean,
    ignoresDamage: Boolean,
    maxReaders: Int,
    context: TaskContext)
    extends AutoCloseable {

  private val count = {
    val range = ranges.cursor()
    Iterator.continually(range.next()).takeWhile(identity).size
  }
  private val counter =
    if (ranges.isLocal) ReadCounter.local() else ReadCounter.of(new Path(s"${ranges.fileSystem}/").getFileSystem(conf))
  private var scan: NativeScan = _
  private var copied: CopiedRows = _

  /** The index of the range with which the scan started. */
  private var first = 0

  /**
   * The scan's next result, which no reader has requested yet: a batch of rows, or the reason why a file cannot be
   * read. Spark attributes a failure to the file whose lines it requests, and the end of a file is found with the first
   * batch of the next one.
   */
  private var hasBatch = false
  private var failure = Option.empty[IOException]

  /** The range of the batch or the failure. */
  private var range = -1
  private var bytesRead = 0L
  private var waited = 0L
  private var requested = RequestCounts.NONE

  /**
   * The lines of a file. The same text object is returned for every line.
   *
   * @param file its index among the ranges
   * @param separator None for any of LF, CR and CRLF; the same for all files
   */
  def of(file: Int, separator: Option[Array[Byte]]): Iterator[Text] = new Iterator[Text] {
    private val line = new Text
    private var row = 0L
    private var rows = 0L
    private var isOver = false

    override def hasNext: Boolean = row < rows || !isOver && fetch()

    override def next(): Text = {
      if (!hasNext) throw new NoSuchElementException("no more lines")
      copied.copy(row, line)
      row += 1
      line
    }

    private def fetch(): Boolean = {
      rows = 0
      if (!isAhead && file >= first) advance(file, separator)
      // Batches of skipped files.
      while (isAhead && range < file) advance(file, separator)
      if (range == file) failure.foreach { e =>
        failure = None
        throw e
      }
      if (hasBatch && range == file) {
        hasBatch = false
        row = 0
        rows = scan.rows
        copied.begin(rows)
      }
      isOver = rows == 0
      !isOver
    }
  }

  private def isAhead: Boolean = hasBatch || failure.isDefined

  private def advance(file: Int, separator: Option[Array[Byte]]): Unit = {
    failure = None
    if (scan == null && file < count) start(file, separator)
    try {
      hasBatch = scan != null && counter.fetching(() => scan.next())
      while (hasBatch && scan.rows == 0) {
        context.killTaskIfInterrupted()
        hasBatch = counter.fetching(() => scan.next())
      }
    } catch {
      case e: IOException =>
        if (e.isInstanceOf[InterruptedIOException]) context.killTaskIfInterrupted()
        range = first + scan.range
        hasBatch = false
        failure = Some(e match {
          // Native errors for a local file are less specific than Hadoop's.
          case _: FileNotFoundException if ranges.isLocal =>
            new FileNotFoundException(s"File ${ranges.at(range).path} does not exist")
          case other => other
        })
        stop()
        // Readers of the following files begin another scan, if they ignore this failure.
        first = range + 1
    }
    if (scan != null) {
      counter.count(scan.bytesRead - bytesRead)
      bytesRead = scan.bytesRead
    }
    if (hasBatch) range = first + scan.range
    else if (failure.isEmpty) stopAtEnd()
  }

  private def start(file: Int, separator: Option[Array[Byte]]): Unit = {
    first = file
    val left = ranges.slice(file, count)
    val flags = NativeScan.BY_RANGE | (if (verifies) NativeScan.VERIFY
                                       else 0) | (if (ignoresDamage) NativeScan.PASS_OVER_DAMAGE else 0)
    scan = new NativeScan(
      left,
      ListedFileSystem.filesCountedByCaller(left, conf),
      separator.getOrElse(Array.emptyByteArray),
      RowPredicates.Always,
      NativeScan.WHOLE_ROWS,
      flags,
      maxReaders,
      () => context.isInterrupted())
    copied = new CopiedRows(scan)
    bytesRead = 0
  }

  private def stopAtEnd(): Unit = {
    stop()
    first = count
  }

  private def stop(): Unit = if (scan != null) {
    waited += scan.waitedNanos
    scan.close()
    requested = requested.plus(scan.requests)
    scan = null
  }

  /** Nanoseconds for which the reader of lines waited for the reading threads. */
  def waitedNanos: Long = waited

  /** The requests to the files' file system, complete only after [[close]]. */
  def requests: RequestCounts = requested

  override def close(): Unit = stop()
}
