package org.apache.spark.sql.execution.datasources.millstream.write

import scala.collection.mutable

import io.millstream.write.protocol.{CommitOutcome, CommitPlan}

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

/**
 * The files to which this thread's task has written rows. Trackers record them for the commit protocol, which Spark
 * creates separately.
 */
private[write] object WrittenRows {
  final class Paths {
    private val paths = mutable.Set.empty[String]
    private var last = ""

    def add(path: String): Unit = if (path != last) {
      last = path
      paths += path
    }

    def contains(path: String): Boolean = paths(path)
  }

  private val current = new ThreadLocal[Paths]

  def begin(): Paths = {
    current.set(new Paths)
    current.get
  }

  def areIn(path: String): Boolean = Option(current.get).exists(_.contains(path))
}

/** A direct write's metrics in the SQL tab: those of Spark's own writes, and the phases of the commit. */
private[sql] object DirectWriteMetrics {
  private val Replaced = "numReplacedFiles"
  private val Requests = "numRequests"
  private val UploadRequests = "numUploadRequests"
  private val Rows = "numOutputRows"

  private val Phases = CommitPlan.Phase.values.toSeq.map(phase =>
    phase -> (phase match {
      case CommitPlan.Phase.LOCK => "commit: time waiting for other writers"
      case CommitPlan.Phase.LIST => "commit: time listing old files"
      case CommitPlan.Phase.RECORD => "commit: time writing the commit record"
      case CommitPlan.Phase.PUBLISH => "commit: time publishing new files"
      case CommitPlan.Phase.DELETE => "commit: time deleting old files"
      case CommitPlan.Phase.METASTORE => "commit: time updating the metastore"
      case CommitPlan.Phase.CLEAN => "commit: time cleaning up"
    }))

  def create(): Map[String, SQLMetric] = {
    val context = SparkContext.getActive.get
    BasicWriteJobStatsTracker.metrics ++
      Seq(
        Replaced -> "number of replaced files",
        Requests -> "requests by the driver",
        UploadRequests -> "upload requests by tasks")
        .map { case (key, name) => key -> SQLMetrics.createMetric(context, name) } ++
      Phases.map { case (phase, name) => phase.name -> SQLMetrics.createNanoTimingMetric(context, name) }
  }

  def post(
      context: SparkContext,
      metrics: Map[String, SQLMetric],
      outcome: CommitOutcome,
      commitMillis: Long,
      isPartitioned: Boolean): Unit = {
    metrics("numFiles").set(outcome.addedFiles)
    metrics("numOutputBytes").set(outcome.addedBytes)
    metrics("numParts").set(if (isPartitioned) outcome.directories.toLong else 0L)
    metrics(BasicWriteJobStatsTracker.JOB_COMMIT_TIME).set(commitMillis)
    metrics(Replaced).set(outcome.deletedFiles)
    metrics(Requests).set(outcome.requests)
    metrics(UploadRequests).set(outcome.uploadRequests)
    outcome.nanos.forEach((phase, nanos) => metrics(phase.name).set(nanos))
    // Zero means that the file system does not count requests, so they are not shown.
    val unknown = Seq(Requests, UploadRequests).filter(metrics(_).value == 0)
    SQLMetrics.postDriverMetricUpdates(
      context,
      context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      (metrics - BasicWriteJobStatsTracker.TASK_COMMIT_TIME -- unknown).values.toSeq)
  }

  /** Counts rows. Spark's tracker also requests the size of every file, which the commit protocol already knows. */
  final class Tracker(@transient private val rows: SQLMetric, taskCommitTime: SQLMetric) extends WriteJobStatsTracker {
    override def newTaskInstance(): WriteTaskStatsTracker = new TaskTracker(taskCommitTime)
    override def processStats(stats: Seq[WriteTaskStats], jobCommitMillis: Long): Unit =
      rows.set(stats.iterator.map(_.asInstanceOf[TaskRows].count).sum)
  }

  def tracker(metrics: Map[String, SQLMetric]): Tracker =
    new Tracker(metrics(Rows), metrics(BasicWriteJobStatsTracker.TASK_COMMIT_TIME))

  private final case class TaskRows(count: Long) extends WriteTaskStats

  private final class TaskTracker(taskCommitTime: SQLMetric) extends WriteTaskStatsTracker {
    private var rows = 0L
    private val written = WrittenRows.begin()

    override def newPartition(partitionValues: InternalRow): Unit = ()
    override def newFile(path: String): Unit = ()
    override def closeFile(path: String): Unit = ()
    override def newRow(path: String, row: InternalRow): Unit = {
      rows += 1
      written.add(path)
    }
    override def getFinalStats(commitMillis: Long): WriteTaskStats = {
      taskCommitTime += commitMillis
      Option(TaskContext.get()).foreach(_.taskMetrics().outputMetrics.setRecordsWritten(rows))
      TaskRows(rows)
    }
  }
}
