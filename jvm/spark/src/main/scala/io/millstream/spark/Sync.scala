package io.millstream.spark

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.millstream.hadoop.natives.NativeLibrary
import io.millstream.spark.console.{ConsoleLog, Failures}
import io.millstream.spark.sync.{SyncFailure, Synchronization, SyncOptions, SyncSummary}
import org.apache.hadoop.fs.UnsupportedFileSystemException
import org.slf4j.LoggerFactory

import org.apache.spark.SparkException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.millstream.Diagnosis

/** `psync --spark`: synchronizes two directories with Spark jobs; options mean the same as in rsync. */
object Sync {
  private val Log = LoggerFactory.getLogger("io.millstream.spark.Sync")
  private val LacksJars =
    "S3A's jars are missing. Name them with spark.driver.extraClassPath; docs/remote.md lists them"

  /** As in `psync`: an option or argument is wrong. */
  private val Usage = 1

  /** As in `psync`: something failed. */
  private val Partial = 23

  /** For callers in other languages: names and values in, a JSON object out. */
  def runJson(spark: SparkSession, settings: java.util.Map[String, String]): String = {
    requireLibrary()
    run(spark, SyncOptions.of(settings.asScala.toMap)).json
  }

  /** Refuses a driver without the rules, which options and the plan need, before anything is listed or made. */
  private def requireLibrary(): Unit = Option(NativeLibrary.whyNot).foreach { why =>
    throw new SyncFailure(
      s"Spark's driver cannot synchronize, because Millstream's native library, millstream_jni, does not load in it: $why; ${Diagnosis.LibraryNeeds}")
  }

  /**
   * Synchronizes two directories.
   *
   * @param tell receives notices as they arise: entries that were not deleted, and why; entries that changed meanwhile
   * @param show receives the names of changed entries, if the options request them
   */
  def run(
      spark: SparkSession,
      options: SyncOptions,
      tell: String => Unit = Log.warn,
      show: String => Unit = println): SyncSummary =
    try {
      val summary = new Synchronization(spark, options, tell, show).run()
      Log.info(s"Millstream synchronized ${summary.destination}: ${summary.text}")
      summary
    } catch {
      case e: SparkException =>
        throw new SyncFailure(s"Spark could not run a job: ${Failures.oneLine(e)}; only complete files have their final names, so run this again")
      case e if isOfS3a(options) && lacksClass(e) =>
        throw new SyncFailure(s"${Failures.oneLine(e)}: $LacksJars")
      case _: UnsupportedFileSystemException if Seq(options.source, options.destination).exists(_.matches("s3n?:.*")) =>
        throw new SyncFailure("the scheme for S3 is s3a: write s3a://bucket/directory")
      // Hadoop's file systems throw this for hosts that do not exist.
      case e: IllegalArgumentException if e.getCause.isInstanceOf[java.net.UnknownHostException] =>
        throw new SyncFailure(Failures.oneLine(e))
      case e: java.io.IOException => throw new SyncFailure(s"${Failures.reason(e)}; run this again once that is fixed")
    }

  private def lacksClass(error: Throwable) =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).exists(_.isInstanceOf[ClassNotFoundException])

  private def isOfS3a(options: SyncOptions) = Seq(options.source, options.destination).exists(_.startsWith("s3a:"))

  /** Entry point for `psync --spark`, which parses the command line and passes settings as `key=value`. */
  def main(arguments: Array[String]): Unit = {
    val (flags, settings) = arguments.partition(_ == "--json")
    val pairs = settings.map(_.split("=", 2)).collect { case Array(key, value) => key -> value }.toMap
    if (pairs.size != settings.length) throw new IllegalArgumentException("usage: Sync [--json] key=value...")
    ConsoleLog.withoutTraces()
    val code =
      try {
        requireLibrary()
        val options =
          try SyncOptions.of(pairs)
          catch {
            case e: SyncFailure =>
              say(e.getMessage)
              System.exit(Usage)
              throw e
          }
        val spark = SparkSession.builder().appName(s"psync ${options.source} ${options.destination}").getOrCreate()
        try report(run(spark, options, say), flags.nonEmpty)
        finally spark.stop()
      } catch {
        case e: SyncFailure =>
          say(e.getMessage)
          Partial
        case NonFatal(e) =>
          Log.info("The synchronization failed", e)
          say(s"${Failures.oneLine(e)}; --conf spark.log.level=INFO shows Spark's log")
          Partial
      }
    System.out.flush()
    if (code != 0) System.exit(code)
  }

  private def say(message: String): Unit = System.err.println(s"psync: $message")

  private def report(summary: SyncSummary, json: Boolean): Int = {
    summary.problems.foreach(problem => say(s"cannot ${problem.operation} '${problem.path}': ${problem.message}"))
    if (summary.errors > summary.problems.length) say(s"${summary.errors - summary.problems.length} more errors")
    println(if (json) summary.json else summary.text)
    summary.exitCode
  }
}
