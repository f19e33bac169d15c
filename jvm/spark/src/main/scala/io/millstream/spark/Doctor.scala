package io.millstream.spark

import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.millstream.Diagnosis

/** `millstream doctor`: shows on one screen whether Millstream works with the Spark that is found, and how to fix what does not. */
object Doctor {
  /** Exits with 1 if a check fails. */
  def main(arguments: Array[String]): Unit = {
    val spark = SparkSession.builder().appName("millstream doctor").getOrCreate()
    val found = try Diagnosis.of(spark) finally spark.stop()
    println(if (arguments.contains("--json")) json(found) else text(found))
    System.out.flush()
    if (found.exists(_.cure.nonEmpty)) System.exit(1)
  }

  private def text(found: Seq[Diagnosis]): String = {
    val width = found.map(_.what.length).max
    found.flatMap { diagnosis =>
      val mark = if (diagnosis.cure.isEmpty) "ok  " else "FIX "
      s"$mark  ${diagnosis.what.padTo(width, ' ')}  ${diagnosis.found}" +: diagnosis.cure.map(cure => s"      ${" " * width}  $cure").toSeq
    }.mkString("\n")
  }

  private def json(found: Seq[Diagnosis]): String =
    new ObjectMapper().writeValueAsString(found.map { diagnosis =>
      ListMap("what" -> diagnosis.what, "found" -> diagnosis.found, "ok" -> diagnosis.cure.isEmpty, "cure" -> diagnosis.cure.orNull).asJava
    }.asJava)
}
