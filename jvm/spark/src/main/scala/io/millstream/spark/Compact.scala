package io.millstream.spark

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.millstream.spark.compact.{CompactFailure, Compaction, CompactOptions, CompactSummary}
import io.millstream.spark.console.{ConsoleLog, Failures}

import org.apache.spark.sql.SparkSession

/** `millstream compact`: merges small files into few. */
object Compact {

  /** For callers in other languages: names and values in, a JSON object out. */
  def runJson(spark: SparkSession, settings: java.util.Map[String, String]): String =
    Compaction.run(spark, CompactOptions.of(settings.asScala.toMap)).json

  private val Usage = "usage: Compact [--json] key=value..."

  /** Entry point for `millstream compact`, which parses the command line and passes settings as `key=value`. */
  def main(arguments: Array[String]): Unit = {
    val (flags, settings) = arguments.partition(_ == "--json")
    val pairs = settings.map(_.split("=", 2)).collect { case Array(key, value) => key -> value }.toMap
    if (pairs.size != settings.length) throw new IllegalArgumentException(Usage)
    ConsoleLog.withoutTraces()
    val code =
      try {
        val options = CompactOptions.of(pairs)
        val builder = SparkSession.builder().appName(s"millstream compact ${options.table.getOrElse(options.source)}")
        // Tables are in the Hive metastore; the in-memory catalog of this process is always empty.
        val spark = (if (options.table.isEmpty) builder else builder.enableHiveSupport()).getOrCreate()
        try {
          val tell = if (flags.nonEmpty) (_: String) => () else say _
          report(Compaction.run(spark, options, tell), flags.nonEmpty)
        } finally spark.stop()
      } catch {
        case e: CompactFailure =>
          say(e.getMessage)
          1
        case NonFatal(e) =>
          Compaction.Log.info("The compaction failed", e)
          say(s"${Failures.oneLine(e)}; -v shows Spark's log")
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
      summary.wayBack.foreach(println)
      if (summary.dryRun) println(CompactSummary.NotLookedAt)
      summary.remarks.foreach(say)
    }
    if (summary.isComplete) 0 else 1
  }
}
