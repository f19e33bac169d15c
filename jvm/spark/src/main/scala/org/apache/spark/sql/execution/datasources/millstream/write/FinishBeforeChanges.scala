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
import org.apache.spark.sql.execution.command.{
  AlterTableDropPartitionCommand,
  AlterTableRenameCommand,
  AlterTableRenamePartitionCommand
}
import org.apache.spark.sql.execution.command.{
  AlterTableSetLocationCommand,
  DropDatabaseCommand,
  DropTableCommand,
  LoadDataCommand
}
import org.apache.spark.sql.execution.command.TruncateTableCommand
import org.apache.spark.sql.execution.datasources.millstream.settings.{Keys, Switches}

/**
 * Finishes the committed writes to a table before a statement empties, drops, renames or moves it or its partitions, or
 * loads files into it. Otherwise the write could not be finished, or would bring its rows back later.
 */
class FinishBeforeChanges(session: SparkSession) extends Rule[LogicalPlan] with Logging {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (Keys.get(conf, Switches.DirectWrites)) tablesChangedBy(plan).foreach(finish)
    plan
  }

  private def tablesChangedBy(plan: LogicalPlan): Seq[TableIdentifier] = plan match {
    case truncate: TruncateTableCommand => Seq(truncate.tableName)
    case drop: AlterTableDropPartitionCommand => Seq(drop.tableName)
    case drop: DropTableCommand if !drop.isView => Seq(drop.tableName)
    case rename: AlterTableRenameCommand if !rename.isView => Seq(rename.oldName)
    case rename: AlterTableRenamePartitionCommand => Seq(rename.tableName)
    case move: AlterTableSetLocationCommand => Seq(move.tableName)
    case load: LoadDataCommand => Seq(load.table)
    case drop: DropDatabaseCommand if drop.cascade =>
      Try(session.sessionState.catalog.listTables(drop.databaseName)).getOrElse(Nil)
    case _ => Nil
  }

  private def finish(name: TableIdentifier): Unit =
    for {
      table <- Try(session.sessionState.catalog.getTableMetadata(name)) if table.tableType != CatalogTableType.VIEW
      uri <- table.storage.locationUri
    }
      try ReadTables.finishWrites(session, new Path(uri), Some(table), session.sessionState.newHadoopConf())
      catch {
        case NonFatal(e) if !ReadTables.isUnreachable(e) =>
          logWarning(
            s"A write to ${table.identifier.unquotedString} could not be finished before the table is changed: ${e.getMessage}")
        case NonFatal(_) => // An unreachable location has no unfinished write to protect.
      }
}
