package io.millstream.spark

import java.io.IOException
import java.net.URI
import java.nio.file.{Files, Path, Paths}
import java.util.UUID

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.millstream.hadoop.{MillstreamLocalFileSystem, NativeCompaction}
import org.apache.hadoop.fs.FileSystem
import org.slf4j.LoggerFactory

import org.apache.spark.SparkException
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.SparkSession

/** Nothing was done, for a reason that the user is told. */
class CompactFailure(message: String) extends RuntimeException(message)

/**
 * What is to be compacted, and how.
 *
 * @param destination where the outputs go; none if they replace their inputs
 * @param format `same`, `text` or `parquet`
 * @param codec of the outputs; that of the inputs if it is not given
 * @param header whether the first line of a file is a header
 * @param copyLeft whether files that cannot be merged go to the destination as they are
 */
final case class CompactOptions(
    source: String,
    destination: Option[String],
    targetBytes: Long,
    format: String,
    codec: Option[Codec],
    header: Boolean,
    copyLeft: Boolean,
    dryRun: Boolean) {

  def inPlace: Boolean = destination.isEmpty
}

object CompactOptions {
  val Same = "same"
  val Text = "text"
  val Parquet = "parquet"

  /** From names and values as the command line and Python give them. */
  def of(settings: Map[String, String]): CompactOptions = {
    val known = Set("source", "destination", "in-place", "target-size", "format", "codec", "header", "copy-left", "dry-run")
    settings.keys.find(!known(_)).foreach(key => throw new CompactFailure(s"unknown option $key"))
    def isTrue(key: String) = settings.get(key).contains("true")
    val source = settings.getOrElse("source", throw new CompactFailure("no directory was given"))
    val destination = settings.get("destination")
    if (destination.isEmpty != isTrue("in-place")) {
      throw new CompactFailure("give either a destination or ask for the files to be replaced in place")
    }
    if (destination.isEmpty && isTrue("copy-left")) {
      throw new CompactFailure("in place, what cannot be merged stays where it is: there is nothing to copy")
    }
    val size = settings.getOrElse("target-size", "128m")
    val bytes = try JavaUtils.byteStringAsBytes(size) catch {
      case _: IllegalArgumentException => throw new CompactFailure(s"$size: not a size; write for instance 128M")
    }
    if (bytes <= 0) throw new CompactFailure(s"$size: the target size must be positive")
    val format = settings.getOrElse("format", Same)
    if (!Set(Same, Text, Parquet)(format)) throw new CompactFailure(s"$format: not a format; there are same, text and parquet")
    val (codecs, of) = if (format == Parquet) (Codec.OfParquet, " of Parquet") else (Codec.OfLines, "")
    val codec = settings.get("codec").map(name => Codec.named(name, codecs).getOrElse(
      throw new CompactFailure(s"$name: not a codec$of; there are ${codecs.mkString(", ")}")))
    if (format == Parquet && isTrue("header")) throw new CompactFailure("a header is for files of lines, not for Parquet")
    CompactOptions(source, destination, bytes, format, codec, isTrue("header"), isTrue("copy-left"), isTrue("dry-run"))
  }
}

/**
 * Merges small files into few, directory by directory.
 *
 * {{{
 * listing (native) ─► CompactPlanner: outputs ─► CompactTasks: Spark makes them in a hidden staging directory
 *                                                    └─► NativeCompaction: commit, then they take their places
 * }}}
 */
object Compact {
  private val Log = LoggerFactory.getLogger("io.millstream.spark.Compact")
  private val StagingName = ".millstream-compact"
  private val MaxName = 255
  /** Threads with which outputs take the place of inputs. */
  private val ApplyThreads = 16

  /** For callers in other languages: names and values in, a JSON object out. */
  def runJson(spark: SparkSession, settings: java.util.Map[String, String]): String =
    run(spark, CompactOptions.of(settings.asScala.toMap)).json

  /** @param tell is told beforehand what a new destination will not have, or will have as it is */
  def run(spark: SparkSession, options: CompactOptions, tell: String => Unit = Log.warn): CompactSummary = {
    val start = System.nanoTime()
    val source = realDirectory(options.source)
    val target = options.destination.fold(source)(destination(_, source, options.dryRun))
    val summary = try {
      if (options.dryRun) look(spark, options, source, target)
      else try compact(spark, options, source, target, tell) finally forgetListings(spark, target)
    } catch {
      case e: IOException => throw new CompactFailure(s"${e.getMessage}; run the same command again when the cause is gone")
      case e: SparkException =>
        throw new CompactFailure(s"Spark could not run the job, and $target is as it was: ${CompactTasks.oneLine(e)}")
    }
    val timed = summary.copy(milliseconds = (System.nanoTime() - start) / 1000000)
    Log.info(s"Millstream compacted $source: ${timed.text}")
    timed
  }

  /** What Spark and Hadoop know of the tree is no longer true. */
  private def forgetListings(spark: SparkSession, target: Path): Unit = {
    FileSystem.get(URI.create("file:///"), spark.sparkContext.hadoopConfiguration) match {
      case fileSystem: MillstreamLocalFileSystem => fileSystem.treeChanged()
      case _ =>
    }
    spark.catalog.refreshByPath(s"file://$target")
  }

  private def planner(spark: SparkSession, options: CompactOptions, source: Path): CompactPlanner =
    new CompactPlanner(options, source, spark.sparkContext.hadoopConfiguration, UUID.randomUUID().toString.take(8))

  /** What would be done, as far as names, sizes, beginnings and schemas say. */
  private def look(spark: SparkSession, options: CompactOptions, source: Path, target: Path): CompactSummary = {
    val tasks = new CompactTasks(spark, Site(source.toString, "", options.header, options.codec), s"Millstream compact --dry-run $source")
    val (plan, made) = withCopies(options, planner(spark, options, source).plan(), tasks.check)
    val obstacles = if (options.inPlace) CompactInPlace.obstacles(source, plan.outputs) else Map.empty[Int, String]
    val wouldBeMade = made.map(one => obstacles.get(one.output).fold(one)(reason => Made(one.output, Left(reason), 0)))
    result(options, source, target, plan, wouldBeMade, None, 0)
  }

  private def compact(spark: SparkSession, options: CompactOptions, source: Path, target: Path, tell: String => Unit): CompactSummary = {
    val recovered = recover(stagingPlaces(options, target), target)
    if (recovered.nonEmpty && !options.inPlace) {
      val plan = CompactPlan(0, 0, 0, Vector.empty, 0, recovered.flatMap(_.left))
      return result(options, source, target, plan, Nil, None, recovered.map(_.outputs).sum)
    }
    val place = usablePlace(stagingPlaces(options, target))
    val staging = opening(place, target)
    var finished = false
    try {
      if (!options.inPlace && holdsOthers(target)) throw notEmpty(target)
      staging.clear()
      val planned = planner(spark, options, source).plan()
      if (!options.inPlace) foretell(planned, source, target).foreach(tell)
      val out = place.resolve(NativeCompaction.OUT)
      val site = Site(source.toString, out.toString, options.header, options.codec)
      val tasks = new CompactTasks(spark, site, s"Millstream compact $source")
      val (plan, made) = withCopies(options, planned, tasks.make)
      if (!options.inPlace) CompactLeft.write(out, plan.left ++ failures(source, plan, made))
      val applied = put(staging, options, target, plan, made)
      staging.remove()
      finished = true
      result(options, source, target, plan, made, Some(applied), recovered.map(_.outputs).sum)
    } finally {
      if (!finished) abandon(staging)
    }
  }

  /** What is known of a new destination before anything is read. */
  private def foretell(plan: CompactPlan, source: Path, target: Path): Seq[String] =
    CompactSummary.byReason(s"will be missing from $target, unless it is made with --copy-left (copy_left=True)", plan.left) ++
      CompactSummary.byReason("will be copied as they are", copied(source, plan.outputs))

  /**
   * What became of a plan's outputs. Where copies are wanted, the inputs of those that could not be made become outputs of the plan, each
   * by itself and as it is.
   */
  private def withCopies(options: CompactOptions, plan: CompactPlan, make: IndexedSeq[Output] => Seq[Made]): (CompactPlan, Seq[Made]) = {
    val made = make(plan.outputs)
    val (failed, others) = made.partition(one => options.copyLeft && one.staged.isLeft && !plan.outputs(one.output).isCopy)
    val copies = failed.flatMap(one => one.staged.left.toSeq.flatMap(plan.outputs(one.output).copies(_)))
    val numbered = copies.zipWithIndex.map { case (copy, i) => copy.copy(id = plan.outputs.length + i) }
    val all = plan.copy(outputs = plan.outputs ++ numbered)
    (all, others ++ (if (numbered.isEmpty) Nil else make(numbered.toIndexedSeq)))
  }

  /** What has not been committed is removed; the rest is for the next one. */
  private def abandon(staging: NativeCompaction): Unit =
    try {
      if (staging.isCommitted) staging.close() else staging.remove()
    } catch {
      case e: IOException => Log.warn(s"A staging directory stays for the next compaction to remove: ${e.getMessage}")
    }

  private def put(
      staging: NativeCompaction,
      options: CompactOptions,
      target: Path,
      plan: CompactPlan,
      made: Seq[Made]): NativeCompaction.Applied = {
    val journal = new NativeCompaction.Journal(options.inPlace, target.toString)
    val staged = made.flatMap(one => one.staged.toOption.map(plan.outputs(one.output) -> _))
      .sortBy { case (output, _) => (output.directory, output.id) }
    staged.foreach { case (output, name) => journal.add(name, output.directory, output.name) }
    staging.commit(journal)
    finishing(staging, target)
  }

  private def finishing(staging: NativeCompaction, target: Path): NativeCompaction.Applied =
    try {
      staging.apply(ApplyThreads)
    } catch {
      case e: IOException => throw new CompactFailure(s"${e.getMessage}; no line is lost, but $target is between old and new: run the " +
        "same command again when the cause is gone, and it will be finished")
    }

  private def result(
      options: CompactOptions,
      source: Path,
      target: Path,
      plan: CompactPlan,
      made: Seq[Made],
      applied: Option[NativeCompaction.Applied],
      recovered: Long): CompactSummary = {
    val ready = made.filter(_.staged.isRight).map(one => plan.outputs(one.output))
    val notApplied = applied.map(_.left.asScala.toSeq).getOrElse(Nil)
    CompactSummary(
      source = source.toString,
      destination = target.toString,
      directories = plan.directories,
      files = plan.files,
      bytes = plan.bytes,
      outputs = applied.fold(ready.length.toLong)(_.outputs),
      outputBytes = made.iterator.map(_.bytes).sum,
      merged = ready.iterator.map(_.files.toLong).sum - CompactSummary.filesOf(notApplied),
      kept = plan.keptFiles,
      recovered = recovered,
      dryRun = options.dryRun,
      milliseconds = 0,
      copied = copied(source, ready),
      left = plan.left ++ failures(source, plan, made) ++ notApplied)
  }

  /** Inputs of which nothing became, and why. */
  private def failures(source: Path, plan: CompactPlan, made: Seq[Made]): Seq[NativeCompaction.Left] =
    made.collect { case Made(output, Left(message), _) =>
      val of = plan.outputs(output)
      new NativeCompaction.Left(of.path(source), of.files, message)
    }

  /** Files that are copied because they could not be merged, and why they could not. */
  private def copied(source: Path, outputs: Seq[Output]): Seq[NativeCompaction.Left] =
    outputs.filter(_.isUnmerged).groupBy(output => (output.path(source), output.unmerged.get)).toSeq.sortBy(_._1).map {
      case ((directory, reason), files) => new NativeCompaction.Left(directory, files.length, reason)
    }

  private def local(path: String): Path =
    if (path.startsWith("file:")) {
      Paths.get(new org.apache.hadoop.fs.Path(path).toUri.getPath)
    } else if (path.matches("[A-Za-z][A-Za-z0-9+.-]*://.*")) {
      throw new CompactFailure(s"$path: only local and mounted directories are compacted")
    } else {
      Paths.get(path).toAbsolutePath
    }

  private def realDirectory(path: String): Path = {
    val given = local(path)
    if (!Files.exists(given)) throw new CompactFailure(s"$given: there is no such directory")
    if (!Files.isDirectory(given)) throw new CompactFailure(s"$given: not a directory")
    given.toRealPath()
  }

  private def destination(path: String, source: Path, dryRun: Boolean): Path = {
    val given = local(path).normalize
    // As much of it as there is tells where it is.
    val existing = Iterator.iterate(given)(_.getParent).dropWhile(p => p != null && !Files.exists(p)).next()
    val real = existing.toRealPath().resolve(existing.relativize(given)).normalize
    if (real == source) throw new CompactFailure(s"$given: is the source itself; use --in-place (in_place=True) to replace its files")
    if (real.startsWith(source)) throw new CompactFailure(s"$given: is inside the source $source; choose a destination outside of it")
    if (Files.exists(real)) {
      if (!Files.isDirectory(real)) throw new CompactFailure(s"$given: exists and is not a directory")
      val listed = Files.newDirectoryStream(real)
      val isEmpty = try !listed.iterator.hasNext finally listed.close()
      if (!isEmpty && !Files.exists(real.resolve(StagingName))) throw notEmpty(real)
    } else if (dryRun) {
      if (!Files.isWritable(existing)) throw new CompactFailure(s"$given: cannot be made: $existing may not be written to")
    } else {
      try Files.createDirectories(real) catch {
        case e: IOException => throw new CompactFailure(s"$given: cannot be made: ${reason(e)}")
      }
    }
    real
  }

  private def holdsOthers(target: Path): Boolean = {
    val listed = Files.newDirectoryStream(target)
    try listed.asScala.exists(_.getFileName.toString != StagingName) finally listed.close()
  }

  private def notEmpty(target: Path) =
    new CompactFailure(s"$target: exists and is not empty; choose another destination, or remove what is in it")

  /** Where a staging directory may be: beside a tree whose directories it is to replace, or in it. */
  private def stagingPlaces(options: CompactOptions, target: Path): Seq[Path] = {
    val inside = target.resolve(StagingName)
    val beside = Option(target.getParent).filter(_ => options.inPlace).map(_.resolve(s".${target.getFileName}$StagingName"))
    beside.filter(_.getFileName.toString.getBytes.length <= MaxName).toSeq :+ inside
  }

  private def usablePlace(places: Seq[Path]): Path = places match {
    case Seq(beside, inside) =>
      val (parent, root) = (beside.getParent, inside.getParent)
      if (Files.isWritable(parent) && Files.getFileStore(parent) == Files.getFileStore(root)) beside else inside
    case _ => places.last
  }

  private def opening(place: Path, target: Path): NativeCompaction =
    try {
      new NativeCompaction(place.toString)
    } catch {
      case e: IOException => throw new CompactFailure(s"$target: cannot be worked in: ${e.getMessage}")
    }

  /** What was finished of an earlier compaction, and what it had left. */
  private final case class Recovered(outputs: Long, left: Seq[NativeCompaction.Left])

  /** Finishes what an earlier compaction committed. */
  private def recover(places: Seq[Path], target: Path): Seq[Recovered] =
    places.filter(Files.isDirectory(_)).flatMap { place =>
      val staging = opening(place, target)
      try {
        val done = Option.when(staging.isCommitted) {
          val left = CompactLeft.read(place.resolve(NativeCompaction.OUT))
          val applied = finishing(staging, target)
          Recovered(applied.outputs, left ++ applied.left.asScala)
        }
        staging.remove()
        done
      } finally {
        staging.close()
      }
    }

  private[spark] def reason(e: IOException): String = s"${e.getClass.getSimpleName.stripSuffix("Exception")}: ${e.getMessage}"

  private val Usage = "usage: Compact [--json] key=value..."

  /** Of `millstream compact`, which parses the command line: settings as `key=value`. */
  def main(arguments: Array[String]): Unit = {
    val (flags, settings) = arguments.partition(_ == "--json")
    val pairs = settings.map(_.split("=", 2)).collect { case Array(key, value) => key -> value }.toMap
    if (pairs.size != settings.length) throw new IllegalArgumentException(Usage)
    ConsoleLog.withoutTraces()
    val code = try {
      val options = CompactOptions.of(pairs)
      val spark = SparkSession.builder().appName(s"millstream compact ${options.source}").getOrCreate()
      try {
        val tell = if (flags.nonEmpty) (_: String) => () else say _
        report(run(spark, options, tell), flags.nonEmpty)
      } finally spark.stop()
    } catch {
      case e: CompactFailure =>
        say(e.getMessage)
        1
      case NonFatal(e) =>
        Log.info("The compaction failed", e)
        say(s"${CompactTasks.oneLine(e)}; -v shows Spark's log")
        1
    }
    System.out.flush()
    if (code != 0) System.exit(code)
  }

  private def say(message: String): Unit = System.err.println(s"millstream: $message")

  private def report(summary: CompactSummary, json: Boolean): Int = {
    if (json) {
      println(summary.json)
    } else {
      println(summary.text)
      if (summary.dryRun) println(CompactSummary.NotLookedAt)
      summary.remarks.foreach(say)
    }
    if (summary.isComplete) 0 else 1
  }
}
