package io.millstream.spark

import java.util.{List => JavaList, Map => JavaMap}

import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.millstream.Diagnosis

/** `millstream doctor`: shows on one screen whether Millstream works in a session, and how to fix what does not. */
object Doctor {

  /**
   * The argument that means that the session has the settings of `millstream.enable`, because the installation has
   * none.
   */
  private val Enabled = "--enabled"
  private val NotInstalled = Diagnosis(
    "settings",
    "spark-defaults.conf has no Millstream settings: it is off, except in programs that call millstream.enable, as this check does",
    None)

  /** Exits with 1 if a check fails. */
  def main(arguments: Array[String]): Unit = {
    val spark = SparkSession.builder().appName("millstream doctor").getOrCreate()
    val found =
      try Option.when(arguments.contains(Enabled))(NotInstalled) ++: Diagnosis.of(spark)
      finally spark.stop()
    println(if (arguments.contains("--json")) json(found) else text(found))
    System.out.flush()
    if (found.exists(_.fix.nonEmpty)) System.exit(1)
  }

  /** For Python: the checks of a running session and the screen, as JSON. */
  def runJson(session: SparkSession): String = {
    val found = Diagnosis.of(session)
    new ObjectMapper().writeValueAsString(ListMap("screen" -> text(found), "checks" -> records(found)).asJava)
  }

  private def text(found: Seq[Diagnosis]): String = {
    val width = found.map(_.what.length).max
    found.flatMap { diagnosis =>
      val mark = if (diagnosis.fix.isEmpty) "ok  " else "FIX "
      s"$mark  ${diagnosis.what.padTo(width, ' ')}  ${diagnosis.found}" +: diagnosis.fix.map(fix =>
        s"      ${" " * width}  $fix").toSeq
    }.mkString("\n")
  }

  private def json(found: Seq[Diagnosis]): String = new ObjectMapper().writeValueAsString(records(found))

  private def records(found: Seq[Diagnosis]): JavaList[JavaMap[String, Any]] = found.map { diagnosis =>
    ListMap[String, Any](
      "what" -> diagnosis.what,
      "found" -> diagnosis.found,
      "ok" -> diagnosis.fix.isEmpty,
      "fix" -> diagnosis.fix.orNull).asJava
  }.asJava
}
