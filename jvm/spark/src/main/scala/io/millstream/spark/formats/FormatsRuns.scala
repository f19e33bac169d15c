package io.millstream.spark.formats

import java.io.{IOException, StringReader}
import java.lang.management.ManagementFactory
import java.net.URI
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import java.util.Properties
import java.util.jar.{JarEntry, JarFile, JarOutputStream}

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.millstream.spark.console.ConsoleLog

import org.apache.spark.SparkConf

/** The cost of the round with the median time, and the run's peak usage. */
final case class FormatsFigures(rows: Long, partitions: Int, wallS: Double, cpuS: Double, peakBytes: Long, skew: Double)

/**
 * A measured run.
 *
 * @param job `read`, `repartition` or `first-read`
 * @param engine `stock` or `millstream`
 * @param bytes size of the file
 * @param lines number of lines of the file
 * @param figures None if nothing was measured
 * @param problem why there are no figures, or why the rows are wrong
 */
final case class FormatsRow(
    source: String,
    format: String,
    job: String,
    engine: String,
    bytes: Long,
    lines: Long,
    figures: Option[FormatsFigures],
    problem: Option[String]) {

  /** Figures of a run with correct rows; others are not compared. */
  def measured: Option[FormatsFigures] = if (problem.isEmpty) figures else None
}

object FormatsRow {
  val Read = "read"
  val Repartition = "repartition"

  /** The read of a file that has no index yet. */
  val FirstRead = "first-read"
  val Stock = "stock"
  val Millstream = "millstream"
}

/** Runs [[FormatsProbe]] in JVMs like this one: with and without our jar and its settings. */
private[spark] final class FormatsRuns(conf: SparkConf, work: FormatsWork, options: FormatsOptions) {
  import FormatsRuns._

  private val stockPath = System.getProperty("java.class.path").split(':').filterNot(isOurs).mkString(":")
  private val probe = work.scratch.resolve("probe.jar")
  private val answer = work.scratch.resolve("answer.json")
  private val log = work.scratch.resolve("log")
  private val settings = conf.getAll.toMap ++ Map(
    "spark.ui.enabled" -> "false",
    "spark.sql.warehouse.dir" -> work.scratch.resolve("warehouse").toString)
  private val properties = Map(
    FormatsRow.Stock -> written("stock.properties", FormatsSettings.stock(settings, ourJar.toString)),
    FormatsRow.Millstream -> written("millstream.properties", FormatsSettings.millstream(settings, ourJar.toString)))
  writeProbe()

  /** How many tasks ran at once in the last run that was successful. */
  var cores: Int = 1

  /** Does `job` on a file `rounds` times, after a warm-up on another. */
  def run(
      engine: String,
      job: String,
      path: String,
      warmUp: String,
      rounds: Int): Either[String, Seq[FormatsFigures]] = {
    Files.deleteIfExists(answer)
    val command = new ProcessBuilder(arguments(engine, Seq(job, path, warmUp, rounds.toString, answer.toString)).asJava)
    command.redirectOutput(ProcessBuilder.Redirect.DISCARD)
    if (isVerbose) command.redirectError(ProcessBuilder.Redirect.INHERIT) else command.redirectError(log.toFile)
    work.run(command, options.limitSeconds) match {
      case None => Left(s"not finished after ${options.limitSeconds} s (--limit)")
      case Some(status) => answered(status)
    }
  }

  private def answered(status: Int): Either[String, Seq[FormatsFigures]] = {
    val found = Option.when(Files.exists(answer))(Json.readTree(answer.toFile))
    found.filter(_.has("rounds")).map { measured =>
      cores = measured.get("cores").asInt
      measured.get("rounds").elements.asScala.map(figures(_, measured.get("peak_bytes").asLong)).toSeq
    }.toRight {
      val error = found.fold(s"the JVM ended with status $status: $lastWords")(_.get("error").asText)
      // When a task runs out of memory, the probe may learn only that Spark has ended.
      if (s"$error$logged".contains("OutOfMemoryError")) "out of memory; for more: --conf=spark.driver.memory=SIZE"
      else error
    }
  }

  private def figures(round: JsonNode, peakBytes: Long): FormatsFigures = {
    def number(name: String) = round.get(name).asDouble
    FormatsFigures(
      round.get("rows").asLong,
      round.get("partitions").asInt,
      number("wall_s"),
      number("cpu_s"),
      peakBytes,
      number("skew"))
  }

  private def lastWords: String =
    logged.linesIterator.filterNot(_.isBlank).toSeq.lastOption.fold("see its log (--verbose)")(_.trim.take(MaxWords))

  private def logged: String = if (isVerbose) "" else Files.readString(log)

  private def isVerbose: Boolean = ConsoleLog.isDetailed(conf)

  private def arguments(engine: String, probeArguments: Seq[String]): Seq[String] = {
    val java = Paths.get(System.getProperty("java.home"), "bin", "java").toString
    // Debuggers and other agents would listen on ports that are already taken.
    val flags = ManagementFactory.getRuntimeMXBean.getInputArguments.asScala.filterNot(flag =>
      flag.startsWith("-agent") || flag.startsWith("-javaagent"))
    val classPath = if (engine == FormatsRow.Stock) stockPath else s"$stockPath:$ourJar"
    // Leftovers of a killed run are removed with the rest.
    val jvm = Seq(java) ++ flags ++ Seq(s"-Djava.io.tmpdir=${work.scratch}", "-cp", classPath)
    jvm ++ Seq(
      Submit,
      "--properties-file",
      properties(engine).toString,
      "--class",
      ProbeClass,
      probe.toString) ++ probeArguments
  }

  private def written(name: String, settings: Map[String, String]): Path = {
    val file = work.scratch.resolve(name)
    val properties = new Properties
    settings.foreach { case (key, value) => properties.setProperty(key, value) }
    // Properties may contain credentials; other users cannot read the directory.
    FormatsWork.writing(file)(Using.resource(Files.newBufferedWriter(file, UTF_8))(properties.store(_, null)))
    file
  }

  /** A jar with only the probe. Our jar's service files would enable Millstream in stock Spark. */
  private def writeProbe(): Unit = FormatsWork.writing(probe) {
    Using.resources(new JarFile(ourJar.toFile), new JarOutputStream(Files.newOutputStream(probe))) { (ours, out) =>
      ours.entries.asScala.filter(_.getName.startsWith(ProbeClass.replace('.', '/'))).foreach { entry =>
        out.putNextEntry(new JarEntry(entry.getName))
        Using.resource(ours.getInputStream(entry))(_.transferTo(out))
      }
    }
  }
}

private[spark] object FormatsRuns {
  private val Json = new ObjectMapper
  private val Submit = "org.apache.spark.deploy.SparkSubmit"
  private val ProbeClass = "io.millstream.spark.formats.FormatsProbe"
  private val MaxWords = 200

  lazy val ourJar: Path = Paths.get(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)

  private def isOurs(entry: String): Boolean = Try(Files.isSameFile(Paths.get(entry), ourJar)).getOrElse(false)
}

/** The settings of the two kinds of runs, derived from this JVM's, whichever kind it is. */
private[spark] object FormatsSettings {
  private val JarPlaceholder = "@JAR@"

  /** The jar, for settings that need a path. A jar that this JVM has loaded is one anyway. */
  private val PathPlaceholder = "@JAR_PATH@"
  private val Block = "/millstream/spark-defaults.conf"
  private val ClassPaths = Set("spark.driver.extraClassPath", "spark.executor.extraClassPath")
  private val Jars = "spark.jars"
  private val Lists = ClassPaths + Jars

  /** Settings that belong to a running application, or keep an index elsewhere than next to the sample. */
  private val OfApplication = Seq(
    "spark.app.",
    "spark.submit.",
    "spark.driver.port",
    "spark.executor.id",
    "spark.repl.",
    "spark.millstream.index.directory")

  /** The conf block for a jar. */
  private def block(jar: String): Map[String, String] = {
    val properties = new Properties
    properties.load(new StringReader(Using.resource(getClass.getResourceAsStream(Block))(in =>
      new String(in.readAllBytes(), UTF_8))))
    properties.asScala.map { case (key, value) =>
      key -> value.replace(JarPlaceholder, jar).replace(PathPlaceholder, jar)
    }.toMap
  }

  /** The settings of Spark without Millstream. */
  def stock(given: Map[String, String], jar: String): Map[String, String] = {
    val ours = block(jar)
    val others = given.filterNot { case (key, value) =>
      OfApplication.exists(key.startsWith) || key.contains("millstream.") || value.contains("io.millstream.") || !Lists(
        key) && ours.get(key).contains(value)
    }
    val lists = others.collect {
      case (key, value) if Lists(key) =>
        key -> value.split(separator(key)).filterNot(isJar(_, jar)).mkString(separator(key))
    }
    others -- lists.keys ++ lists.filter(_._2.nonEmpty)
  }

  /** Whether an entry of a list names a jar: by its path, or, as spark-submit writes it, by its URI. */
  private def isJar(entry: String, jar: String): Boolean =
    entry == jar || Try(new URI(entry)).toOption.exists(uri => uri.getScheme == "file" && uri.getPath == jar)

  /** The settings of Spark with Millstream: the user's own, completed by the conf block. */
  def millstream(given: Map[String, String], jar: String): Map[String, String] = {
    val own = given.filterNot { case (key, _) => OfApplication.exists(key.startsWith) }
    val lists = block(jar).collect {
      case (key, value) if Lists(key) =>
        val present = own.get(key).filter(_.nonEmpty).toSeq.flatMap(_.split(separator(key)))
        key -> (present :+ value).distinct.mkString(separator(key))
    }
    block(jar) ++ own ++ lists
  }

  private def separator(key: String): String = if (key == Jars) "," else ":"
}
