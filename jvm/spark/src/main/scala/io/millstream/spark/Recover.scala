package io.millstream.spark

import java.io.IOException
import java.nio.file.FileSystemException

import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import io.millstream.spark.console.Failures
import io.millstream.write.protocol.Finding
import io.millstream.write.protocol.Finding.{Run, Verdict}
import io.millstream.write.recovery.Recovery.{Choices, Superseded}

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.execution.datasources.millstream.write.DirectRecovery

/** The interrupted writes of a table or directory could not be resolved; the message tells the user why. */
class RecoverFailure(message: String) extends RuntimeException(message)

/** `millstream recover`: resolves the direct writes of a table or directory whose drivers have died. */
object Recover {

  /**
   * Resolves the interrupted writes of a table or directory.
   *
   * @param target a table's name, or a path if it contains a slash
   * @param acceptsLoss whether to end committed writes that cannot be finished
   * @param superseded what to do with files for directories that another program overwrote first: `keep`, `apply` or
   * `drop`
   */
  def run(
      spark: SparkSession,
      target: String,
      dryRun: Boolean,
      acceptsLoss: Boolean = false,
      superseded: String = "keep"): Seq[Finding] =
    try {
      if (target.isBlank) throw new IllegalArgumentException("the name of a table or a path is required")
      val kept = Superseded.values.find(_.name.equalsIgnoreCase(superseded))
        .getOrElse(throw new IllegalArgumentException(s"superseded must be keep, apply or drop, but was $superseded"))
      DirectRecovery.recover(spark, target, new Choices(if (dryRun) Run.DRY else Run.REAL, acceptsLoss, kept))
    } catch {
      case e: FileSystemException if e.getReason == null => throw new RecoverFailure(s"$target: ${Failures.reason(e)}")
      case e: AnalysisException =>
        throw new RecoverFailure(s"$target: ${e.getMessage.linesIterator.find(_.trim.nonEmpty).getOrElse(e.toString)}")
      case e @ (_: IOException | _: IllegalArgumentException | _: UnsupportedOperationException) =>
        throw new RecoverFailure(s"$target: ${e.getMessage}")
    }

  /** For Python. */
  def runJson(spark: SparkSession, target: String, dryRun: Boolean, acceptsLoss: Boolean, superseded: String): String =
    json(run(spark, target, dryRun, acceptsLoss, superseded))

  private def json(findings: Seq[Finding]): String =
    new ObjectMapper().writeValueAsString(findings.map { finding =>
      ListMap(
        "job" -> finding.job,
        "owner" -> finding.owner,
        "verdict" -> word(finding.verdict),
        "steps" -> finding.steps).asJava
    }.asJava)

  private def word(verdict: Verdict): String = verdict.name.toLowerCase(java.util.Locale.ROOT).replace('_', '-')

  private val Usage =
    "usage: Recover [--json] target=TABLE|PATH [dry-run=true] [accept-loss=true] [superseded=apply|drop]"

  /** The entry point for `millstream recover`, which parses the command line and passes settings as `key=value`. */
  def main(arguments: Array[String]): Unit = {
    val (flags, settings) = arguments.partition(_ == "--json")
    val pairs = settings.map(_.split("=", 2)).collect { case Array(key, value) => key -> value }.toMap
    val target = pairs.getOrElse("target", throw new IllegalArgumentException(Usage))
    val dryRun = pairs.get("dry-run").contains("true")
    val builder = SparkSession.builder().appName(s"millstream recover $target")
    // Tables are in the Hive metastore; the in-memory catalog of this process is always empty.
    val spark = (if (target.contains('/')) builder else builder.enableHiveSupport()).getOrCreate()
    val code =
      try {
        val findings =
          run(spark, target, dryRun, pairs.get("accept-loss").contains("true"), pairs.getOrElse("superseded", "keep"))
        println(if (flags.nonEmpty) json(findings) else text(target, findings, dryRun))
        if (findings.exists(_.verdict == Verdict.ALIVE)) LeftAlone else 0
      } catch {
        case e: RecoverFailure =>
          System.err.println(s"millstream: ${e.getMessage}")
          1
      } finally {
        spark.stop()
      }
    System.out.flush()
    if (code != 0) System.exit(code)
  }

  private def text(target: String, findings: Seq[Finding], dryRun: Boolean): String = {
    val jobs = findings.flatMap { finding =>
      val outcome = (finding.verdict, dryRun) match {
        case (Verdict.ALIVE, _) =>
          "is running, or was killed so recently that it counts as running; left alone: run this again"
        case (Verdict.ROLL_FORWARD, false) => "was committed; finished"
        case (Verdict.ROLL_FORWARD, true) => "was committed; would be finished"
        case (Verdict.ROLL_BACK, false) => "was not committed; removed"
        case (Verdict.ROLL_BACK, true) => "was not committed; would be removed"
        case (Verdict.LEFTOVERS, false) =>
          "has ended; leftover files of its attempts, which were never part of it, are removed"
        case (Verdict.LEFTOVERS, true) =>
          "has ended; leftover files of its attempts, which were never part of it, would be removed"
        case (Verdict.SUPERSEDED, _) => "is finished, except for directories to which another program has written"
        case (Verdict.LOST, _) => "was committed, could not be finished, and was given up"
        case (Verdict.REMOVE_REPLACED, false) => "is finished; its replaced files are removed"
        case (Verdict.REMOVE_REPLACED, true) => "is finished; its replaced files would be removed"
      }
      s"job ${finding.job} of ${finding.owner} $outcome" +: (if (dryRun || Told(finding.verdict))
                                                               shown(finding.steps.asScala.toSeq)
                                                             else Nil)
    }
    if (jobs.isEmpty) s"$target: no interrupted writes" else jobs.mkString("\n")
  }

  /** Verdicts whose steps are shown to the user in any case. */
  private val Told = Set(Verdict.ALIVE, Verdict.SUPERSEDED, Verdict.LOST)

  private val MaxShown = 20

  /** The exit status if a job may still be running. */
  private val LeftAlone = 3

  private def shown(steps: Seq[String]): Seq[String] = {
    val more = steps.length - MaxShown
    steps.take(MaxShown).map("  " + _) ++ Option.when(more > 0)(s"  and $more more, which --json lists")
  }
}
