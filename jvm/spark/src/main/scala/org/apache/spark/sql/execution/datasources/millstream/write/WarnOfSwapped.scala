package org.apache.spark.sql.execution.datasources.millstream.write

import scala.util.Try

import io.millstream.write.store.SwapDirectories
import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.{AlterTableAddPartitionCommand, RepairTableCommand}

/**
 * Warns if a statement adds partitions from the directories of a table whose partitions `metastore-swap` has moved: these directories may
 * contain replaced files.
 */
class WarnOfSwapped(session: SparkSession) extends Rule[LogicalPlan] with Logging {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case add: AlterTableAddPartitionCommand if add.partitionSpecsAndLocs.exists(_._2.isEmpty) => look(add.tableName, "ALTER TABLE … ADD PARTITION")
      case repair: RepairTableCommand => look(repair.tableName, "MSCK REPAIR TABLE")
      case _ =>
    }
    plan
  }

  private def look(name: TableIdentifier, statement: String): Unit =
    for {
      table <- Try(session.sessionState.catalog.getTableMetadata(name)) if table.storage.locationUri.nonEmpty
      root = SwapDirectories.home(new Path(table.location))
      found <- Try(root.getFileSystem(session.sessionState.newHadoopConf()).listStatus(root)) if found.exists(status => SwapDirectories.isOne(status.getPath.getName))
    } logWarning(s"$statement of ${table.identifier.unquotedString} adds partitions from directories below $root, but overwrites have moved some of its partitions " +
      "to other directories (fs.millstream.write.visibility=metastore-swap): the directories found may contain replaced rows")
}
