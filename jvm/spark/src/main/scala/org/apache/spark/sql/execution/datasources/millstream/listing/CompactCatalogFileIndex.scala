package org.apache.spark.sql.execution.datasources.millstream.listing

import java.util.{Collections, WeakHashMap}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Try

import io.millstream.hadoop.listing.DirectoryListing
import io.millstream.hadoop.reading.ListedFileSystem
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.QualifiedTableName
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, ExternalCatalogUtils}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.millstream.internals.{Reflected, SparkLine}
import org.apache.spark.sql.execution.datasources.millstream.settings.{Keys, Switches}

/**
 * The index of a table whose partitions are in the catalog. The catalog finds the partitions, as in Spark; their
 * directories are listed in one native traversal, where Spark starts a job for more than 32 of them.
 *
 * Spark's cache of file statuses is replaced by one of directory listings ([[PartitionCache]]), which is valid as long
 * as Spark's would be.
 *
 * @param ofSpark the index that this one replaces
 */
private[millstream] final class CompactCatalogFileIndex(spark: SparkSession, val ofSpark: CatalogFileIndex)
    extends CatalogFileIndex(spark, ofSpark.table, ofSpark.sizeInBytes) {

  private val cache = new PartitionCache(spark, CompactCatalogFileIndex.statusCacheOf(ofSpark))

  override def filterPartitions(filters: Seq[Expression]): InMemoryFileIndex =
    SparkLine.ifSupported(compact(filters)).getOrElse(super.filterPartitions(filters))

  private def compact(filters: Seq[Expression]): Option[InMemoryFileIndex] = {
    val start = System.nanoTime()
    val conf = spark.sessionState.conf
    val selected = ExternalCatalogUtils.listPartitionsByFilter(conf, spark.sessionState.catalog, table, filters)
    val paths = selected.map(partition => new Path(partition.location))
    for {
      fileSystem <- CompactCatalogFileIndex.fileSystem(paths, hadoopConf)
      partitions = selected.zip(paths).map { case (partition, path) =>
        PartitionPath(partition.toRow(partitionSchema, conf.sessionLocalTimeZone), fileSystem.makeQualified(path))
      }
      tookNanos = System.nanoTime() - start
      listed <- cache.list(fileSystem, partitions.map(_.path))
    } yield CompactFileIndex.ofPartitions(
      spark,
      fileSystem,
      PartitionSpec(partitionSchema, partitions),
      listed,
      tookNanos)
  }

  override def refresh(): Unit = {
    super.refresh()
    ofSpark.refresh()
  }
}

private object CompactCatalogFileIndex {
  private lazy val statusCache = Reflected.field(classOf[CatalogFileIndex], "fileStatusCache")

  def statusCacheOf(index: CatalogFileIndex): FileStatusCache = statusCache.get(index).asInstanceOf[FileStatusCache]

  /** The file system of all partitions, if it is a single one that Millstream lists. */
  def fileSystem(paths: Seq[Path], conf: Configuration): Option[Listed] = {
    def fileSystemOf(path: Path) = (path.toUri.getScheme, path.toUri.getAuthority)
    Option.when(paths.nonEmpty && paths.forall(fileSystemOf(_) == fileSystemOf(paths.head)))(paths.head).flatMap(listed(
      _,
      conf))
  }

  /** The file system of a path, if Millstream lists it. */
  def listed(path: Path, conf: Configuration): Option[Listed] = Try(path.getFileSystem(conf)).toOption.collect {
    case fileSystem: FileSystem with ListedFileSystem if fileSystem.listsNatively => fileSystem
  }
}

/**
 * Listings of a table's partitions.
 *
 * They are valid until Spark's index is refreshed, by an INSERT for example, or its cache drops them because of their
 * age. For that, Spark's cache has an entry that stands for all of them. Together they take at most the memory allowed
 * for Spark's cache, `spark.sql.hive.filesourcePartitionFileCacheSize`.
 */
private final class PartitionCache(spark: SparkSession, ofSpark: FileStatusCache) {
  private val byPartition = mutable.HashMap.empty[Path, LeafDirectories]
  private var bytes = 0L
  PartitionCache.all.add(this)

  /** The directories of all partitions; none if native listing fails or a partition is a file. */
  def list(fileSystem: Listed, partitions: Seq[Path]): Option[LeafDirectories] = synchronized {
    if (ofSpark.getLeafFiles(PartitionCache.Entry).isEmpty) clear()
    val missing = partitions.filterNot(byPartition.contains)
    // Before the listing: a refresh during the listing drops it.
    ofSpark.putLeafFiles(PartitionCache.Entry, Array.empty)
    val found = if (missing.isEmpty) Some(Map.empty[Path, LeafDirectories]) else listed(fileSystem, missing)
    found.map { listings =>
      val all = LeafDirectories.combined(partitions.map(path => listings.getOrElse(path, byPartition(path))))
      keep(listings)
      all
    }
  }

  private def listed(fileSystem: Listed, partitions: Seq[Path]): Option[Map[Path, LeafDirectories]] = {
    val start = System.nanoTime()
    val found =
      CompactFileIndex.listings(fileSystem, partitions, ignoreMissing = spark.sessionState.conf.ignoreMissingFiles)
    found.filter(!_.exists(_.isFile)).map { listings =>
      val byRoot = listings.groupBy(_.root)
      val tookMillis = (System.nanoTime() - start) / 1000000
      partitions.zipWithIndex.map { case (path, root) =>
        path -> LeafDirectories.of(
          byRoot.getOrElse(root, Seq.empty[DirectoryListing]),
          fileSystem,
          if (root == 0) tookMillis else 0)
      }.toMap
    }
  }

  private def keep(listings: Map[Path, LeafDirectories]): Unit = {
    val added = listings.valuesIterator.map(PartitionCache.bytesOf).sum
    val conf = spark.sessionState.conf
    val limit = if (conf.manageFilesourcePartitions) conf.filesourcePartitionFileCacheSize else 0L
    if (PartitionCache.bytesOfAll + added > limit) clear()
    if (PartitionCache.bytesOfAll + added <= limit) {
      byPartition ++= listings
      bytes += added
    }
  }

  private def clear(): Unit = {
    byPartition.clear()
    bytes = 0
  }
}

private object PartitionCache {
  private val BytesOfDirectory = 500L
  private val BytesOfFile = 60L

  /** No partition has this path. */
  private val Entry = new Path("millstream:/listings")
  private val all =
    Collections.newSetFromMap(Collections.synchronizedMap(new WeakHashMap[PartitionCache, java.lang.Boolean]))

  private def bytesOfAll: Long = all.synchronized(all.asScala.iterator.map(_.bytes).sum)

  /** A rough size in memory. */
  private def bytesOf(listing: LeafDirectories): Long =
    listing.all.iterator.map(leaf => BytesOfDirectory + leaf.count * BytesOfFile).sum
}

/**
 * A relation with another index. Catalyst keeps the old node if the new one is equal, and indexes of the same table
 * are; so this relation is equal to its own kind only.
 */
private final class CatalogRelation(files: HadoopFsRelation, index: CompactCatalogFileIndex)
    extends HadoopFsRelation(
      index,
      files.partitionSchema,
      files.dataSchema,
      files.bucketSpec,
      files.fileFormat,
      files.options)(files.sparkSession) {

  override def canEqual(other: Any): Boolean = other.isInstanceOf[CatalogRelation]

  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)

  override def hashCode(): Int = super.hashCode()
}

/**
 * Gives tables with partitions in the catalog a [[CompactCatalogFileIndex]], Hive tables that Spark converts among
 * them. Spark's index lists nothing before a query is optimized, so replacing it here is in time. It is also replaced
 * in the session's cache of tables, so that later queries find its listings.
 */
class IndexCatalogTables(spark: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (Keys.get(conf, Switches.Listing)) {
      plan.resolveOperators {
        case table: LogicalRelation => SparkLine.ifSupported(replaced(table)).getOrElse(table)
      }
    } else {
      plan
    }

  private def replaced(table: LogicalRelation): Option[LogicalPlan] = table.relation match {
    case files: HadoopFsRelation if ListedRelations.supports(files.fileFormat) =>
      files.location match {
        case index: CatalogFileIndex if index.getClass == classOf[CatalogFileIndex] && isListed(index.table) =>
          Some(withIndex(table, files, compact(index)))
        case _ => None
      }
    case _ => None
  }

  private def withIndex(
      table: LogicalRelation,
      files: HadoopFsRelation,
      index: CompactCatalogFileIndex): LogicalRelation =
    table.copy(relation = new CatalogRelation(files, index))

  /**
   * Whether a table has partitions and its default location is on a file system that Millstream lists; asking Spark
   * about other tables would be useless.
   */
  private def isListed(table: CatalogTable): Boolean =
    table.partitionColumnNames.nonEmpty &&
      table.storage.locationUri.exists(location =>
        CompactCatalogFileIndex.listed(new Path(location), spark.sessionState.newHadoopConf()).nonEmpty)

  /** The replacement for a Spark index, the same for all its uses. */
  private def compact(index: CatalogFileIndex): CompactCatalogFileIndex = {
    val catalog = spark.sessionState.catalog
    val id = index.table.identifier
    val name =
      for (catalogName <- id.catalog; database <- id.database) yield QualifiedTableName(catalogName, database, id.table)
    name.map(catalog.getCachedTable) match {
      case Some(LogicalRelation(HadoopFsRelation(known: CompactCatalogFileIndex, _, _, _, _, _), _, _, _, _))
          if known.ofSpark eq index => known
      case Some(cached @ LogicalRelation(files: HadoopFsRelation, _, _, _, _)) if files.location eq index =>
        val made = new CompactCatalogFileIndex(spark, index)
        catalog.cacheTable(name.get, withIndex(cached, files, made))
        made
      case _ => new CompactCatalogFileIndex(spark, index)
    }
  }
}
