package org.apache.spark.sql.execution.datasources.millstream.write

import scala.jdk.CollectionConverters._
import scala.util.Try

import io.millstream.write.Overwrite
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.{Row, SaveMode}
import org.apache.spark.sql.catalyst.catalog.{BucketSpec, CatalogTable, CatalogTablePartition}
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.getPartitionPathString
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.CommandUtils
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.util.SchemaUtils

/**
 * Writes files of a data source: into a table or to a path. The steps are those of Spark's command, but nothing is deleted
 * before the commit, and partitions become known with it.
 */
class DirectInsertIntoHadoopFsRelation(
    outputPath: Path,
    staticPartitions: TablePartitionSpec,
    ifPartitionNotExists: Boolean,
    partitionColumns: Seq[Attribute],
    bucketSpec: Option[BucketSpec],
    fileFormat: FileFormat,
    options: Map[String, String],
    query: LogicalPlan,
    mode: SaveMode,
    catalogTable: Option[CatalogTable],
    fileIndex: Option[FileIndex],
    outputColumnNames: Seq[String])
  extends InsertIntoHadoopFsRelationCommand(outputPath, staticPartitions, ifPartitionNotExists, partitionColumns, bucketSpec,
    fileFormat, options, query, mode, catalogTable, fileIndex, outputColumnNames) {
  import DirectInsertIntoHadoopFsRelation._

  override lazy val metrics: Map[String, SQLMetric] = DirectWriteMetrics.create()

  /** Otherwise a rule that puts it in the other's place would seem to have changed nothing. */
  override def canEqual(other: Any): Boolean = other.isInstanceOf[DirectInsertIntoHadoopFsRelation]

  override protected def withNewChildInternal(newChild: LogicalPlan): InsertIntoHadoopFsRelationCommand =
    new DirectInsertIntoHadoopFsRelation(outputPath, staticPartitions, ifPartitionNotExists, partitionColumns, bucketSpec, fileFormat,
      options, newChild, mode, catalogTable, fileIndex, outputColumnNames)

  override def run(session: SparkSession, child: SparkPlan): Seq[Row] = {
    val hadoopConf = session.sessionState.newHadoopConfWithOptions(options)
    val fileSystem = outputPath.getFileSystem(hadoopConf)
    val root = fileSystem.makeQualified(outputPath)
    val known = tracked.fold(Seq.empty[CatalogTablePartition])(table =>
      session.sessionState.catalog.listPartitions(table.identifier, Some(staticPartitions)))
    if (leavesToSpark(fileSystem, root, known)) {
      super.run(session, child)
    } else {
      checkColumns()
      directWrite(hadoopConf, root, known).run(session, child, metrics, beforeJob)
      tracked.foreach(table => session.sessionState.catalog.refreshTable(table.identifier))
      fileIndex.foreach(_.refresh())
      session.sharedState.cacheManager.recacheByPath(session, outputPath, fileSystem)
      catalogTable.foreach(CommandUtils.updateTableStats(session, _))
      Nil
    }
  }

  /** The table, if the catalog knows its partitions. */
  private def tracked: Option[CatalogTable] =
    catalogTable.filter(table => conf.manageFilesourcePartitions && table.partitionColumnNames.nonEmpty && table.tracksPartitionsInCatalog)

  /** What is no INSERT in the end, or an error of Spark's own, or cannot be direct. */
  private def leavesToSpark(fileSystem: FileSystem, root: Path, known: Seq[CatalogTablePartition]): Boolean = {
    val found = Try(fileSystem.getFileStatus(root)).toOption
    val isNoInsert = mode match {
      case SaveMode.Append => false
      case SaveMode.Overwrite => ifPartitionNotExists && known.nonEmpty
      case SaveMode.ErrorIfExists | SaveMode.Ignore => found.nonEmpty
    }
    val elsewhere = known.find(partition => fileSystem.makeQualified(new Path(partition.location)) != new Path(root, directory(partition.spec)))
    elsewhere.foreach(partition => ReplaceInserts.warn(root.toString, s"a partition of the table is at ${partition.location}"))
    isNoInsert || found.exists(_.isFile) || elsewhere.nonEmpty
  }

  /** The directory of the columns, in their order, that a specification has. */
  private def directory(spec: TablePartitionSpec): String =
    partitionColumns.flatMap(column => spec.get(column.name).map(getPartitionPathString(column.name, _))).mkString("/")

  /** What Spark's command itself looks at before it writes. */
  private def checkColumns(): Unit = {
    if (!fileFormat.allowDuplicatedColumnNames) SchemaUtils.checkColumnNameDuplication(outputColumnNames, conf.caseSensitiveAnalysis)
    if (!conf.allowCollationsInMapKeys) SchemaUtils.checkNoCollationsInMapKeys(query.schema)
  }

  private def directWrite(hadoopConf: Configuration, root: Path, known: Seq[CatalogTablePartition]): DirectWrite = {
    val static = directory(staticPartitions)
    val isStaticOverwrite = mode == SaveMode.Overwrite && !dynamicPartitionOverwrite
    val overwrite = if (isStaticOverwrite) Overwrite.below(List(static).asJava)
      else if (dynamicPartitionOverwrite) Overwrite.touched() else Overwrite.nothing()
    val always = Seq(static).filter(_ => staticPartitions.nonEmpty && staticPartitions.size == partitionColumns.length)
    DirectWrite(
      name = catalogTable.fold(root.toString)(_.identifier.unquotedString),
      root = root,
      within = "",
      overwrite = overwrite,
      conf = hadoopConf,
      format = fileFormat,
      outputColumns = outputColumns,
      partitionColumns = partitionColumns,
      staticPartitionColumns = staticPartitions.size,
      bucketSpec = bucketSpec,
      options = options,
      marksSuccess = !dynamicPartitionOverwrite,
      change = tracked.map(CatalogChange(_, root, hadoopConf, replaces = mode == SaveMode.Overwrite,
        overwritten = if (isStaticOverwrite) known.map(partition => directory(partition.spec)) else Nil, always, ofTable = false)))
  }

  private def beforeJob: () => Unit = BeforeWriteJob.flatMap(getTagValue(_)).getOrElse(() => ())
}

private object DirectInsertIntoHadoopFsRelation {
  /** What Spark hangs on a command since 4.3, to be done when its job begins. */
  private lazy val BeforeWriteJob: Option[TreeNodeTag[() => Unit]] =
    InsertIntoHadoopFsRelationCommand.getClass.getMethods.find(_.getName == "BEFORE_WRITE_JOB")
      .map(_.invoke(InsertIntoHadoopFsRelationCommand).asInstanceOf[TreeNodeTag[() => Unit]])
}
