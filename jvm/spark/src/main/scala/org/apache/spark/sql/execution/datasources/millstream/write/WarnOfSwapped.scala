package org.apache.spark.sql.execution.datasources.millstream.write

import scala.util.Try

import io.millstream.write.store.SwapDirectories
import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.{
  AlterTableAddPartitionCommand,
  CreateDataSourceTableCommand,
  CreateTableCommand,
  RepairTableCommand
}

/**
 * Warns if a statement finds partitions in the directories of a table whose partitions `metastore-swap` has moved.
 * These directories may contain replaced files, and those of the moved partitions are hidden. A second table on the
 * same directory never learns of the move.
 */
class WarnOfSwapped(session: SparkSession) extends Rule[LogicalPlan] with Logging {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case add: AlterTableAddPartitionCommand if add.partitionSpecsAndLocs.exists(_._2.isEmpty) =>
        look(add.tableName, "ALTER TABLE … ADD PARTITION")
      case repair: RepairTableCommand => look(repair.tableName, "MSCK REPAIR TABLE")
      case create: CreateTableCommand => look(create.table, "CREATE TABLE")
      case create: CreateDataSourceTableCommand => look(create.table, "CREATE TABLE")
      case _ =>
    }
    plan
  }

  private def look(name: TableIdentifier, statement: String): Unit =
    Try(session.sessionState.catalog.getTableMetadata(name)).foreach(look(_, statement))

  private def look(table: CatalogTable, statement: String): Unit =
    for {
      uri <- table.storage.locationUri
      root = SwapDirectories.home(new Path(uri))
      found <- Try(root.getFileSystem(session.sessionState.newHadoopConf()).listStatus(root))
      if found.exists(status => SwapDirectories.isOne(status.getPath.getName))
    } logWarning(s"$statement of ${table.identifier.unquotedString} uses the directories below $root, but overwrites of it, or of another table on this directory, have " +
      "moved partitions to other directories (fs.millstream.write.visibility=metastore-swap): the directories found may contain replaced rows, which are " +
      "deleted later, and the moved partitions are not found")
}
