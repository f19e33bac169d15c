package org.apache.spark.sql.execution.datasources.millstream.write

import scala.jdk.CollectionConverters._

import io.millstream.write.protocol.{DirectJob, Placement}
import io.millstream.write.store.{StagedFile, TaskAttempt}
import org.apache.hadoop.mapreduce.{JobContext, TaskAttemptContext}

import org.apache.spark.TaskContext
import org.apache.spark.internal.io.{FileCommitProtocol, FileNameSpec}
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage

/**
 * Tasks write staged files into the table's directories and report them; the driver commits the reported files.
 *
 * @param within the directory, relative to the table's, that contains the writer's directories
 * @param directories the directories of partitions
 * @param begin begins the job, when Spark starts to write
 * @param commit commits the files reported by successful tasks
 */
private[write] final class DirectCommitProtocol(
    jobId: String,
    within: String,
    directories: Directories,
    @transient private val begin: () => DirectJob,
    @transient private val commit: (DirectJob, Seq[StagedFile]) => Unit)
    extends FileCommitProtocol with Serializable {

  @transient private var job: DirectJob = _
  @transient private var attempt: TaskAttempt = _
  private var placement: Placement = _

  override def setupJob(context: JobContext): Unit = {
    job = begin()
    placement = job.placement
  }

  override def commitJob(context: JobContext, messages: Seq[TaskCommitMessage]): Unit = {
    commit(job, messages.flatMap(_.obj.asInstanceOf[Array[StagedFile]]))
    job.close()
  }

  /** Spark calls this after any failure, whether the job is committed or not; the job itself knows. */
  override def abortJob(context: JobContext): Unit =
    if (job != null) {
      try job.abort()
      finally job.close()
    }

  override def setupTask(context: TaskAttemptContext): Unit = {
    val id = context.getTaskAttemptID
    attempt = placement.attempt(s"${id.getTaskID.getId}_${id.getId}", context.getConfiguration)
  }

  override def newTaskTempFile(context: TaskAttemptContext, directory: Option[String], spec: FileNameSpec): String = {
    val split = context.getTaskAttemptID.getTaskID.getId
    val name = f"${spec.prefix}part-$split%05d-$jobId${spec.suffix}"
    attempt.file(directories.of((Seq(within).filter(_.nonEmpty) ++ directory).mkString("/")), name).toString
  }

  override def newTaskTempFile(context: TaskAttemptContext, directory: Option[String], extension: String): String =
    newTaskTempFile(context, directory, FileNameSpec("", extension))

  override def newTaskTempFileAbsPath(context: TaskAttemptContext, directory: String, spec: FileNameSpec): String =
    throw new UnsupportedOperationException(s"$directory is outside the table: such writes are left to Spark")

  override def newTaskTempFileAbsPath(context: TaskAttemptContext, directory: String, extension: String): String =
    newTaskTempFileAbsPath(context, directory, FileNameSpec("", extension))

  override def commitTask(context: TaskAttemptContext): TaskCommitMessage = {
    val files = attempt.commit(path => WrittenRows.areIn(path.toString)).asScala.toArray
    Option(TaskContext.get()).foreach(_.taskMetrics().outputMetrics.setBytesWritten(files.iterator.map(_.bytes).sum))
    new TaskCommitMessage(files)
  }

  override def abortTask(context: TaskAttemptContext): Unit = if (attempt != null) attempt.abort()
}
