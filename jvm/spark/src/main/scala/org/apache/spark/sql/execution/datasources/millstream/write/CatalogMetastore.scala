package org.apache.spark.sql.execution.datasources.millstream.write

import java.io.IOException

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.millstream.write.{Metastore, MetastoreChange}
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTablePartition, ExternalCatalog}
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.PartitioningUtils
import org.apache.spark.sql.execution.datasources.millstream.SparkLine
import org.apache.spark.util.Utils

/** Carries out commits' changes in a catalog that keeps no statistics of its own: partitions that it has not are added. */
private[sql] class CatalogMetastore(catalog: ExternalCatalog) extends Metastore {
  final override def apply(change: MetastoreChange): Unit =
    try {
      carryOut(change)
    } catch {
      case e: IOException => throw e
      case NonFatal(e) => throw new IOException(s"the catalog could not be told of ${change.database}.${change.table}: ${e.getMessage}", e)
    }

  protected def carryOut(change: MetastoreChange): Unit = {
    add(change, change.partitions.asScala.toSeq)
    drop(change)
  }

  protected final def add(change: MetastoreChange, partitions: Seq[MetastoreChange.Partition]): Unit = if (partitions.nonEmpty) {
    val table = catalog.getTable(change.database, change.table)
    partitions.grouped(CatalogMetastore.Batch).foreach { batch =>
      catalog.createPartitions(change.database, change.table, batch.map(toCatalog(table, _)), ignoreIfExists = true)
    }
  }

  /** Their files are gone already. */
  protected final def drop(change: MetastoreChange): Unit = if (!change.droppedPartitions.isEmpty) {
    val table = catalog.getTable(change.database, change.table)
    val specs = change.droppedPartitions.asScala.toSeq.map(CatalogMetastore.spec(table, _))
    specs.grouped(CatalogMetastore.Batch).foreach { batch =>
      catalog.dropPartitions(change.database, change.table, batch, ignoreIfNotExists = true, purge = false, retainData = true)
    }
  }

  private def toCatalog(table: CatalogTable, partition: MetastoreChange.Partition): CatalogTablePartition =
    CatalogTablePartition(
      CatalogMetastore.spec(table, partition.name),
      SparkLine.at(new Path(partition.location).toUri, table.storage),
      partition.parameters.asScala.toMap)
}

private[sql] object CatalogMetastore {
  /** How many partitions one request to a metastore names. */
  val Batch = 1000

  private val OfHive = "org.apache.spark.sql.hive.millstream.HiveMetastore"

  def of(session: SparkSession): CatalogMetastore = {
    val catalog = session.sharedState.externalCatalog
    if (catalog.unwrapped.getClass.getName == "org.apache.spark.sql.hive.HiveExternalCatalog") {
      Utils.classForName[CatalogMetastore](OfHive).getConstructor(classOf[ExternalCatalog]).newInstance(catalog)
    } else {
      new CatalogMetastore(catalog)
    }
  }

  /** Columns as the table names them; in directories, Hive's are in lower case. */
  def spec(table: CatalogTable, name: String): TablePartitionSpec = {
    val columns = table.partitionColumnNames.map(column => column.toLowerCase(java.util.Locale.ROOT) -> column).toMap
    PartitioningUtils.parsePathFragment(name).map { case (column, value) => columns(column.toLowerCase(java.util.Locale.ROOT)) -> value }
  }
}
