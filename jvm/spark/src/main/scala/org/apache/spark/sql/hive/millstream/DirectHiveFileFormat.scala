package org.apache.spark.sql.hive.millstream

import org.apache.hadoop.hive.ql.exec.Utilities
import org.apache.hadoop.hive.ql.io.HiveOutputFormat
import org.apache.hadoop.hive.ql.plan.FileSinkDesc
import org.apache.hadoop.mapred.JobConf
import org.apache.hadoop.mapreduce.{Job, TaskAttemptContext}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.{FileFormat, OutputWriter, OutputWriterFactory}
import org.apache.spark.sql.hive.execution.{HiveFileFormat, HiveOutputWriter}
import org.apache.spark.sql.types.StructType

/**
 * Spark's writer for Hive's serdes, which uses the task's configuration instead of sending a second one with every
 * task.
 */
class DirectHiveFileFormat(sink: FileSinkDesc) extends HiveFileFormat(identity(sink)) {
  // Without `identity`, Scala would read the field of Spark's class, which is not accessible before Spark 4.1.
  override def prepareWrite(
      session: SparkSession,
      job: Job,
      options: Map[String, String],
      schema: StructType): OutputWriterFactory = {
    super.prepareWrite(session, job, options, schema) // configures the job for the table
    new DirectHiveWriterFactory(sink)
  }
}

object DirectHiveFileFormat {

  /** A field of Spark's writer, which is accessible from 4.1 on. */
  private lazy val sink = {
    val field = classOf[HiveFileFormat].getDeclaredField("fileSinkConf")
    field.setAccessible(true)
    field
  }

  /** Fails in a Spark that lacks what `of` needs. */
  def check(): Unit = sink

  /** Replaces Spark's writer for a serde; other formats are returned unchanged. */
  def of(format: FileFormat): FileFormat = format match {
    case hive: HiveFileFormat => new DirectHiveFileFormat(sink.get(hive).asInstanceOf[FileSinkDesc])
    case other => other
  }
}

private final class DirectHiveWriterFactory(sink: FileSinkDesc) extends OutputWriterFactory {
  @transient private var ofTask: JobConf = _

  /** One configuration for all files of a task, as in Spark. */
  private def conf(context: TaskAttemptContext): JobConf = {
    if (ofTask == null) ofTask = new JobConf(context.getConfiguration)
    ofTask
  }

  override def getFileExtension(context: TaskAttemptContext): String =
    Utilities.getFileExtension(
      conf(context),
      sink.getCompressed,
      conf(context).getOutputFormat.asInstanceOf[HiveOutputFormat[_, _]])

  override def newInstance(path: String, schema: StructType, context: TaskAttemptContext): OutputWriter =
    new HiveOutputWriter(path, sink, conf(context), schema)
}
