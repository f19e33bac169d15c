package org.apache.spark.sql.execution.datasources.millstream.listing

import java.nio.charset.{Charset, StandardCharsets}

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{Dataset, Encoders}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.csv.CSVOptions
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.json.{JSONOptions, JSONOptionsInRead}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.csv.{CSVFileFormat, CSVUtils, TextInputCSVDataSource}
import org.apache.spark.sql.execution.datasources.json.{JsonFileFormat, TextInputJsonDataSource}
import org.apache.spark.sql.execution.datasources.text.TextFileFormat
import org.apache.spark.sql.types.{StringType, StructType}

/**
 * Infers the schemas of csv and json lines with Spark's own inference, but from the existing listing.
 *
 * Spark infers from a Dataset of lines. For it, Spark creates a text relation whose roots are the files themselves, and
 * lists each of them again: for many files a Spark job of up to 10,000 tasks, which takes longer than everything else.
 * Here the relation's index is a view of the first listing. Its scan is replaced like any other scan of text, so the
 * files are read natively, and many by each task. Which rows Spark samples depends on the tasks, so Spark's scan stays
 * if a sample is requested.
 */
private[millstream] object LineSchema {
  private val SamplesBelow = 0.99

  /** Whether a schema of this format is inferred from lines, and can be inferred here. */
  def isInferredFromLines(spark: classic.SparkSession, format: FileFormat, options: Map[String, String]): Boolean =
    format match {
      case _: CSVFileFormat =>
        val csv = csvOptions(spark, options)
        !csv.multiLine && !csv.parameters.contains(SingleVariantColumn) && !ListedRelations.readsArchives(
          spark.sessionState.conf)
      case _: JsonFileFormat =>
        val json = jsonOptions(spark, options)
        !json.multiLine && !json.parameters.contains(SingleVariantColumn) && !ListedRelations.readsArchives(
          spark.sessionState.conf)
      case _ => false
    }

  /**
   * Infers the schema of csv or json lines.
   *
   * @param files all files, in Spark's order
   */
  def infer(
      spark: classic.SparkSession,
      format: FileFormat,
      options: Map[String, String],
      index: CompactFileIndex,
      files: Seq[FileStatusWithMetadata]): StructType = format match {
    case _: CSVFileFormat =>
      val csv = csvOptions(spark, options)
      val lines = decoded(spark, linesOf(spark, index, files, csv.parameters, csv.samplingRatio), csv.charset)
      val first = CSVUtils.filterCommentAndEmpty(lines, csv).take(1).headOption
      TextInputCSVDataSource.inferFromDataset(spark, lines, first, csv)
    case _ =>
      val json = jsonOptions(spark, options)
      TextInputJsonDataSource.inferFromDataset(
        linesOf(spark, index, files, json.parameters, json.samplingRatio).as(Encoders.STRING),
        json)
  }

  private val SingleVariantColumn = "singleVariantColumn"

  private def csvOptions(spark: classic.SparkSession, options: Map[String, String]): CSVOptions = {
    val conf = spark.sessionState.conf
    new CSVOptions(options, conf.csvColumnPruning, conf.sessionLocalTimeZone, conf.columnNameOfCorruptRecord)
  }

  private def jsonOptions(spark: classic.SparkSession, options: Map[String, String]): JSONOptions = {
    val conf = spark.sessionState.conf
    new JSONOptionsInRead(options, conf.sessionLocalTimeZone, conf.columnNameOfCorruptRecord)
  }

  private def linesOf(
      spark: classic.SparkSession,
      index: CompactFileIndex,
      files: Seq[FileStatusWithMetadata],
      options: Map[String, String],
      samplingRatio: Double): classic.DataFrame = {
    val listed = new ListedFiles(index, files, isSampled = samplingRatio <= SamplesBelow)
    val schema = new StructType().add("value", StringType)
    val relation =
      HadoopFsRelation(listed, new StructType, schema, None, new TextFileFormat, CaseInsensitiveMap(options))(spark)
    classic.Dataset.ofRows(spark, LogicalRelation(relation)).select("value")
  }

  private def decoded(spark: classic.SparkSession, lines: classic.DataFrame, charset: String): Dataset[String] =
    if (Charset.forName(charset) == StandardCharsets.UTF_8) {
      lines.as[String](Encoders.STRING)
    } else {
      spark.createDataset(lines.queryExecution.toRdd.map { row =>
        val bytes = row.getBinary(0)
        new String(bytes, 0, bytes.length, charset)
      })(Encoders.STRING)
    }
}

/**
 * The files of another index, without its partition columns, for reading their lines.
 *
 * @param isSampled whether the rows are sampled, so that Spark's own partitions are needed
 */
private[millstream] final class ListedFiles(
    index: CompactFileIndex,
    files: Seq[FileStatusWithMetadata],
    val isSampled: Boolean) extends FileIndex {
  override def rootPaths: Seq[Path] = index.rootPaths

  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    Seq(PartitionDirectory(InternalRow.empty, files))

  override def inputFiles: Array[String] = index.inputFiles

  override def refresh(): Unit = ()

  override def sizeInBytes: Long = files.iterator.map(_.getLen).sum

  override def partitionSchema: StructType = new StructType
}
