package io.millstream.spark

import java.io.PrintStream
import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.millstream.spark.console.{ConsoleLog, Failures}
import io.millstream.spark.formats.{FormatsComparison, FormatsFailure, FormatsOptions, FormatsWork}
import org.apache.hadoop.conf.Configuration
import org.slf4j.LoggerFactory

import org.apache.spark.SparkConf
import org.apache.spark.sql.SparkSession

/** `millstream formats`: measures the best storage format for the user's own text. */
object Formats {
  private val Log = LoggerFactory.getLogger("io.millstream.spark.Formats")

  /** For Python: names and values in, a JSON object out. */
  def runJson(spark: SparkSession, settings: java.util.Map[String, String]): String =
    FormatsComparison.run(
      spark.sparkContext.getConf,
      spark.sparkContext.hadoopConfiguration,
      FormatsOptions.of(settings.asScala.toMap)).json

  /** Ends the comparisons that run in this JVM. */
  def stop(): Unit = FormatsWork.stopAll()

  /** The entry point for `millstream formats`, which parses the command line and passes settings as `key=value`. */
  def main(arguments: Array[String]): Unit = {
    val (flags, settings) = arguments.partition(_ == "--json")
    val pairs = settings.map(_.split("=", 2)).collect { case Array(key, value) => key -> value }.toMap
    // The command knows the terminal's encoding, and passes whether it is ASCII.
    val out = new PrintStream(System.out, true, UTF_8)
    val code =
      try {
        val (conf, options) = (new SparkConf, FormatsOptions.of(pairs))
        ConsoleLog.setLevel(conf)
        val report = FormatsComparison.run(conf, hadoopConfiguration(conf), options)
        out.println(if (flags.nonEmpty) report.json
        else if (options.dryRun) FormatsComparison.plan(options, report) else report.text(options.ascii))
        if (report.hasFailed) 1 else 0
      } catch {
        case e: FormatsFailure =>
          System.err.println(s"millstream: ${e.getMessage}")
          1
        case NonFatal(e) =>
          Log.info("The comparison failed", e)
          System.err.println(s"millstream: ${Failures.oneLine(e)}; -v shows Spark's log")
          1
      }
    if (code != 0) System.exit(code)
  }

  /** This JVM has no session, which would compete with the measured ones. */
  private def hadoopConfiguration(conf: SparkConf): Configuration = {
    val hadoop = new Configuration
    conf.getAllWithPrefix("spark.hadoop.").foreach { case (key, value) => hadoop.set(key, value) }
    hadoop
  }
}
