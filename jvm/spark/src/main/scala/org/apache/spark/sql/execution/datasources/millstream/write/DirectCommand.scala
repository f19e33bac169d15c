package org.apache.spark.sql.execution.datasources.millstream.write

import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.metric.SQLMetric

/** A Spark command that writes directly. */
private[sql] trait DirectCommand extends DataWritingCommand {
  override lazy val metrics: Map[String, SQLMetric] = DirectWriteMetrics.create()

  /**
   * Not equal to Spark's command: otherwise a rule that replaces the one by the other would seem to
   * have changed nothing.
   */
  override def canEqual(other: Any): Boolean = getClass.isInstance(other)
}
