package org.apache.spark.sql.hive.millstream

import java.util.Locale

import scala.jdk.CollectionConverters._

import io.millstream.write.Overwrite
import org.apache.hadoop.fs.Path
import org.apache.hadoop.hive.conf.HiveConf.ConfVars

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.catalog.{BucketSpec, CatalogTable, CatalogTablePartition}
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.getPartitionPathString
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.CommandUtils
import org.apache.spark.sql.execution.datasources.FileFormat
import org.apache.spark.sql.execution.datasources.millstream.write.{CatalogChange, DirectWrite, DirectWriteMetrics, ReplaceInserts}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.hive.execution.{HiveTempPath, InsertIntoHiveTable}

/** Writes files into a table by its serde, where Spark's command writes them elsewhere and has Hive move them. */
class DirectInsertIntoHiveTable(
    table: CatalogTable,
    partition: Map[String, Option[String]],
    query: LogicalPlan,
    overwrite: Boolean,
    ifPartitionNotExists: Boolean,
    outputColumnNames: Seq[String],
    partitionColumns: Seq[Attribute],
    bucketSpec: Option[BucketSpec],
    options: Map[String, String],
    fileFormat: FileFormat,
    hiveTmpPath: HiveTempPath)
  extends InsertIntoHiveTable(table, partition, query, overwrite, ifPartitionNotExists, outputColumnNames, partitionColumns, bucketSpec,
    options, fileFormat, hiveTmpPath) {

  override lazy val metrics: Map[String, SQLMetric] = DirectWriteMetrics.create()

  /** Otherwise a rule that puts it in the other's place would seem to have changed nothing. */
  override def canEqual(other: Any): Boolean = other.isInstanceOf[DirectInsertIntoHiveTable]

  override protected def withNewChildInternal(newChild: LogicalPlan): InsertIntoHiveTable =
    new DirectInsertIntoHiveTable(table, partition, newChild, overwrite, ifPartitionNotExists, outputColumnNames, partitionColumns,
      bucketSpec, options, fileFormat, hiveTmpPath)

  override def run(session: SparkSession, child: SparkPlan): Seq[Row] = {
    val hadoopConf = hiveTmpPath.hadoopConf
    val location = new Path(table.location)
    val fileSystem = location.getFileSystem(hadoopConf)
    val root = fileSystem.makeQualified(location)
    val known = knownPartitions(session)
    val elsewhere = known.find(found => fileSystem.makeQualified(new Path(found.location)) != new Path(root, directory(found.spec)))
    elsewhere.foreach(found => ReplaceInserts.warn(table.identifier.unquotedString, s"a partition of the table is at ${found.location}"))
    if (elsewhere.nonEmpty || ifPartitionNotExists && known.nonEmpty) {
      super.run(session, child)
    } else {
      directWrite(root, isNew = known.isEmpty).run(session, child, metrics)
      CommandUtils.uncacheTableOrView(session, table.identifier)
      session.sessionState.catalog.refreshTable(table.identifier)
      CommandUtils.updateTableStats(session, table)
      Nil
    }
  }

  private val columns: Seq[String] = table.partitionColumnNames.map(_.toLowerCase(Locale.ROOT))

  private def static: TablePartitionSpec = getPartitionSpec(partition.filter(_._2.nonEmpty))

  private def knownPartitions(session: SparkSession): Seq[CatalogTablePartition] = {
    val catalog = session.sharedState.externalCatalog
    if (columns.isEmpty) Nil
    else if (partitionColumns.isEmpty) catalog.getPartitionOption(table.database, table.identifier.table, static).toSeq
    else catalog.listPartitions(table.database, table.identifier.table, Option.when(static.nonEmpty)(static))
  }

  /** The directory of the columns, in their order, that a specification has. Hive's names are in lower case. */
  private def directory(spec: TablePartitionSpec): String = {
    val values = spec.map { case (column, value) => column.toLowerCase(Locale.ROOT) -> value }
    columns.flatMap(column => values.get(column).map(getPartitionPathString(column, _))).mkString("/")
  }

  private def directWrite(root: Path, isNew: Boolean): DirectWrite = {
    val hadoopConf = hiveTmpPath.hadoopConf
    val within = directory(static)
    val isDynamic = partitionColumns.nonEmpty
    val limit = ConfVars.DYNAMICPARTITIONMAXPARTS
    DirectWrite(
      name = table.identifier.unquotedString,
      root = root,
      within = within,
      overwrite = if (!overwrite) Overwrite.nothing() else if (isDynamic) Overwrite.touched() else Overwrite.below(List(within).asJava),
      conf = hadoopConf,
      format = fileFormat,
      outputColumns = outputColumns,
      partitionColumns = partitionColumns,
      staticPartitionColumns = 0,
      bucketSpec = bucketSpec,
      options = options,
      // Hive moves a partition's directory with this file in it, but single files without it.
      marksSuccess = !isDynamic && columns.nonEmpty && (overwrite || isNew),
      change = Some(CatalogChange(table, root, hadoopConf, replaces = overwrite,
        overwritten = Nil, always = if (isDynamic || columns.isEmpty) Nil else Seq(within), ofTable = true)),
      maxPartitions = Option.when(isDynamic)(hadoopConf.getInt(limit.varname, limit.defaultIntVal) -> limit.varname))
  }
}
