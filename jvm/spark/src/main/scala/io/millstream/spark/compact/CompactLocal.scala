package io.millstream.spark.compact

import java.io.{FileOutputStream, IOException}
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path, Paths, StandardOpenOption}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.millstream.hadoop.compact.NativeCompaction
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.hadoop.io.compress.CompressionCodecFactory

import org.apache.spark.{TaskContext, TaskKilledException}
import org.apache.spark.sql.SparkSession

/**
 * Writes outputs to a staging directory on a local or mounted file system, each with its manifest. They are staged in
 * `out` under hidden names, because patterns match that directory.
 */
private[spark] final class LocalTasks(
    spark: SparkSession,
    site: Site,
    out: String,
    conf: Configuration,
    description: String)
    extends CompactTasks(spark, site, conf, description) {
  import CompactTasks._
  import LocalTasks._

  def make(outputs: IndexedSeq[Output]): Seq[Made[String]] = {
    val out = this.out
    inJobs(outputs, makeOne(out, _, _, _, _, _), rewriteOne)
  }

  private def rewriteOne(output: Output): Made[String] = {
    val staged = s".${output.id}.0"
    val target = s"$out/$staged"
    val folder = s"$out/${output.id}.d"
    try {
      NativeCompaction.stamp(output.inputs, target)
      val rewriting = rewritingOf(output)
      import rewriting.{codec, toParquet}
      val rows = rewriting.rows
      val frameWriter = codec.foldLeft(rewriting.frame.coalesce(1).write.option("maxRecordsPerFile", 0))((to, codec) =>
        to.option("compression", codec))
      frameWriter.format(if (toParquet) "parquet" else "text").save(uri(folder))
      val part = single(folder)
      val found = if (toParquet) rowsOf(new HadoopPath(part.toUri)) else reader(spark).text(uri(part.toString)).count()
      if (found != rows) throw new IOException(s"$target: wrote $found rows, but read $rows")
      sync(part)
      Files.move(part, Paths.get(target))
      val size = Files.size(Paths.get(target))
      counters.add(output, size)
      Made(output.id, Right(staged), size)
    } catch {
      case NonFatal(e) => failed(output, e)
    }
  }
}

private[spark] object LocalTasks {
  import CompactTasks._

  def makeOne(
      out: String,
      output: Output,
      site: Site,
      maxReaders: Int,
      conf: Configuration,
      counters: Counters): Made[String] = {
    // Each attempt uses a separate name; only the attempt whose result arrives counts.
    val context = TaskContext.get()
    if (context.isInterrupted()) throw new TaskKilledException("the compaction was cancelled")
    val staged = s".${output.id}.${context.taskAttemptId()}"
    val target = s"$out/$staged"
    try {
      val length = output.making match {
        case Recode(codec) => recoded(output, site, codec, conf, target)
        case _ => NativeCompaction.concatenate(
            output.inputs,
            site.rule(output),
            target,
            maxReaders,
            () => context.isInterrupted())
      }
      counters.add(output, length)
      Made(output.id, Right(staged), length)
    } catch {
      case e @ (_: IOException | _: RuntimeException | _: LinkageError) => failed(output, e)
    }
  }

  private def recoded(output: Output, site: Site, codec: Option[String], conf: Configuration, target: String): Long = {
    NativeCompaction.stamp(output.inputs, target)
    val writing = codec.map(Codec.ofHadoop(_, new CompressionCodecFactory(conf)))
    val sum = recode(output, site.rule(output), writing, conf, new FileOutputStream(target))
    val file = Paths.get(target)
    if (checksum(new HadoopPath(file.toUri), writing, conf) != sum) {
      throw new IOException(s"$target: the file reads back differently from the data written")
    }
    sync(file)
    Files.size(file)
  }

  /** On disk when this returns. */
  def sync(file: Path): Unit = {
    val channel = FileChannel.open(file, StandardOpenOption.WRITE)
    try channel.force(true)
    finally channel.close()
  }

  private def single(folder: String): Path = {
    val listed = Files.newDirectoryStream(Paths.get(folder), "part-*")
    try listed.asScala.toSeq match {
        case Seq(one) => one
        case others => throw new IOException(s"$folder: Spark wrote ${others.length} files, not one")
      }
    finally listed.close()
  }

  /** A URI for Hadoop's paths, which are not escaped. */
  private def uri(path: String): String = s"file://$path"
}
