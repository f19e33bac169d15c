package org.apache.spark.sql.execution.datasources.millstream.write

import java.io.IOException
import java.util.{Collection, Map => JavaMap}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.millstream.write.metastore.{Metastore, MetastoreChange}
import io.millstream.write.metastore.Metastore.JobState
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTablePartition, ExternalCatalog}
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.execution.datasources.PartitioningUtils
import org.apache.spark.sql.execution.datasources.millstream.internals.SparkLine
import org.apache.spark.util.Utils

/**
 * Carries out the changes of commits in a catalog without statistics: missing partitions are added.
 *
 * @param addressed database and name of the statement's table; a commit under an earlier name applies to this table
 */
private[sql] class CatalogMetastore(catalog: ExternalCatalog, addressed: Option[(String, String)]) extends Metastore {

  /** Why commits cannot change this catalog; none if they can. */
  def whyNot: Option[String] = None

  final override def apply(change: MetastoreChange, jobState: JobState): Unit =
    asking(change.database, change.table)(carryOut(change, jobState))

  /**
   * Refuses to add partitions that the catalog would take for others, or could not store.
   *
   * @param added names of the change's partitions that the catalog does not have
   */
  def requireStorable(change: MetastoreChange, added: Seq[String]): Unit = ()

  protected final def asking[A](database: String, table: String)(work: => A): A =
    try {
      work
    } catch {
      case e: IOException => throw e
      case e @ (NonFatal(_) | _: LinkageError) =>
        throw new IOException(s"the catalog could not be queried or updated for $database.$table: ${e.getMessage}", e)
    }

  /** Distinguishes this catalog from others, which may have tables of the same names. */
  protected def kind: String = "spark"

  /** Distinguishes a table from a later table of the same name. */
  final def id(table: CatalogTable): String = s"$kind ${table.createTime}"

  final override def current(change: MetastoreChange, root: Path): MetastoreChange =
    asking(change.database, change.table) {
      if (!change.tableId.startsWith(s"$kind ")) {
        throw new IOException(
          s"${change.database}.${change.table} is not a table of this session's catalog ($kind): recover it by " +
            s"its name, ${change.database}.${change.table}, in a session with its own catalog (${change.tableId.takeWhile(_ != ' ')})")
      }
      val names = (change.database, change.table) +: addressed.toSeq
      names.find { case (database, table) =>
        catalog.tableExists(database, table) && id(catalog.getTable(database, table)) == change.tableId
      }
        .orElse(if (addressed.isEmpty) renamed(change, root) else None)
        .map { case (database, table) => change.named(database, table) }.orNull
    }

  /**
   * The table of a change under an unknown name: searched in the same database by its id, which is a time, and its
   * directory.
   */
  private def renamed(change: MetastoreChange, root: Path): Option[(String, String)] =
    if (catalog.databaseExists(change.database)) {
      catalog.getTablesByName(change.database, catalog.listTables(change.database))
        .find(table =>
          id(table) == change.tableId && table.storage.locationUri.exists(
            new Path(_).toUri.getPath == root.toUri.getPath))
        .map(table => (table.database, table.identifier.table))
    } else {
      None
    }

  protected def carryOut(change: MetastoreChange, jobState: JobState): Unit = {
    add(change, change.partitions.asScala.toSeq, jobState)
    if (change.isSwap) {
      val table = catalog.getTable(change.database, change.table)
      val known =
        catalog.listPartitions(change.database, change.table).map(partition => partition.spec -> partition).toMap
      val moved = (change.partitions.asScala.map(partition => toCatalog(table, partition, partition.location)) ++
        change.droppedPartitions.asScala.flatMap(name =>
          known.get(CatalogMetastore.spec(table, name)).map(SparkLine.at(
            new Path(change.emptyDirectory).toUri,
            _)))).toSeq
      if (moved.nonEmpty && !jobState.isFinished) catalog.alterPartitions(change.database, change.table, moved)
    }
    drop(change, jobState)
    moveTable(change, jobState)
  }

  final override def locations(
      database: String,
      table: String,
      partitions: Collection[String]): JavaMap[String, String] =
    asking(database, table)(find(database, table, partitions.asScala.toSeq).asJava)

  /** The locations of those partitions that exist, by name; an empty name is the table itself. */
  protected def find(database: String, table: String, wanted: Seq[String]): Map[String, String] = {
    val described = catalog.getTable(database, table)
    val ofTable = wanted.filter(_.isEmpty).map(_ -> new Path(described.location).toString)
    val known = if (wanted.forall(_.isEmpty)) Map.empty[String, String] else locationsBelow(described, Map.empty)
    (ofTable ++ wanted.flatMap(name => known.get(name).map(name -> _))).toMap
  }

  /** The locations of the partitions that match a specification, by name. */
  def locationsBelow(table: CatalogTable, spec: TablePartitionSpec): Map[String, String] =
    catalog.listPartitions(table.database, table.identifier.table, Some(spec)).map { partition =>
      TableLocations.directory(table.partitionColumnNames, partition.spec) -> new Path(partition.location).toString
    }.toMap

  protected final def moveTable(change: MetastoreChange, jobState: JobState): Unit =
    Option(change.tableLocation).map(new Path(_)).foreach { location =>
      val table = catalog.getTable(change.database, change.table)
      if (new Path(table.location) != location && !jobState.isFinished)
        catalog.alterTable(SparkLine.at(location.toUri, table))
    }

  protected final def add(
      change: MetastoreChange,
      partitions: Seq[MetastoreChange.Partition],
      jobState: JobState): Unit = if (partitions.nonEmpty) {
    val table = catalog.getTable(change.database, change.table)
    partitions.grouped(CatalogMetastore.Batch).takeWhile(_ => !jobState.isFinished).foreach { batch =>
      val added = batch.map(partition =>
        toCatalog(table, partition, if (change.isSwap) change.emptyDirectory else partition.location))
      catalog.createPartitions(change.database, change.table, added, ignoreIfExists = true)
    }
  }

  /**
   * Drops partitions whose files are deleted already, unless this process has hung for so long that the next job may
   * have filled them again.
   */
  protected final def drop(change: MetastoreChange, jobState: JobState): Unit = if (!change.droppedPartitions.isEmpty) {
    val table = catalog.getTable(change.database, change.table)
    val specs = change.droppedPartitions.asScala.toSeq.map(CatalogMetastore.spec(table, _))
    specs.grouped(CatalogMetastore.Batch).takeWhile(_ => !jobState.isFinished).foreach { batch =>
      catalog.dropPartitions(
        change.database,
        change.table,
        batch,
        ignoreIfNotExists = true,
        purge = false,
        retainData = true)
    }
  }

  private def toCatalog(
      table: CatalogTable,
      partition: MetastoreChange.Partition,
      location: String): CatalogTablePartition =
    CatalogTablePartition(
      CatalogMetastore.spec(table, partition.name),
      SparkLine.at(new Path(location).toUri, table.storage),
      partition.parameters.asScala.toMap)
}

private[sql] object CatalogMetastore {

  /** The number of partitions in one request to a metastore. */
  val Batch = 1000

  private val OfHive = "org.apache.spark.sql.hive.millstream.HiveMetastore"

  def of(session: SparkSession, addressed: Option[CatalogTable]): CatalogMetastore = {
    val name = addressed.map(table => (table.database, table.identifier.table))
    val catalog = session.sharedState.externalCatalog
    if (catalog.unwrapped.getClass.getName == "org.apache.spark.sql.hive.HiveExternalCatalog") {
      Utils.classForName[CatalogMetastore](OfHive).getConstructor(
        classOf[ExternalCatalog],
        classOf[Option[_]]).newInstance(catalog, name)
    } else {
      new CatalogMetastore(catalog, name)
    }
  }

  /**
   * A partition's specification, with columns as the table spells them; in directory names, Hive writes them in lower
   * case. An exact match comes first, because names of other tables may differ only in case.
   */
  def spec(table: CatalogTable, name: String): TablePartitionSpec = {
    val columns = table.partitionColumnNames
    PartitioningUtils.parsePathFragment(name).map { case (written, value) =>
      columns.find(_ == written).orElse(columns.find(_.equalsIgnoreCase(written))).get -> value
    }
  }
}
