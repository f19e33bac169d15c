package org.apache.spark.sql.hive.millstream

import java.util.Locale

import scala.jdk.CollectionConverters._

import io.millstream.write.protocol.Overwrite
import io.millstream.write.store.{SwapDirectories, WriteOptions}
import io.millstream.write.store.WriteOptions.Visibility
import org.apache.hadoop.fs.Path
import org.apache.hadoop.hive.conf.HiveConf.ConfVars

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.catalog.{BucketSpec, CatalogTable, CatalogTablePartition, CatalogTableType}
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.CommandUtils
import org.apache.spark.sql.execution.datasources.FileFormat
import org.apache.spark.sql.execution.datasources.millstream.write.{
  CatalogChange,
  DirectCommand,
  DirectWrite,
  ReadTables,
  ReplaceInserts,
  TableLocations
}
import org.apache.spark.sql.hive.execution.{HiveTempPath, InsertIntoHiveTable}

/**
 * Writes files into a table with its serde; Spark's own command writes them elsewhere and lets Hive move them.
 */
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
    extends InsertIntoHiveTable(
      table,
      partition,
      query,
      overwrite,
      ifPartitionNotExists,
      outputColumnNames,
      partitionColumns,
      bucketSpec,
      options,
      fileFormat,
      hiveTmpPath)
    with DirectCommand {

  override protected def withNewChildInternal(newChild: LogicalPlan): InsertIntoHiveTable =
    new DirectInsertIntoHiveTable(
      table,
      partition,
      newChild,
      overwrite,
      ifPartitionNotExists,
      outputColumnNames,
      partitionColumns,
      bucketSpec,
      options,
      fileFormat,
      hiveTmpPath)

  override def run(session: SparkSession, child: SparkPlan): Seq[Row] = {
    val hadoopConf = hiveTmpPath.hadoopConf
    val location = new Path(ReadTables.finishWrites(
      session,
      new Path(table.location),
      Some(table),
      hadoopConf).getOrElse(table).location)
    val fileSystem = location.getFileSystem(hadoopConf)
    val root = SwapDirectories.home(fileSystem.makeQualified(location))
    val known = knownPartitions(session)
    val locations = TableLocations(
      fileSystem,
      root,
      if (columns.isEmpty) Seq("" -> location)
      else known.map(found => directory(found.spec) -> new Path(found.location)))
    val visibility =
      TableLocations.visibility(table.identifier.unquotedString, root, overwrite, columns.nonEmpty, hadoopConf)(
        Option.when(
          columns.isEmpty && table.tableType == CatalogTableType.MANAGED)(TableLocations.ManagedWithoutPartitions))
    if (ifPartitionNotExists && known.nonEmpty ||
      ReplaceInserts.lacksNames(
        table.identifier.unquotedString,
        root,
        directory(static),
        partitionColumns,
        overwrite,
        hadoopConf) || locations.isOutOfReach(table.identifier.unquotedString, visibility, overwrite, hadoopConf)) {
      super.run(session, child)
    } else {
      directWrite(
        locations,
        visibility,
        isNew = known.isEmpty).run(session, child, metrics, () => refresh(session))(super.run(session, child))
      Nil
    }
  }

  private def refresh(session: SparkSession): Unit = {
    CommandUtils.uncacheTableOrView(session, table.identifier)
    session.sessionState.catalog.refreshTable(table.identifier)
    CommandUtils.updateTableStats(session, table)
  }

  private val columns: Seq[String] = table.partitionColumnNames.map(_.toLowerCase(Locale.ROOT))

  private def static: TablePartitionSpec = getPartitionSpec(partition.filter(_._2.nonEmpty))

  private def knownPartitions(session: SparkSession): Seq[CatalogTablePartition] = {
    val catalog = session.sharedState.externalCatalog
    if (columns.isEmpty) Nil
    else if (partitionColumns.isEmpty) catalog.getPartitionOption(table.database, table.identifier.table, static).toSeq
    else catalog.listPartitions(table.database, table.identifier.table, Option.when(static.nonEmpty)(static))
  }

  /** Hive's names are in lower case. */
  private def directory(spec: TablePartitionSpec): String =
    TableLocations.directory(columns, spec.map { case (column, value) => column.toLowerCase(Locale.ROOT) -> value })

  private def directWrite(locations: TableLocations, visibility: Visibility, isNew: Boolean): DirectWrite = {
    val hadoopConf = hiveTmpPath.hadoopConf
    val inherit = ConfVars.HIVE_WAREHOUSE_SUBDIR_INHERIT_PERMS
    if (hadoopConf.getBoolean(inherit.varname, inherit.defaultBoolVal)) WriteOptions.inheritAccess(hadoopConf)
    val within = directory(static)
    val isDynamic = partitionColumns.nonEmpty
    val limit = ConfVars.DYNAMICPARTITIONMAXPARTS
    DirectWrite(
      name = table.identifier.unquotedString,
      root = locations.root,
      within = within,
      static = within,
      overwrite = if (!overwrite) Overwrite.nothing()
      else if (isDynamic) Overwrite.touched() else Overwrite.below(List(within).asJava),
      conf = hadoopConf,
      format = DirectHiveFileFormat.of(fileFormat),
      outputColumns = outputColumns,
      partitionColumns = partitionColumns,
      staticPartitionColumns = 0,
      bucketSpec = bucketSpec,
      options = options,
      // As in Hive, which moves a partition's whole directory including this file, but otherwise only data files.
      marksSuccess = !isDynamic && columns.nonEmpty && (overwrite || isNew),
      change = Some(CatalogChange(
        table,
        locations.root,
        hadoopConf,
        replaces = overwrite,
        below = None,
        always = if (isDynamic || columns.isEmpty) Nil else Seq(within),
        replacesUnknown = true,
        isForNew = ifPartitionNotExists,
        ofTable = true)),
      visibility = visibility,
      moved = locations.moved,
      table = Some(table),
      reads = getTagValue(ReadTables.Guards).getOrElse(Nil),
      maxPartitions = Option.when(isDynamic)(hadoopConf.getInt(limit.varname, limit.defaultIntVal) -> limit.varname))
  }
}
