package io.millstream.spark.sync

import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.{AtomicBoolean, AtomicLong}

import org.apache.spark.{Partitioner, SparkContext, Success, TaskContext}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.util.SerializableConfiguration

/**
 * Everything that tasks need to open the two sides.
 *
 * @param source absolute URL
 * @param destination absolute URL
 * @param names the names of temporary files
 * @param threads number of concurrent calls of a task
 * @param isMarked whether the driver has created a directory with the name of the working directory in the destination
 * @param filter which entries take part; None for all
 * @param files the only paths that take part; None for all
 * @param extras the optional features of local trees in use
 */
private[sync] final case class Site(
    source: String,
    destination: String,
    names: TemporaryNames,
    threads: Int,
    isMarked: Boolean,
    filter: Option[FilterRules],
    files: Option[Broadcast[FileList]],
    extras: Extras,
    conf: Broadcast[SerializableConfiguration]) {

  /** The driver's trees, which tasks do not close. */
  @transient private val opened = new ConcurrentLinkedQueue[Tree]

  /** The source without excluded entries. */
  def openSource(): Tree = openFilter().foldLeft(open(source, extras))(new FilteredSource(_, _))

  /**
   * The destination, whose protected entries are not deleted.
   *
   * @param bytesPerSecond rate limit of copies between local trees
   * @throws java.io.IOException in a task on a machine whose destination is not the driver's
   */
  def openDestination(bytesPerSecond: Option[Long] = None): Tree = {
    // Attributes of a file with several hard links are not set through one of them.
    val tree = open(destination, extras.copy(hardLinks = true, oneFileSystem = false, bytesPerSecond = bytesPerSecond))
    // A machine without the mount may have an empty directory there, to which copies would be written.
    if (isMarked && destination.startsWith("file:") && TaskContext.get() != null && tree.status(
        names.working).isEmpty) {
      val host = java.net.InetAddress.getLocalHost.getHostName
      throw new java.io.IOException(
        s"$destination on $host is not the directory that the driver sees under this name; mount it on every machine")
    }
    openFilter().foldLeft(tree)(new FilteredDestination(_, _))
  }

  /** The filter, which lives as long as the task or the driver. */
  def openFilter(): Option[Filter] = filter.map { rules =>
    val opened = rules.open(files.map(_.value))
    Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => opened.close()))
    opened
  }

  /** Whether a path is listed, or leads to one that is. */
  def isKnown(path: String): Boolean = files.exists(_.value.knows(path))

  def open(side: String, extras: Extras = Extras()): Tree = {
    val attempt = Option(TaskContext.get()).fold(TemporaryNames.OfDriver)(_.taskAttemptId())
    val count = new AtomicLong
    val tree = Tree.open(side, conf.value.value, () => names.name(attempt, count.getAndIncrement()), extras)
    if (TaskContext.get() == null) Option(opened).foreach(_.add(tree))
    tree
  }

  /** Closes the driver's trees and filter. */
  def close(): Unit = {
    opened.forEach(_.close())
    files.foreach(_.destroy())
    conf.destroy()
  }
}

private[sync] object Site {

  /** Calls to a store or a mount that may answer slowly. Threads that find no work on a fast one cost little. */
  private val Threads = 32

  def of(
      context: SparkContext,
      source: String,
      destination: String,
      threads: Option[Int],
      isMarked: Boolean,
      filter: Option[FilterRules],
      files: Option[FileList],
      extras: Extras): Site = {
    val conf = context.broadcast(new SerializableConfiguration(context.hadoopConfiguration))
    Site(
      source,
      destination,
      TemporaryNames.fresh(),
      threads.getOrElse(Threads),
      isMarked,
      filter,
      files.map(context.broadcast(_)),
      extras,
      conf)
  }
}

/** Records whether task attempts have failed or were killed, and so may have left temporary files. */
private[sync] final class LostAttempts extends SparkListener {
  private val any = new AtomicBoolean

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = if (end.reason != Success) any.set(true)

  def exist: Boolean = any.get
}

/** Distributes steps so that tasks get about the same number of bytes and files. */
private[sync] object Packing {

  /** The cost of a file in addition to its bytes. */
  val FileBytes: Long = 1 << 20
  private val MinTaskBytes = 32L << 20
  private val MaxTaskBytes = 4L << 30
  private val TasksPerCore = 4

  private def cost(step: Step): Long = step.source.fold(0L)(_.size) + FileBytes

  def packed(steps: RDD[Step], count: Long, bytes: Long): RDD[Step] = {
    val all = bytes + count * FileBytes
    val share = math.min(
      MaxTaskBytes,
      math.max(MinTaskBytes, all / (steps.sparkContext.defaultParallelism.max(1) * TasksPerCore)))
    val tasks = (all / share + 1).toInt
    if (tasks == 1) steps.coalesce(1)
    else {
      val sums = steps.mapPartitionsWithIndex((index, some) => Iterator(index -> some.map(cost).sum)).collect().sortBy(
        _._1).map(_._2)
      val starts = sums.scanLeft(0L)(_ + _)
      steps.mapPartitionsWithIndex { (index, some) =>
        var at = starts(index)
        some.map { step =>
          // A task may begin in the middle of a large file, whose bytes count for those before it.
          val task = math.min(tasks - 1, at / share).toInt
          at += cost(step)
          task -> step
        }
      }.partitionBy(new ByNumber(tasks)).values
    }
  }

  private final class ByNumber(override val numPartitions: Int) extends Partitioner {
    override def getPartition(key: Any): Int = key.asInstanceOf[Int]
  }
}
