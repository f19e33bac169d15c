package io.millstream.spark.sync

import java.util.ArrayDeque
import java.util.concurrent.{Executors, LinkedBlockingQueue}
import java.util.concurrent.TimeUnit.SECONDS

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.TaskContext

/**
 * The entries below some directories, listed by several threads, depth first. After a limit, directories that are not
 * listed yet become entries of the kind [[Kind.Pending]], for other tasks.
 *
 * @param directories the directories to list; at least one of them is
 * @param maxEntries the number of entries after which the rest is left to other tasks
 * @param descends whether to list a directory that it finds
 */
private[sync] final class TreeListing(
    tree: Tree,
    directories: Seq[String],
    threads: Int,
    maxEntries: Long,
    descends: String => Boolean) extends Iterator[Entry] {
  import TreeListing._

  private val pool = Executors.newFixedThreadPool(threads, InFlight.daemon)

  /** Batches of entries; an empty one means that a thread has ended. */
  private val batches = new LinkedBlockingQueue[Either[Throwable, Seq[Entry]]](threads * 4)
  private val given = directories.iterator
  private val found = new ArrayDeque[String]
  private val deadline = System.nanoTime() + SECONDS.toNanos(MaxSeconds)
  private var listing, listed = 0L
  private var running = threads
  private var current: Iterator[Entry] = Iterator.empty

  Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => pool.shutdownNow()))
  for (_ <- 0 until threads) pool.execute(() => work())

  override def hasNext: Boolean = {
    while (!current.hasNext && running > 0) {
      batches.take() match {
        case Left(error) => throw error
        case Right(batch) if batch.isEmpty => running -= 1
        case Right(batch) => current = batch.iterator
      }
    }
    if (running == 0) pool.shutdown()
    current.hasNext
  }

  override def next(): Entry = if (hasNext) current.next() else throw new NoSuchElementException

  private def work(): Unit =
    try {
      Iterator.continually(take()).takeWhile(_.nonEmpty).flatten.foreach {
        case Left(directory) => batches.put(Right(Seq(Entry(directory, Kind.Pending))))
        case Right(directory) => list(directory)
      }
      batches.put(Right(Nil))
    } catch {
      case _: InterruptedException => // The task has ended.
      case e: Throwable => batches.put(Left(e))
    }

  /** The next directory, to be listed or (left) passed on to other tasks; None at the end. */
  private def take(): Option[Either[String, String]] = synchronized {
    while (found.isEmpty && listing > 0 && !given.hasNext) wait()
    val next = if (!found.isEmpty) Some(found.pop()) else given.nextOption()
    val isOver = listed >= maxEntries || System.nanoTime() - deadline > 0
    next.map { directory =>
      if (isOver && listed > 0) Left(directory)
      else {
        listing += 1
        Right(directory)
      }
    }
  }

  private def list(directory: String): Unit = {
    var batch = new ArrayBuffer[Entry]
    def flush(): Unit = {
      batches.put(Right(batch.toSeq))
      batch = new ArrayBuffer[Entry]
    }
    try {
      tree.list(directory) { entry =>
        if (TemporaryNames.makerOf(Paths.name(entry.path)).isEmpty) add(entry)
        else batch += entry.copy(kind = if (entry.isDirectory) Kind.WorkingDirectory else Kind.Temporary)
        if (batch.length >= BatchEntries) flush()
      }
    } catch {
      case e if Tree.isOfEntry(e) => batch += Entry(directory, Kind.Failed, message = Some(Tree.oneLine(e)))
    } finally {
      ended()
    }
    if (batch.nonEmpty) flush()

    def add(entry: Entry): Unit = {
      batch += entry
      TreeListing.this.synchronized {
        listed += 1
        if (entry.isDirectory && descends(entry.path)) {
          found.push(entry.path)
          TreeListing.this.notify()
        }
      }
    }
  }

  private def ended(): Unit = synchronized {
    listing -= 1
    if (listing == 0) notifyAll()
  }
}

private object TreeListing {
  private val BatchEntries = 1000
  private val MaxSeconds = 20L
}
