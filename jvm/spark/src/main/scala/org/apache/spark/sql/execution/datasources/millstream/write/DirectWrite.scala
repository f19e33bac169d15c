package org.apache.spark.sql.execution.datasources.millstream.write

import java.io.{InterruptedIOException, IOException}
import java.util.UUID

import scala.jdk.CollectionConverters._

import io.millstream.write.protocol._
import io.millstream.write.store.{Causes, Names, StagedFile, SwapDirectories, UnsuitedException}
import io.millstream.write.store.WriteOptions.Visibility
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter

import org.apache.spark.{SparkContext, SparkException}
import org.apache.spark.internal.Logging
import org.apache.spark.internal.io.FileCommitProtocol
import org.apache.spark.sql.catalyst.catalog.{BucketSpec, CatalogTable}
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.{FileFormat, FileFormatWriter, WriteFilesExec}
import org.apache.spark.sql.execution.datasources.millstream.internals.Reflected
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.util.{SerializableConfiguration, Utils}

/**
 * One INSERT.
 *
 * @param name the target's name, for the log
 * @param root the table's directory
 * @param within the directory, relative to the root, that holds the writer's partition directories; "" for the root
 * @param static the directory, relative to the root, of the static partition; "" if there is none
 * @param marksSuccess whether to write the empty success mark of Hadoop's committers, for which other programs wait
 * @param change the change of the catalog, if there is one
 * @param visibility how the write becomes visible
 * @param moved directories of partitions that earlier swaps have moved
 * @param table the table, if the catalog has it
 * @param reads guards of the tables that the statement has read
 * @param maxPartitions the maximum number of partitions that the statement may write, and the key of this setting
 */
private[sql] final case class DirectWrite(
    name: String,
    root: Path,
    within: String,
    static: String,
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
    visibility: Visibility,
    moved: Map[String, String],
    table: Option[CatalogTable],
    reads: Seq[ReadGuard],
    maxPartitions: Option[(Int, String)] = None) extends Logging {

  /**
   * Runs the INSERT.
   *
   * @param refresh refreshes the session's information about the table after a commit, even if the commit could not be
   *     completely carried out
   * @param beforeJob Spark's callback for the time at which only the query can still fail
   * @param stock Spark's own write, for file systems that turn out to lack a required feature
   */
  def run(
      session: SparkSession,
      query: SparkPlan,
      metrics: Map[String, SQLMetric],
      refresh: () => Unit,
      beforeJob: () => Unit = () => ())(stock: => Unit): Unit = {
    var hasBegun = false
    var isCommitted = false
    try {
      Utils.tryWithSafeFinally(write(
        session,
        query,
        metrics,
        beforeJob,
        () => hasBegun = true,
        () => isCommitted = true))(if (isCommitted) refresh())
    } catch {
      case e: UnsuitedException if !hasBegun =>
        ReplaceInserts.warn(name, e.getMessage)
        stock
    }
  }

  private def write(
      session: SparkSession,
      query: SparkPlan,
      metrics: Map[String, SQLMetric],
      beforeJob: () => Unit,
      afterBegin: () => Unit,
      afterCommit: () => Unit): Unit = {
    val context = session.sparkContext
    val id = UUID.randomUUID().toString
    Placement.prepare(conf)
    val directories = Directories(id, visibility, moved)
    var outcome: Option[(CommitOutcome, Long)] = None
    val protocol = new DirectCommitProtocol(
      id,
      within,
      directories,
      begin = () => {
        val job = begin(session, id, directories.below(static))
        afterBegin()
        job
      },
      commit = (job, files) =>
        try {
          outcome = Some(commit(session, job, files, directories))
          afterCommit()
        } catch {
          case e @ (_: CommittedException | _: SupersededException) =>
            afterCommit()
            throw e
          case e: CreatedMeanwhile =>
            job.abort()
            afterCommit() // another statement has committed
            logInfo(s"Nothing is written to $name: another statement has created ${e.names} since this one began")
        })
    FilesOfQuery.write(session, query, this, protocol, Seq(DirectWriteMetrics.tracker(metrics)), beforeJob)
    outcome.foreach { case (done, millis) =>
      DirectWriteMetrics.post(context, metrics, done, millis, partitionColumns.nonEmpty)
      logInfo(s"Direct write of $name: ${describe(done, millis)}")
      if (marksSuccess && conf.getBoolean(FileOutputCommitter.SUCCESSFUL_JOB_OUTPUT_DIR_MARKER, true))
        markSuccess(directories)
    }
  }

  /** Begins the job. Failures become Spark's exception, as for failing tasks. */
  private def begin(session: SparkSession, id: String, below: String): DirectJob =
    try {
      DirectJob.begin(root, id, below, conf, CatalogMetastore.of(session, table))
    } catch {
      case e: UnsuitedException => throw e
      case e: IOException => throw new SparkException(s"Nothing can be written to $name: ${Causes.text(e)}", e)
    }

  private def markSuccess(directories: Directories): Unit = {
    val directory = if (within.isEmpty && partitionColumns.nonEmpty) root
    else TableLocations.at(root, directories.destination(within))
    val marker = new Path(directory, FileOutputCommitter.SUCCEEDED_FILE_NAME)
    try {
      root.getFileSystem(conf).create(marker, true).close()
    } catch {
      case e: IOException =>
        throw new IOException(s"the write of $name is committed and finished, but $marker could not be created", e)
    }
  }

  private def commit(
      session: SparkSession,
      job: DirectJob,
      files: Seq[StagedFile],
      directories: Directories): (CommitOutcome, Long) = {
    maxPartitions.foreach { case (max, key) =>
      val written = files.iterator.map(_.directory).distinct.size
      if (written > max)
        throw QueryExecutionErrors.writePartitionExceedConfigSizeWhenDynamicPartitionError(written, max, key)
    }
    val plan = new CommitPlan(files.asJava, overwrite)
      .distribution(batches => distribute(session.sparkContext, batches.asScala.toSeq))
      .listener(new CommitLog(name))
      .neighbours(used => ReadTables.finishOthers(session, root, used.asScala.toSeq.map(Names.path(root, _)), conf))
    if (visibility == Visibility.EXCHANGE)
      plan.exchange(made => directories.destination(SwapDirectories.partition(made)))
    change.foreach { catalog =>
      val commit = new CatalogCommit(
        catalog,
        directories,
        overwrite.directories.asScala.toSeq,
        CatalogMetastore.of(session, table))
      plan.survey(touched => commit.find(touched.asScala.toSet)).metastore(draft => commit.plan(draft))
    }
    val (own, others) = reads.partition(read => TableLocations.isSame(read.root, root))
    own.foreach(read => plan.hasRead(read.version))
    others.foreach(_.check(conf))
    Utils.timeTakenMs(job.commit(plan))
  }

  /** Runs the parts of a commit that is too large for the driver as a Spark job. */
  private def distribute(context: SparkContext, batches: Seq[ApplyBatch]): Unit = {
    val hadoopConf = context.broadcast(new SerializableConfiguration(conf))
    val description = context.getLocalProperty(SparkContext.SPARK_JOB_DESCRIPTION)
    context.setJobDescription(s"Millstream commits to $name")
    try {
      context.parallelize(batches, batches.length).foreach(_.run(hadoopConf.value.value))
    } catch {
      case e: InterruptedException =>
        Thread.currentThread.interrupt()
        throw new InterruptedIOException(s"the commit to $name was interrupted").initCause(e)
    } finally {
      context.setJobDescription(description)
    }
  }

  private def describe(done: CommitOutcome, millis: Long): String = {
    val phases = CommitPlan.Phase.values.toSeq.flatMap { phase =>
      Option(done.nanos.get(phase)).map(nanos => s"${phase.name.toLowerCase(java.util.Locale.ROOT)} ${nanos / 1000000}")
    }
    val requests = done.requests + done.uploadRequests
    s"${done.addedFiles} files of ${Utils.bytesToString(done.addedBytes)} in ${done.directories} directories, ${done.deletedFiles} old " +
      s"files deleted; ${if (requests > 0) s"$requests requests, " else ""}commit $millis ms (${phases.mkString(", ")})"
  }
}

/** Spark's writer, which takes an additional argument since 4.3. */
private[millstream] object FilesOfQuery {
  private val write = {
    val until42 = Seq(
      classOf[SparkSession],
      classOf[SparkPlan],
      classOf[FileFormat],
      classOf[FileCommitProtocol],
      classOf[FileFormatWriter.OutputSpec],
      classOf[Configuration],
      classOf[Seq[_]],
      classOf[Option[_]],
      classOf[Seq[_]],
      classOf[Map[_, _]],
      classOf[Int])
    Reflected.method(FileFormatWriter.getClass, "write", until42 :+ classOf[() => _], until42)
  }

  /** Throws a linkage error, before a statement has begun, in a Spark that lacks what `write` needs. */
  def check(): Unit = DirectWriteFiles.check()

  def write(
      session: SparkSession,
      query: SparkPlan,
      what: DirectWrite,
      protocol: DirectCommitProtocol,
      trackers: Seq[DirectWriteMetrics.Tracker],
      beforeJob: () => Unit): Unit = {
    val spec =
      FileFormatWriter.OutputSpec(what.root.toString, Map.empty[TablePartitionSpec, String], what.outputColumns)
    val shared = query match {
      case files: WriteFilesExec => new DirectWriteFiles(files)
      case other => other // without spark.sql.optimizer.plannedWrite.enabled
    }
    Reflected.call(
      write,
      FileFormatWriter,
      session,
      shared,
      what.format,
      protocol,
      spec,
      what.conf,
      what.partitionColumns,
      what.bucketSpec,
      trackers,
      what.options,
      Int.box(what.staticPartitionColumns),
      beforeJob)
  }
}
