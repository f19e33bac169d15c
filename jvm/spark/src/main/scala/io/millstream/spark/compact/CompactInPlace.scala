package io.millstream.spark.compact

import java.io.IOException
import java.nio.file.{Files, Path}
import java.util.concurrent.{Callable, Executors}

import scala.jdk.CollectionConverters._

import io.millstream.hadoop.compact.NativeCompaction
import io.millstream.spark.console.Failures

/** Finds obstacles to a compaction in place that can be detected in advance. */
private[spark] object CompactInPlace {

  /** Number of directories examined at once. */
  private val Threads = 16

  /** Outputs, by number, that could not replace their inputs below `root`, and why. */
  def obstacles(root: Path, outputs: Seq[Output]): Map[Int, String] = {
    val threads = Executors.newFixedThreadPool(Threads)
    try {
      val looks = outputs.groupBy(_.directory).toSeq.map { case (directory, here) =>
        new Callable[Seq[(Int, String)]] {
          override def call(): Seq[(Int, String)] = in(root, root.resolve(directory), here)
        }
      }
      threads.invokeAll(looks.asJava).asScala.flatMap(_.get).toMap
    } finally {
      threads.shutdownNow()
    }
  }

  private def in(root: Path, directory: Path, outputs: Seq[Output]): Seq[(Int, String)] =
    try {
      ofDirectory(root, directory).fold(ofFiles(directory, outputs))(reason => outputs.map(_.id -> reason))
    } catch {
      case e: IOException => outputs.map(_.id -> Failures.reason(e))
    }

  private def ofDirectory(root: Path, directory: Path): Option[String] =
    if (directory.toRealPath() != directory) Some(s"$directory is reached through a symbolic link")
    else if (!Files.isWritable(directory)) Some("Permission denied")
    else if (device(directory) != device(root)) Some(s"on another file system than $root")
    else None

  private def device(directory: Path): Any = Files.getAttribute(directory, "unix:dev")

  private def ofFiles(directory: Path, outputs: Seq[Output]): Seq[(Int, String)] = {
    val obstacles = NativeCompaction.obstacles(directory.toString)
    for {
      output <- outputs
      reason <-
        if (obstacles.isEmpty) None else output.members.map(member => obstacles.get(member.name)).find(_ != null)
    } yield output.id -> reason
  }
}
