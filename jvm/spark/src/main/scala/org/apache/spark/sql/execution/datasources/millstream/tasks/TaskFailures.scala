package org.apache.spark.sql.execution.datasources.millstream.tasks

import org.apache.spark.SparkContext
import org.apache.spark.internal.config
import org.apache.spark.scheduler.TaskSchedulerImpl

/** How often tasks may fail. */
object TaskFailures {

  /** The number of attempts after which Spark gives up a task: `spark.task.maxFailures`, or that of a local master. */
  def allowed(context: SparkContext): Int = context.taskScheduler match {
    case known: TaskSchedulerImpl => known.maxTaskFailures
    case _ => context.conf.get(config.TASK_MAX_FAILURES)
  }
}
