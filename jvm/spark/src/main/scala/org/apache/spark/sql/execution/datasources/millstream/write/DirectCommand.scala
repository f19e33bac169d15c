package org.apache.spark.sql.execution.datasources.millstream.write

import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.metric.SQLMetric

/** A command of Spark's that writes directly. */
private[sql] trait DirectCommand extends DataWritingCommand {
  override lazy val metrics: Map[String, SQLMetric] = DirectWriteMetrics.create()

  /** Otherwise a rule that puts it in the other's place would seem to have changed nothing. */
  override def canEqual(other: Any): Boolean = getClass.isInstance(other)
}
