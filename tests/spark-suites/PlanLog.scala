package org.apache.spark.millstream.suites

import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.execution.SparkPlanInfo
import org.apache.spark.sql.execution.ui.{SparkListenerSQLAdaptiveExecutionUpdate, SparkListenerSQLExecutionStart}

/**
 * Logs every plan with a native scan, so that `run` can count them for each suite. The class is below
 * `org.apache.spark`, whose logging the session with Hive does not disable.
 */
class PlanLog extends SparkListener with Logging {
  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case start: SparkListenerSQLExecutionStart => logNativeScan(start.executionId, start.sparkPlanInfo)
    case update: SparkListenerSQLAdaptiveExecutionUpdate => logNativeScan(update.executionId, update.sparkPlanInfo)
    case _ =>
  }

  private def logNativeScan(execution: Long, plan: SparkPlanInfo): Unit =
    if (hasNativeScan(plan)) logInfo(s"native scan in query $execution")

  private def hasNativeScan(plan: SparkPlanInfo): Boolean =
    plan.nodeName.matches(".*\\(Native\\w+Scan\\)") || plan.children.exists(hasNativeScan)
}
