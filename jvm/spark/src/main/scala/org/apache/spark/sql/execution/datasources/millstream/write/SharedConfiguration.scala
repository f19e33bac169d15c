package org.apache.spark.sql.execution.datasources.millstream.write

import org.apache.hadoop.conf.Configuration

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.execution.datasources.{WriteFilesExec, WriteFilesSpec, WriteJobDescription}
import org.apache.spark.util.SerializableConfiguration

/**
 * Spark's node that writes files, with the Hadoop configuration sent once to each executor.
 *
 * Spark sends it in the closure, and every task deserialises it: thousands of settings, each compressed separately,
 * take a third of the CPU time of tasks that write five small files.
 */
private[write] class DirectWriteFiles(of: WriteFilesExec)
    extends WriteFilesExec(
      of.child,
      of.fileFormat,
      of.partitionColumns,
      of.bucketSpec,
      of.options,
      of.staticPartitions) {

  override def doExecuteWrite(spec: WriteFilesSpec): RDD[WriterCommitMessage] = {
    val description = spec.description
    super.doExecuteWrite(spec.copy(description = new WriteJobDescription(
      description.uuid,
      new SharedConfiguration(description.serializableHadoopConf.value, sparkContext),
      description.outputWriterFactory,
      description.allColumns,
      description.dataColumns,
      description.partitionColumns,
      description.bucketSpec,
      description.path,
      description.customPartitionLocations,
      description.maxRecordsPerFile,
      description.timeZoneId,
      description.statsTrackers)))
  }
}

private[write] object DirectWriteFiles {

  /** Throws a linkage error in a Spark whose job description differs. */
  def check(): Unit = new WriteJobDescription("", null, null, Nil, Nil, Nil, None, "", Map.empty, 0, "", Nil)
}

/** A configuration that each task copies from its executor's. */
private[write] class SharedConfiguration(@transient conf: Configuration, @transient context: SparkContext)
    extends SerializableConfiguration(conf) {

  @transient private val shared = context.broadcast(new SerializableConfiguration(conf))

  private def writeReplace: AnyRef = new SharedConfiguration.Reference(shared)
}

private[write] object SharedConfiguration {

  /** The serialised form. */
  private final class Reference(shared: Broadcast[SerializableConfiguration]) extends Serializable {
    private def readResolve: AnyRef = new SerializableConfiguration(new Configuration(shared.value.value))
  }
}
