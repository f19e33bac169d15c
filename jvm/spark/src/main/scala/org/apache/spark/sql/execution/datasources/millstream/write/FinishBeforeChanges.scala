package org.apache.spark.sql.execution.datasources.millstream.write

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTableType
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.{AlterTableDropPartitionCommand, AlterTableRenameCommand, AlterTableRenamePartitionCommand}
import org.apache.spark.sql.execution.command.{AlterTableSetLocationCommand, DropTableCommand, LoadDataCommand, TruncateTableCommand}
import org.apache.spark.sql.execution.datasources.millstream.Keys

/**
 * Finishes the committed writes to a table before a statement empties, drops, renames or moves it or its partitions, or loads files into it. Such a
 * write comes first. Otherwise it would find its files gone, and could not be finished, or would bring its rows back later.
 */
class FinishBeforeChanges(session: SparkSession) extends Rule[LogicalPlan] with Logging {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (Keys.get(conf, ReplaceInserts.Enabled)) changed(plan).foreach(finish)
    plan
  }

  private def changed(plan: LogicalPlan): Option[TableIdentifier] = plan match {
    case truncate: TruncateTableCommand => Some(truncate.tableName)
    case drop: AlterTableDropPartitionCommand => Some(drop.tableName)
    case drop: DropTableCommand if !drop.isView => Some(drop.tableName)
    case rename: AlterTableRenameCommand if !rename.isView => Some(rename.oldName)
    case rename: AlterTableRenamePartitionCommand => Some(rename.tableName)
    case move: AlterTableSetLocationCommand => Some(move.tableName)
    case load: LoadDataCommand => Some(load.table)
    case _ => None
  }

  private def finish(name: TableIdentifier): Unit =
    for {
      table <- Try(session.sessionState.catalog.getTableMetadata(name)) if table.tableType != CatalogTableType.VIEW
      uri <- table.storage.locationUri
    } try ReadTables.finishWrites(session, new Path(uri), Some(table), session.sessionState.newHadoopConf()) catch {
      case NonFatal(e) if !ReadTables.isUnreachable(e) => logWarning(s"A write to ${table.identifier.unquotedString} is not finished before the table is changed: ${e.getMessage}")
      case NonFatal(_) => // What cannot be reached has no write that this statement could disturb.
    }
}
