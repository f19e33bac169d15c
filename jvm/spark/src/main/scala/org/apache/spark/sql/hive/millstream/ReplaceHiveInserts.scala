package org.apache.spark.sql.hive.millstream

import java.util.Locale

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.millstream.SparkLine
import org.apache.spark.sql.execution.datasources.millstream.write.ReplaceInserts
import org.apache.spark.sql.hive.execution.{InsertIntoHiveDirCommand, InsertIntoHiveTable}

/** Replaces the commands that write by Hive's serdes. */
class ReplaceHiveInserts(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (conf.getConf(ReplaceInserts.Enabled)) {
      plan.resolveOperators {
        case insert: InsertIntoHiveTable if insert.getClass == classOf[InsertIntoHiveTable] =>
          SparkLine.ifItFits(direct(insert)).getOrElse(insert)
        case insert: InsertIntoHiveDirCommand if insert.getClass == classOf[InsertIntoHiveDirCommand] =>
          SparkLine.ifItFits(direct(insert)).getOrElse(insert)
      }
    } else {
      plan
    }

  private def direct(insert: InsertIntoHiveTable): Option[LogicalPlan] =
    Option.when(isOfFiles(insert.table) && ReplaceInserts.suits(new Path(insert.table.location), insert.hiveTmpPath.hadoopConf, conf)) {
      val command = new DirectInsertIntoHiveTable(insert.table, insert.partition, insert.query, insert.overwrite,
        insert.ifPartitionNotExists, insert.outputColumnNames, insert.partitionColumns, insert.bucketSpec, insert.options,
        insert.fileFormat, insert.hiveTmpPath)
      command.copyTagsFrom(insert)
      command
    }

  private def direct(insert: InsertIntoHiveDirCommand): Option[LogicalPlan] = {
    val hadoopConf = session.sessionState.newHadoopConf()
    Option.when(ReplaceInserts.suits(DirectInsertIntoHiveDir.root(insert.isLocal, insert.storage, hadoopConf), hadoopConf, conf)) {
      val command = new DirectInsertIntoHiveDir(insert.isLocal, insert.storage, insert.query, insert.overwrite, insert.outputColumnNames)
      command.copyTagsFrom(insert)
      command
    }
  }

  /** Not a table of another store behind a handler, nor one whose deltas Hive's transactions number. */
  private def isOfFiles(table: CatalogTable): Boolean = {
    val isTransactional = table.properties.exists { case (key, value) => key.equalsIgnoreCase("transactional") && value.equalsIgnoreCase("true") }
    if (isTransactional) ReplaceInserts.warn(table.identifier.unquotedString, "the table is transactional")
    table.storage.locationUri.nonEmpty && !table.properties.keys.exists(_.toLowerCase(Locale.ROOT) == "storage_handler") && !isTransactional
  }
}
