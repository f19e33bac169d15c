package org.apache.spark.sql.execution.datasources.millstream.write

import java.io.FileNotFoundException

import scala.jdk.CollectionConverters._

import io.millstream.write.protocol.Overwrite
import io.millstream.write.store.SwapDirectories
import io.millstream.write.store.WriteOptions.Visibility
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import org.apache.spark.sql.{Row, SaveMode}
import org.apache.spark.sql.catalyst.catalog.{BucketSpec, CatalogTable, CatalogTablePartition, CatalogTableType}
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.CommandUtils
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.millstream.internals.Reflected
import org.apache.spark.sql.execution.datasources.millstream.listing.ListedRelations.StreamingMetadata
import org.apache.spark.sql.util.SchemaUtils

/**
 * Writes files of a data source to a table or a path. The steps are those of Spark's command, but nothing is deleted
 * before the commit, and the catalog learns of partitions with the commit.
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
    extends InsertIntoHadoopFsRelationCommand(
      outputPath,
      staticPartitions,
      ifPartitionNotExists,
      partitionColumns,
      bucketSpec,
      fileFormat,
      options,
      query,
      mode,
      catalogTable,
      fileIndex,
      outputColumnNames)
    with DirectCommand {
  import DirectInsertIntoHadoopFsRelation._

  override protected def withNewChildInternal(newChild: LogicalPlan): InsertIntoHadoopFsRelationCommand =
    new DirectInsertIntoHadoopFsRelation(
      outputPath,
      staticPartitions,
      ifPartitionNotExists,
      partitionColumns,
      bucketSpec,
      fileFormat,
      options,
      newChild,
      mode,
      catalogTable,
      fileIndex,
      outputColumnNames)

  override def run(session: SparkSession, child: SparkPlan): Seq[Row] = {
    val hadoopConf = session.sessionState.newHadoopConfWithOptions(options)
    val fileSystem = outputPath.getFileSystem(hadoopConf)
    if (!isFile(fileSystem)) ReadTables.finishWrites(session, outputPath, catalogTable, hadoopConf)
    val location = fileSystem.makeQualified(currentLocation(session))
    val root = if (catalogued.nonEmpty) SwapDirectories.home(location) else location
    val known = tracked.fold(Seq.empty[CatalogTablePartition])(table =>
      session.sessionState.catalog.listPartitions(table.identifier, Some(staticPartitions)))
    val locations = TableLocations(
      fileSystem,
      root,
      if (tracked.nonEmpty) known.map(partition => directory(partition.spec) -> new Path(partition.location))
      else Seq("" -> location))
    val found =
      try Some(fileSystem.getFileStatus(location))
      catch { case _: FileNotFoundException => None }
    lazy val visibility = TableLocations.visibility(
      name(root),
      root,
      mode == SaveMode.Overwrite && found.nonEmpty,
      partitionColumns.nonEmpty,
      hadoopConf)(whyNoSwap)
    if (leavesToSpark(found, known) || replacesSink(fileSystem, found, hadoopConf) || lacksNames(root, hadoopConf)
      || locations.isOutOfReach(name(root), visibility, mode == SaveMode.Overwrite, hadoopConf)) {
      super.run(session, child)
    } else {
      checkColumns()
      directWrite(hadoopConf, locations, visibility)
        .run(
          session,
          child,
          metrics,
          () => refresh(session, fileSystem, visibility),
          beforeJob)(super.run(session, child))
      Nil
    }
  }

  /** Whether the path is a file; Spark reports its own errors for files, and deletes some. */
  private def isFile(fileSystem: FileSystem): Boolean =
    catalogTable.isEmpty && (try fileSystem.getFileStatus(outputPath).isFile
    catch { case _: FileNotFoundException => false })

  private def lacksNames(root: Path, hadoopConf: Configuration): Boolean =
    ReplaceInserts.lacksNames(
      name(root),
      root,
      directory(staticPartitions),
      partitionColumns.drop(staticPartitions.size),
      mode == SaveMode.Overwrite,
      hadoopConf)

  private def refresh(session: SparkSession, fileSystem: FileSystem, visibility: Visibility): Unit = {
    (if (visibility == Visibility.METASTORE_SWAP) catalogued else tracked).foreach(table =>
      session.sessionState.catalog.refreshTable(table.identifier))
    fileIndex.foreach(_.refresh())
    session.sharedState.cacheManager.recacheByPath(session, outputPath, fileSystem)
    catalogTable.foreach(CommandUtils.updateTableStats(session, _))
  }

  /** The table, if the catalog knows its partitions. */
  private def tracked: Option[CatalogTable] =
    catalogTable.filter(table =>
      conf.manageFilesourcePartitions && table.partitionColumnNames.nonEmpty && table.tracksPartitionsInCatalog)

  /** The table, if the catalog knows all its locations. */
  private def catalogued: Option[CatalogTable] = tracked.orElse(catalogTable.filter(_.partitionColumnNames.isEmpty))

  /**
   * The current location of an unpartitioned table: Spark's information may be older than another statement's
   * overwrite.
   */
  private def currentLocation(session: SparkSession): Path =
    catalogued.filter(_.partitionColumnNames.isEmpty)
      .map(table =>
        new Path(session.sharedState.externalCatalog.getTable(table.database, table.identifier.table).location))
      .filter(now => SwapDirectories.home(now) == SwapDirectories.home(outputPath)).getOrElse(outputPath)

  private def name(root: Path): String = catalogTable.fold(root.toString)(_.identifier.unquotedString)

  private def whyNoSwap: Option[String] = catalogTable match {
    case None => Some("it is a directory, not a table of the catalog")
    case Some(table) if table.partitionColumnNames.nonEmpty =>
      Option.when(tracked.isEmpty)("the catalog does not list its partitions")
    case Some(table) =>
      Option.when(table.tableType == CatalogTableType.MANAGED)(TableLocations.ManagedWithoutPartitions)
  }

  /** Whether the statement inserts nothing, or Spark reports an error of its own. */
  private def leavesToSpark(found: Option[FileStatus], known: Seq[CatalogTablePartition]): Boolean = {
    val isNoInsert = mode match {
      case SaveMode.Append => false
      case SaveMode.Overwrite => ifPartitionNotExists && known.nonEmpty
      case SaveMode.ErrorIfExists | SaveMode.Ignore => found.nonEmpty
    }
    isNoInsert || found.exists(_.isFile)
  }

  /**
   * Whether everything below the path is replaced, the log of a streaming query among it; logs a warning if so. Readers
   * believe such a log, and direct writes keep hidden files.
   */
  private def replacesSink(fileSystem: FileSystem, found: Option[FileStatus], hadoopConf: Configuration): Boolean = {
    val replacesAll = mode == SaveMode.Overwrite && !dynamicPartitionOverwrite && staticPartitions.isEmpty
    val isSink =
      replacesAll && found.exists(directory => fileSystem.exists(new Path(directory.getPath, StreamingMetadata)))
    if (isSink) {
      val reason = s"it is the output of a streaming query, whose log ($StreamingMetadata) would be replaced, too"
      ReplaceInserts.leave(name(outputPath), reason, overwrites = true, hadoopConf)
    }
    isSink
  }

  private def directory(spec: TablePartitionSpec): String = TableLocations.directory(partitionColumns.map(_.name), spec)

  /** The checks of Spark's own command before it writes. */
  private def checkColumns(): Unit = {
    if (!fileFormat.allowDuplicatedColumnNames)
      SchemaUtils.checkColumnNameDuplication(outputColumnNames, conf.caseSensitiveAnalysis)
    if (!conf.allowCollationsInMapKeys) SchemaUtils.checkNoCollationsInMapKeys(query.schema)
  }

  private def directWrite(hadoopConf: Configuration, locations: TableLocations, visibility: Visibility): DirectWrite = {
    val static = directory(staticPartitions)
    val isStaticOverwrite = mode == SaveMode.Overwrite && !dynamicPartitionOverwrite
    val overwrite = if (isStaticOverwrite) Overwrite.below(List(static).asJava)
    else if (dynamicPartitionOverwrite) Overwrite.touched() else Overwrite.nothing()
    val always = Seq(static).filter(_ => staticPartitions.nonEmpty && staticPartitions.size == partitionColumns.length)
    DirectWrite(
      name = name(locations.root),
      root = locations.root,
      within = "",
      static = static,
      overwrite = overwrite,
      conf = hadoopConf,
      format = fileFormat,
      outputColumns = outputColumns,
      partitionColumns = partitionColumns,
      staticPartitionColumns = staticPartitions.size,
      bucketSpec = bucketSpec,
      options = options,
      marksSuccess = !dynamicPartitionOverwrite,
      change = catalogued.map(CatalogChange(
        _,
        locations.root,
        hadoopConf,
        replaces = mode == SaveMode.Overwrite,
        below = Option.when(isStaticOverwrite)(staticPartitions),
        always,
        replacesUnknown = false,
        isForNew = ifPartitionNotExists,
        ofTable = false)),
      visibility = visibility,
      moved = locations.moved,
      table = catalogTable,
      reads = getTagValue(ReadTables.Guards).getOrElse(Nil))
  }

  private def beforeJob: () => Unit = BeforeWriteJob.flatMap(getTagValue(_)).getOrElse(() => ())
}

private[millstream] object DirectInsertIntoHadoopFsRelation {
  private val BeforeWriteJobName = "BEFORE_WRITE_JOB"

  /** A callback that Spark attaches to a command since 4.3, to be run when its job begins. */
  private lazy val BeforeWriteJob: Option[TreeNodeTag[() => Unit]] =
    Option.when(InsertIntoHadoopFsRelationCommand.getClass.getMethods.exists(_.getName == BeforeWriteJobName)) {
      Reflected.call(
        Reflected.method(InsertIntoHadoopFsRelationCommand.getClass, BeforeWriteJobName, Nil),
        InsertIntoHadoopFsRelationCommand) match {
        case tag: TreeNodeTag[_] => tag.asInstanceOf[TreeNodeTag[() => Unit]]
        case other => throw new NoSuchMethodError(s"$BeforeWriteJobName is a ${other.getClass.getName}")
      }
    }

  /** Throws a linkage error in a Spark whose tag of this name has another type. */
  def check(): Unit = BeforeWriteJob
}
