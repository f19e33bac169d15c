package io.millstream.spark

import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import io.millstream.spark.console.{ConsoleLog, Failures}

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.millstream.compressed.{IndexJob, IndexOutcome}

/** `millstream index --spark`: builds or removes indexes of compressed files before Spark reads them. */
object MakeIndexes {
  private val Usage =
    "usage: MakeIndexes [--json] path=PATH... [directory=DIR] [min-size=SIZE] [prune=true] [dry-run=true] [verbose=true]"

  /** The entry point for `millstream index`, which parses the command line and passes settings as `key=value`. */
  def main(arguments: Array[String]): Unit = {
    val (flags, settings) = arguments.partition(_ == "--json")
    val pairs = settings.map(_.split("=", 2)).collect { case Array(key, value) => key -> value }
    val (paths, others) = pairs.partition(_._1 == "path")
    if (pairs.length != settings.length || paths.isEmpty) throw new IllegalArgumentException(Usage)
    ConsoleLog.withoutTraces()
    val code =
      try run(paths.map(_._2).toSeq, others.toMap, isJson = flags.nonEmpty)
      catch {
        case NonFatal(e) =>
          System.err.println(s"millstream: ${Failures.oneLine(e)}; -v shows Spark's log")
          1
      }
    System.out.flush()
    if (code != 0) System.exit(code)
  }

  private def run(paths: Seq[String], settings: Map[String, String], isJson: Boolean): Int = {
    def isTrue(key: String) = settings.get(key).contains("true")
    val spark = SparkSession.builder().appName(s"millstream index ${paths.head}").getOrCreate()
    try {
      val job = new IndexJob(
        spark,
        settings.get("directory"),
        settings.get("min-size").map(JavaUtils.byteStringAsBytes),
        isTrue("dry-run"))
      val outcomes = if (isTrue("prune")) job.prune(paths) else job.make(paths)
      outcomes.foreach(report(_, isJson, isTrue("verbose")))
      if (outcomes.exists(_.problem.nonEmpty)) 1 else 0
    } finally {
      spark.stop()
    }
  }

  private def report(outcome: IndexOutcome, isJson: Boolean, isVerbose: Boolean): Unit = {
    outcome.problem.foreach(problem =>
      System.err.println(s"millstream: cannot ${outcome.action} '${outcome.path}': $problem"))
    if (isJson) println(json(outcome))
    else if (outcome.problem.isEmpty && (isVerbose || outcome.action.startsWith(
        "would") || outcome.action == IndexJob.Skip)) println(text(outcome))
  }

  private def json(outcome: IndexOutcome): String = {
    val what = outcome.problem.fold(Seq("action" -> outcome.action))(problem =>
      Seq("error" -> problem, "operation" -> outcome.action))
    new ObjectMapper().writeValueAsString(
      (ListMap.from[
        String,
        Any](what) ++ outcome.reason.map("reason" -> _) ++ outcome.numbers + ("path" -> outcome.path)).asJava)
  }

  private def text(outcome: IndexOutcome): String = {
    val about = outcome.reason.toSeq ++ outcome.numbers.map { case (name, number) => s"$name $number" }
    s"'${outcome.path}': ${outcome.action}${if (about.isEmpty) "" else about.mkString(": ", ", ", "")}"
  }
}
