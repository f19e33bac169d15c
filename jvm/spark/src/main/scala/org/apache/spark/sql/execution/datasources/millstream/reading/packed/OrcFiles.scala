package org.apache.spark.sql.execution.datasources.millstream.reading.packed

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument
import org.apache.hadoop.mapreduce.RecordReader
import org.apache.orc.{OrcFile, TypeDescription}
import org.apache.orc.impl.{OrcTail, RecordReaderImpl}
import org.apache.orc.mapred.OrcInputFormat

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.execution.datasources.millstream.internals.Reflected
import org.apache.spark.sql.execution.datasources.orc.OrcColumnarBatchReader
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.util.SerializableConfiguration

/**
 * Spark's vectorized ORC reader takes batches from ORC's reader of the file, which it keeps in a field. So a further
 * file needs an ORC reader in that field, with the schema, columns and search argument that Spark has given to the
 * first one.
 */
private final class OrcFiles(conf: Broadcast[SerializableConfiguration]) extends ColumnarFiles[OrcTail] {
  OrcFiles.check()

  override def open(reader: RecordReader[_, _], file: FileAhead): Option[OpenReader[OrcTail]] = reader match {
    case vectorized: OrcColumnarBatchReader =>
      OrcFiles.stripesField.get(vectorized) match {
        case stripes: RecordReaderImpl => Some(new OpenOrcReader(vectorized, stripes, conf.value.value))
        case _ => None
      }
    case _ => None
  }
}

/** @param stripes the reader of the current file's stripes */
private final class OpenOrcReader(
    vectorized: OrcColumnarBatchReader,
    private var stripes: org.apache.orc.RecordReader,
    conf: Configuration)
    extends OpenReader[OrcTail] {

  private val fileSchema = OrcFiles.fileSchemaOf(stripes)
  private val readSchema = OrcFiles.readSchemaField.get(stripes).asInstanceOf[TypeDescription]
  private val columns =
    OrcInputFormat.parseInclude(readSchema, vectorized.requestedDataColIds.filter(_ != -1).sorted.mkString(","))
  private val condition = OrcFiles.conditionOf(stripes)

  override def reader: RecordReader[_, _] = vectorized

  override def batch: ColumnarBatch = vectorized.columnarBatch

  override def footer(file: FileAhead): Option[OrcTail] = file.stream.map { _ =>
    val options = optionsOf(file)
    Using.resource(OrcFile.createReader(file.toPath, options))(_ => options.getOrcTail)
  }

  override def suits(tail: OrcTail): Boolean = tail.getSchema == fileSchema

  override def advance(file: FileAhead, tail: OrcTail): Unit = {
    stripes.close()
    val opened = OrcFile.createReader(file.toPath, optionsOf(file).orcTail(tail))
    val options = opened.options.range(0, file.length).schema(readSchema).include(columns)
    condition.foreach(options.searchArgument(_, fileSchema.getFieldNames.toArray(Array.empty[String])))
    stripes = opened.rows(options)
    OrcFiles.stripesField.set(vectorized, stripes)
  }

  /** The file system opens the file in memory. No request for its length is needed. */
  private def optionsOf(file: FileAhead): OrcFile.ReaderOptions =
    OrcFile.readerOptions(conf).filesystem(file.toPath.getFileSystem(conf)).maxLength(file.length)
}

private object OrcFiles {
  private val ofFile = classOf[RecordReaderImpl]

  val stripesField = Reflected.field(classOf[OrcColumnarBatchReader], "recordReader")
  val readSchemaField = Reflected.field(ofFile, "schema")
  private val plannerField = Reflected.field(ofFile, "planner")
  private val fileSchemaField = Reflected.field(plannerField.getType, "schema")
  private val conditionField = Reflected.field(ofFile, "sargApp")
  private val argumentField = Reflected.field(conditionField.getType, "sarg")

  /** Fails if the fields are not there. */
  def check(): Unit = ()

  def fileSchemaOf(stripes: org.apache.orc.RecordReader): TypeDescription =
    fileSchemaField.get(plannerField.get(stripes)).asInstanceOf[TypeDescription]

  /** The search argument by which stripes and groups of rows are skipped. */
  def conditionOf(stripes: org.apache.orc.RecordReader): Option[SearchArgument] =
    Option(conditionField.get(stripes)).map(argumentField.get(_).asInstanceOf[SearchArgument])
}
