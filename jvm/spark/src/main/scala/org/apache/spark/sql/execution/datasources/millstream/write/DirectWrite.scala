package org.apache.spark.sql.execution.datasources.millstream.write

import java.lang.reflect.InvocationTargetException
import java.util.UUID

import scala.jdk.CollectionConverters._

import io.millstream.write._
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.catalog.BucketSpec
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.{FileFormat, FileFormatWriter}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.util.{SerializableConfiguration, Utils}

/**
 * One INSERT.
 *
 * @param name of what is written, for the log
 * @param root the table's directory
 * @param within the directory, relative to the root, that holds the writer's partition directories; "" for the root
 * @param marksSuccess whether the directory written gets the empty file that Hadoop's committers leave, for which other programs wait
 * @param change what the catalog is to be told, if it is to be told anything
 * @param maxPartitions how many partitions the statement may write, and the setting that says so
 */
private[sql] final case class DirectWrite(
    name: String,
    root: Path,
    within: String,
    overwrite: Overwrite,
    conf: Configuration,
    format: FileFormat,
    outputColumns: Seq[Attribute],
    partitionColumns: Seq[Attribute],
    staticPartitionColumns: Int,
    bucketSpec: Option[BucketSpec],
    options: Map[String, String],
    marksSuccess: Boolean,
    change: Option[CatalogChange],
    maxPartitions: Option[(Int, String)] = None) extends Logging {

  /**
   * Runs it.
   *
   * @param beforeJob what Spark wants to do once nothing but the query can fail any more
   */
  def run(session: SparkSession, query: SparkPlan, metrics: Map[String, SQLMetric], beforeJob: () => Unit = () => ()): Unit = {
    val context = session.sparkContext
    val id = UUID.randomUUID().toString
    var outcome: Option[(CommitOutcome, Long)] = None
    val protocol = new DirectCommitProtocol(id, within,
      begin = () => DirectJob.begin(root, id, conf, CatalogMetastore.of(session)),
      commit = (job, files) => outcome = Some(commit(context, job, files)))
    FilesOfQuery.write(session, query, this, protocol, Seq(DirectWriteMetrics.tracker(metrics)), beforeJob)
    if (marksSuccess && conf.getBoolean(FileOutputCommitter.SUCCESSFUL_JOB_OUTPUT_DIR_MARKER, true)) markSuccess()
    outcome.foreach { case (done, millis) =>
      DirectWriteMetrics.post(context, metrics, done, millis, partitionColumns.nonEmpty)
      logInfo(s"Direct write of $name: ${describe(done, millis)}")
    }
  }

  private def markSuccess(): Unit = {
    val directory = if (within.isEmpty) root else new Path(root, within)
    root.getFileSystem(conf).create(new Path(directory, FileOutputCommitter.SUCCEEDED_FILE_NAME), true).close()
  }

  private def commit(context: SparkContext, job: DirectJob, files: Seq[PendingFile]): (CommitOutcome, Long) = {
    maxPartitions.foreach { case (max, key) =>
      val written = files.iterator.map(_.directory).distinct.size
      if (written > max) throw QueryExecutionErrors.writePartitionExceedConfigSizeWhenDynamicPartitionError(written, max, key)
    }
    val plan = new CommitPlan(files.asJava, overwrite).distribution(batches => distribute(context, batches.asScala.toSeq))
    change.foreach(catalog => plan.metastore(draft => catalog.plan(draft)))
    Utils.timeTakenMs(job.commit(plan))
  }

  /** A commit that is too large for the driver alone. */
  private def distribute(context: SparkContext, batches: Seq[ApplyBatch]): Unit = {
    val hadoopConf = context.broadcast(new SerializableConfiguration(conf))
    val description = context.getLocalProperty(SparkContext.SPARK_JOB_DESCRIPTION)
    context.setJobDescription(s"Millstream commits to $name")
    try context.parallelize(batches, batches.length).foreach(_.run(hadoopConf.value.value))
    finally context.setJobDescription(description)
  }

  private def describe(done: CommitOutcome, millis: Long): String = {
    val phases = CommitPlan.Phase.values.toSeq.flatMap { phase =>
      Option(done.nanos.get(phase)).map(nanos => s"${phase.name.toLowerCase(java.util.Locale.ROOT)} ${nanos / 1000000}")
    }
    s"${done.addedFiles} files of ${Utils.bytesToString(done.addedBytes)} in ${done.directories} directories, ${done.deletedFiles} old " +
      s"files deleted; commit $millis ms (${phases.mkString(", ")})"
  }
}

/** Spark's writer, which takes one argument more since 4.3. */
private object FilesOfQuery {
  private val write = FileFormatWriter.getClass.getMethods.find(_.getName == "write")
    .getOrElse(throw new NoSuchMethodError("FileFormatWriter.write"))

  def write(
      session: SparkSession,
      query: SparkPlan,
      what: DirectWrite,
      protocol: DirectCommitProtocol,
      trackers: Seq[DirectWriteMetrics.Tracker],
      beforeJob: () => Unit): Unit = {
    val spec = FileFormatWriter.OutputSpec(what.root.toString, Map.empty[TablePartitionSpec, String], what.outputColumns)
    val arguments = Seq[AnyRef](session, query, what.format, protocol, spec, what.conf, what.partitionColumns, what.bucketSpec, trackers,
      what.options, Int.box(what.staticPartitionColumns), beforeJob)
    try {
      write.invoke(FileFormatWriter, arguments.take(write.getParameterCount): _*)
    } catch {
      case e: InvocationTargetException => throw e.getCause
    }
  }
}
