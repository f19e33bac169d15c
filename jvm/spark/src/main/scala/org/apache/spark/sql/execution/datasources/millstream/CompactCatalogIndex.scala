package org.apache.spark.sql.execution.datasources.millstream

import scala.collection.mutable
import scala.util.Try

import io.millstream.hadoop.{DirectoryListing, MillstreamLocalFileSystem}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.QualifiedTableName
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, ExternalCatalogUtils}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources._

/**
 * The index of a table whose partitions are in the catalog. The catalog finds the partitions, as in Spark; their directories
 * are listed in one native traversal, where Spark starts a job for more than 32 of them.
 *
 * Spark's cache of file statuses is replaced by one of directory listings. As Spark's, it belongs to the table's entry in
 * the session's catalog, is valid until the table is refreshed, and is bounded by
 * `spark.sql.hive.filesourcePartitionFileCacheSize` and `spark.sql.metadataCacheTTLSeconds`.
 */
private[millstream] final class CompactCatalogFileIndex(spark: SparkSession, table: CatalogTable, sizeInBytes: Long)
  extends CatalogFileIndex(spark, table, sizeInBytes) {

  private val cache = new PartitionCache(spark)

  override def filterPartitions(filters: Seq[Expression]): InMemoryFileIndex =
    SparkLine.ifSupported(compact(filters)).getOrElse(super.filterPartitions(filters))

  private def compact(filters: Seq[Expression]): Option[InMemoryFileIndex] = {
    val start = System.nanoTime()
    val conf = spark.sessionState.conf
    val selected = ExternalCatalogUtils.listPartitionsByFilter(conf, spark.sessionState.catalog, table, filters)
    val paths = selected.map(partition => new Path(partition.location))
    for {
      fileSystem <- CompactCatalogFileIndex.localFileSystem(paths, hadoopConf)
      partitions = selected.zip(paths).map { case (partition, path) =>
        PartitionPath(partition.toRow(partitionSchema, conf.sessionLocalTimeZone), fileSystem.makeQualified(path))
      }
      tookNanos = System.nanoTime() - start
      listed <- cache.list(fileSystem, partitions.map(_.path))
    } yield CompactFileIndex.ofPartitions(spark, fileSystem, PartitionSpec(partitionSchema, partitions), listed, tookNanos)
  }

  override def refresh(): Unit = {
    super.refresh()
    cache.clear()
  }
}

private object CompactCatalogFileIndex {
  /** The native file system, if all partitions are on it. */
  def localFileSystem(paths: Seq[Path], conf: Configuration): Option[MillstreamLocalFileSystem] = {
    def isLocal(path: Path): Boolean = path.toUri.getScheme == "file"
    Option.when(paths.nonEmpty && paths.forall(isLocal))(paths.head).flatMap(path => Try(path.getFileSystem(conf)).toOption).collect {
      case fileSystem: MillstreamLocalFileSystem if fileSystem.listsNatively => fileSystem
    }
  }
}

/** Listings of a table's partitions. */
private final class PartitionCache(spark: SparkSession) {
  private val byPartition = mutable.HashMap.empty[Path, LeafDirectories]
  private var bytes = 0L
  private var filledNanos = System.nanoTime()

  /** The directories of all partitions; none if native listing fails or a partition is a file. */
  def list(fileSystem: MillstreamLocalFileSystem, partitions: Seq[Path]): Option[LeafDirectories] = synchronized {
    if (isOutdated) clear()
    val missing = partitions.filterNot(byPartition.contains)
    val found = if (missing.isEmpty) Some(Map.empty[Path, LeafDirectories]) else listed(fileSystem, missing)
    found.map { listings =>
      val all = LeafDirectories.combined(partitions.map(path => listings.getOrElse(path, byPartition(path))))
      keep(listings)
      all
    }
  }

  private def listed(fileSystem: MillstreamLocalFileSystem, partitions: Seq[Path]): Option[Map[Path, LeafDirectories]] = {
    val start = System.nanoTime()
    val found = CompactFileIndex.listings(fileSystem, partitions, ignoreMissing = spark.sessionState.conf.ignoreMissingFiles)
    found.filter(!_.exists(_.isFile)).map { listings =>
      val byRoot = listings.groupBy(_.root)
      val tookMillis = (System.nanoTime() - start) / 1000000
      partitions.zipWithIndex.map { case (path, root) =>
        path -> LeafDirectories.of(byRoot.getOrElse(root, Seq.empty[DirectoryListing]), fileSystem, if (root == 0) tookMillis else 0)
      }.toMap
    }
  }

  private def keep(listings: Map[Path, LeafDirectories]): Unit = {
    val added = listings.valuesIterator.map(PartitionCache.bytesOf).sum
    val conf = spark.sessionState.conf
    val limit = if (conf.manageFilesourcePartitions) conf.filesourcePartitionFileCacheSize else 0L
    if (bytes + added > limit) clear()
    if (added <= limit) {
      byPartition ++= listings
      bytes += added
    }
  }

  private def isOutdated: Boolean = {
    val ttlSeconds = spark.sessionState.conf.metadataCacheTTL
    ttlSeconds > 0 && System.nanoTime() - filledNanos > ttlSeconds * 1000000000L
  }

  def clear(): Unit = synchronized {
    byPartition.clear()
    bytes = 0
    filledNanos = System.nanoTime()
  }
}

private object PartitionCache {
  private val BytesOfDirectory = 500L
  private val BytesOfFile = 60L

  /** A rough size in memory. */
  private def bytesOf(listing: LeafDirectories): Long =
    listing.all.iterator.map(leaf => BytesOfDirectory + leaf.count * BytesOfFile).sum
}

/** A relation with another index. Not equal to the one without it, although the indexes are: rules keep the old node if the new one is equal. */
private final class CatalogRelation(files: HadoopFsRelation, index: CompactCatalogFileIndex)
  extends HadoopFsRelation(index, files.partitionSchema, files.dataSchema, files.bucketSpec, files.fileFormat, files.options)(files.sparkSession) {

  override def canEqual(other: Any): Boolean = other.isInstanceOf[CatalogRelation]

  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)

  override def hashCode(): Int = super.hashCode()
}

/**
 * Gives tables with partitions in the catalog a [[CompactCatalogFileIndex]], Hive tables that Spark converts among them. Spark's
 * index lists nothing before a query is optimized, so it is replaced in time here, and in the session's cache of tables, so
 * that later queries find its listings.
 */
class IndexCatalogTables(spark: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (Keys.get(conf, IndexLocalFiles.Enabled)) {
      plan.resolveOperators {
        case table: LogicalRelation => SparkLine.ifSupported(replaced(table)).getOrElse(table)
      }
    } else {
      plan
    }

  private def replaced(table: LogicalRelation): Option[LogicalPlan] = table.relation match {
    case files: HadoopFsRelation if LocalRelations.supports(files.fileFormat) =>
      files.location match {
        case index: CatalogFileIndex if index.getClass == classOf[CatalogFileIndex] && index.table.partitionColumnNames.nonEmpty =>
          val compact = new CompactCatalogFileIndex(spark, index.table, index.sizeInBytes)
          remember(index, compact)
          Some(withIndex(table, files, compact))
        case _ => None
      }
    case _ => None
  }

  private def withIndex(table: LogicalRelation, files: HadoopFsRelation, index: CompactCatalogFileIndex): LogicalRelation =
    table.copy(relation = new CatalogRelation(files, index))

  private def remember(index: CatalogFileIndex, compact: CompactCatalogFileIndex): Unit = {
    val catalog = spark.sessionState.catalog
    val id = index.table.identifier
    for (catalogName <- id.catalog; database <- id.database) {
      val name = QualifiedTableName(catalogName, database, id.table)
      catalog.getCachedTable(name) match {
        case cached @ LogicalRelation(files: HadoopFsRelation, _, _, _, _) if files.location eq index =>
          catalog.cacheTable(name, withIndex(cached, files, compact))
        case _ =>
      }
    }
  }
}
