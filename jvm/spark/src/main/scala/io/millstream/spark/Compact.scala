package io.millstream.spark

import java.io.IOException
import java.net.URI
import java.nio.file.{Files, Path, Paths}
import java.util.UUID

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
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
 */
final case class CompactOptions(
    source: String,
    destination: Option[String],
    targetBytes: Long,
    format: String,
    codec: Option[Codec],
    header: Boolean,
    dryRun: Boolean) {

  def inPlace: Boolean = destination.isEmpty
}

object CompactOptions {
  val Same = "same"
  val Text = "text"
  val Parquet = "parquet"

  /** From names and values as the command line and Python give them. */
  def of(settings: Map[String, String]): CompactOptions = {
    val known = Set("source", "destination", "in-place", "target-size", "format", "codec", "header", "dry-run")
    settings.keys.find(!known(_)).foreach(key => throw new CompactFailure(s"unknown option $key"))
    def isTrue(key: String) = settings.get(key).contains("true")
    val source = settings.getOrElse("source", throw new CompactFailure("no directory was given"))
    val destination = settings.get("destination")
    if (destination.isEmpty != isTrue("in-place")) {
      throw new CompactFailure("give either a destination or ask for the files to be replaced in place")
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
    CompactOptions(source, destination, bytes, format, codec, isTrue("header"), isTrue("dry-run"))
  }
}

/** What a compaction has done. */
final case class CompactSummary(
    source: String,
    destination: String,
    directories: Long,
    files: Long,
    bytes: Long,
    outputs: Long,
    outputBytes: Long,
    merged: Long,
    kept: Long,
    recovered: Long,
    dryRun: Boolean,
    milliseconds: Long,
    left: Seq[NativeCompaction.Left]) {

  def isComplete: Boolean = left.isEmpty

  def json: String = {
    val fields = new java.util.LinkedHashMap[String, Any]
    fields.put("source", source)
    fields.put("destination", destination)
    Seq("directories" -> directories, "files" -> files, "bytes" -> bytes, "outputs" -> outputs, "output_bytes" -> outputBytes,
      "merged" -> merged, "kept" -> kept, "recovered" -> recovered).foreach { case (name, value) => fields.put(name, value) }
    fields.put("dry_run", dryRun)
    fields.put("milliseconds", milliseconds)
    fields.put("left", left.map { group =>
      java.util.Map.of("directory", group.directory, "files", group.files, "reason", group.reason)
    }.asJava)
    new ObjectMapper().writeValueAsString(fields)
  }

  def text: String = {
    val would = if (dryRun) "would become" else "became"
    val again = if (recovered > 0) s"; $recovered outputs of an interrupted compaction were put in their places" else ""
    s"$merged of $files files ($bytes bytes) in $directories directories $would $outputs files ($outputBytes bytes); " +
      f"$kept kept, ${left.map(_.files).sum} left; ${milliseconds / 1000.0}%.1f s$again"
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

  def run(spark: SparkSession, options: CompactOptions): CompactSummary = {
    val start = System.nanoTime()
    val source = realDirectory(options.source)
    val target = options.destination.fold(source)(destination(_, source, options.dryRun))
    val summary = if (options.dryRun) {
      val plan = planner(spark, options, source).plan()
      result(options, source, target, plan, Nil, None, 0)
    } else {
      try {
        compact(spark, options, source, target)
      } catch {
        case e: IOException => throw new CompactFailure(s"${e.getMessage}; run the same command again when the cause is gone")
        case e: SparkException =>
          val cause = Option(e.getMessage).flatMap(_.linesIterator.nextOption()).getOrElse(e)
          throw new CompactFailure(s"Spark could not run the job, and $target is as it was: $cause")
      } finally {
        forgetListings(spark, target)
      }
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

  private def compact(spark: SparkSession, options: CompactOptions, source: Path, target: Path): CompactSummary = {
    val recovered = recover(stagingPlaces(options, target), target, options)
    if (recovered.nonEmpty && !options.inPlace) {
      val plan = CompactPlan(0, 0, 0, Vector.empty, 0, recovered.flatMap(_.left.asScala))
      return result(options, source, target, plan, Nil, None, recovered.map(_.outputs).sum)
    }
    val place = usablePlace(stagingPlaces(options, target))
    val staging = opening(place, target)
    var finished = false
    try {
      if (!options.inPlace && holdsOthers(target)) throw notEmpty(target)
      staging.clear()
      val plan = planner(spark, options, source).plan()
      val site = Site(source.toString, place.resolve(NativeCompaction.OUT).toString, options.header, options.codec)
      val made = new CompactTasks(spark, site, s"Millstream compact $source").make(plan.outputs)
      val applied = put(staging, options, target, plan, made)
      staging.remove()
      finished = true
      result(options, source, target, plan, made, Some(applied), recovered.map(_.outputs).sum)
    } finally {
      if (!finished) abandon(staging)
    }
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
    val failures = made.collect { case Made(output, Left(message), _) =>
      val of = plan.outputs(output)
      val directory = if (of.directory.isEmpty) source.toString else s"$source/${of.directory}"
      new NativeCompaction.Left(directory, of.files, message)
    }
    val left = plan.left ++ failures ++ applied.map(_.left.asScala).getOrElse(Nil)
    CompactSummary(
      source = source.toString,
      destination = target.toString,
      directories = plan.directories,
      files = plan.files,
      bytes = plan.bytes,
      outputs = applied.fold(plan.outputs.length.toLong)(_.outputs),
      outputBytes = if (options.dryRun) plan.outputs.iterator.map(_.bytes).sum else made.iterator.map(_.bytes).sum,
      merged = plan.outputs.iterator.map(_.files.toLong).sum - left.diff(plan.left).iterator.map(_.files).sum,
      kept = plan.keptFiles,
      recovered = recovered,
      dryRun = options.dryRun,
      milliseconds = 0,
      left = left)
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
    } else if (!dryRun) {
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

  /** Finishes what an earlier compaction committed. */
  private def recover(places: Seq[Path], target: Path, options: CompactOptions): Seq[NativeCompaction.Applied] =
    places.filter(Files.isDirectory(_)).flatMap { place =>
      val staging = opening(place, target)
      try {
        if (staging.isCommitted) {
          val applied = finishing(staging, target)
          staging.remove()
          Some(applied)
        } else {
          staging.remove()
          None
        }
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
    val code = try {
      val options = CompactOptions.of(pairs)
      val spark = SparkSession.builder().appName(s"millstream compact ${options.source}").getOrCreate()
      try report(run(spark, options), flags.nonEmpty) finally spark.stop()
    } catch {
      case e: CompactFailure =>
        System.err.println(s"millstream: ${e.getMessage}")
        1
    }
    System.out.flush()
    if (code != 0) System.exit(code)
  }

  private def report(summary: CompactSummary, json: Boolean): Int = {
    println(if (json) summary.json else summary.text)
    val told = summary.left.groupBy(_.reason).toSeq.sortBy(_._1)
    if (!json) {
      told.foreach { case (reason, groups) =>
        val more = if (groups.length > 1) s" and in ${groups.length - 1} more directories" else ""
        System.err.println(s"millstream: left as they were: ${groups.map(_.files).sum} files in ${groups.head.directory}$more: $reason")
      }
      if (told.nonEmpty) System.err.println("millstream: run the same command again when the cause is gone")
    }
    if (summary.isComplete) 0 else 1
  }
}
