package io.millstream.spark.sync

import org.apache.spark.SparkContext

/** Describes the jobs that an action starts, for Spark's UI. */
private[sync] final class Jobs(context: SparkContext, title: String) {
  def apply[T](what: String)(action: => T): T = {
    val before = context.getLocalProperty(Jobs.Description)
    context.setJobDescription(s"$title: $what")
    try action
    finally context.setJobDescription(before)
  }
}

private object Jobs {
  private val Description = "spark.job.description"
}
