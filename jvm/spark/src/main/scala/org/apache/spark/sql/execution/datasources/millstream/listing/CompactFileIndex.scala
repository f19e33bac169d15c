package org.apache.spark.sql.execution.datasources.millstream.listing

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import io.millstream.hadoop.listing.{DatasetNames, DirectoryListing}
import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.metrics.source.HiveCatalogMetrics
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{FileSourceOptions, InternalRow}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, FileSourceMetadataAttribute}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/**
 * Spark's index of the files below some roots, listed natively and kept in columns.
 *
 * The rules are Spark's own: partition discovery, pruning and filters are inherited from [[InMemoryFileIndex]]. Only
 * the data differ: directory listings of some 40 bytes per file, from which statuses and paths are created on access,
 * instead of a status, a path and two map entries kept for every file. Spark's constructor and its `refresh` call
 * `listLeafFiles` for the statuses to keep; here it keeps none, unless native listing fails when the index is
 * refreshed.
 *
 * @param first the listing when the index is created
 * @param spec the partitions, if a catalog knows them
 */
class CompactFileIndex private (
    spark: SparkSession,
    fileSystem: Listed,
    roots: Seq[Path],
    parameters: Map[String, String],
    userSchema: Option[StructType],
    first: LeafDirectories,
    spec: Option[PartitionSpec],
    metadataOpsTimeNs: Option[Long])
    extends InMemoryFileIndex(spark, roots, parameters, userSchema, NoopCache, spec, metadataOpsTimeNs) {

  private val filtersFiles = PathFilterFactory.create(CaseInsensitiveMap(parameters)).nonEmpty

  /**
   * The native listing; none after a refresh in which native listing failed, so that the superclass keeps the files.
   */
  @volatile private var listed: Option[LeafDirectories] = Some(first)

  logListed(first)

  override def listLeafFiles(paths: Seq[Path]): mutable.LinkedHashSet[FileStatus] =
    if (listed == null) {
      // The superclass is being constructed, and `first` is its listing.
      mutable.LinkedHashSet.empty
    } else {
      listed = CompactFileIndex.list(fileSystem, paths, parameters)
      listed.foreach(logListed)
      if (listed.isEmpty) super.listLeafFiles(paths) else mutable.LinkedHashSet.empty
    }

  /** For a native listing, only the roots that are files: the superclass looks up nothing else in this map. */
  override protected def leafFiles: mutable.LinkedHashMap[Path, FileStatus] =
    listed.fold(super.leafFiles)(_.fileRootStatuses)

  override protected def leafDirToChildrenFiles: Map[Path, Array[FileStatus]] =
    listed.getOrElse(super.leafDirToChildrenFiles)

  /** Without a pattern or time filter, this is a view that creates each status on access. */
  override def allFiles(): Seq[FileStatus] = listed match {
    case Some(leaves) =>
      val files = new Statuses(selected(leaves))
      if (filtersFiles) files.filter(matchPathPattern) else files
    case None => super.allFiles()
  }

  /** Also a view if possible; Spark's own method would create all statuses at once. */
  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] = {
    val choosesFiles = dataFilters.exists(_.references.exists(CompactFileIndex.isOfMetadata))
    view.filter(_ => partitionSpec().partitionColumns.isEmpty && !choosesFiles)
      .fold(super.listFiles(partitionFilters, dataFilters))(files => Seq(PartitionDirectory(InternalRow.empty, files)))
  }

  /**
   * All files with data, whatever their partition, in Spark's order; none if some names in partitions begin with an
   * underscore, because only Spark can tell which of those files are data.
   */
  private[millstream] def dataFiles: Option[Seq[FileStatusWithMetadata]] =
    view.orElse(Option.when(partitionSpec().partitionColumns.isEmpty)(super.listFiles(Nil, Nil).flatMap(_.files)))

  /** The non-empty files, each created on access, if all of them are data. */
  private def view: Option[Seq[FileStatusWithMetadata]] = listed.flatMap { leaves =>
    val chosen = selected(leaves)
    Option.when(
      !filtersFiles && leaves.fileRoots.isEmpty && !chosen.exists(_.hasUnderscores))(new NonEmptyFiles(chosen))
  }

  /**
   * The file whose path is the first in string order; none if files are filtered, or if names begin with an underscore
   * and may be Parquet's summaries.
   */
  private[millstream] def firstByPath: Option[FileStatus] = listed.flatMap { leaves =>
    val chosen = selected(leaves)
    if (filtersFiles || chosen.exists(_.hasUnderscores)) None
    else chosen.flatMap(_.firstByName).minByOption(_.getPath.toString)
  }

  override def sizeInBytes: Long = listed match {
    case Some(leaves) if !filtersFiles => selected(leaves).iterator.map(_.bytes).sum
    case _ => super.sizeInBytes
  }

  /** Without partition columns, only files directly in the roots count; otherwise all. */
  private def selected(leaves: LeafDirectories): IndexedSeq[Leaf] =
    if (partitionSpec().partitionColumns.isEmpty && !recursiveFileLookup) {
      rootPaths.flatMap(root => leaves.at(fileSystem.makeQualified(root))).toIndexedSeq
    } else {
      leaves.all
    }

  private def logListed(leaves: LeafDirectories): Unit = {
    val files = leaves.all.iterator.map(_.count.toLong).sum
    HiveCatalogMetrics.incrementFilesDiscovered(math.min(files, Int.MaxValue).toInt)
    logInfo(s"Millstream listed in ${leaves.tookMillis} ms: files $files, directories ${leaves.all.length}, " +
      s"paths ${rootPaths.length}")
  }
}

object CompactFileIndex {
  private[millstream] def isOfMetadata(attribute: Attribute): Boolean = attribute match {
    case FileSourceMetadataAttribute(_) => true
    case _ => false
  }

  /** None if the roots cannot be listed natively in exactly the way Spark lists them. */
  private[millstream] def create(
      spark: SparkSession,
      fileSystem: Listed,
      roots: Seq[Path],
      parameters: Map[String, String],
      userSchema: Option[StructType]): Option[CompactFileIndex] =
    list(fileSystem, roots, parameters).map { leaves =>
      new CompactFileIndex(spark, fileSystem, roots, parameters, userSchema, leaves, None, None)
    }

  /**
   * The index of partitions that a catalog knows.
   *
   * @param listed the files of all partitions
   * @param metadataOpsTimeNs how long it took the catalog to find the partitions
   */
  private[millstream] def ofPartitions(
      spark: SparkSession,
      fileSystem: Listed,
      spec: PartitionSpec,
      listed: LeafDirectories,
      metadataOpsTimeNs: Long): CompactFileIndex =
    new CompactFileIndex(
      spark,
      fileSystem,
      spec.partitions.map(_.path),
      Map.empty,
      Some(spec.partitionColumns),
      listed,
      Some(spec),
      Some(metadataOpsTimeNs))

  private def list(
      fileSystem: Listed,
      roots: Seq[Path],
      parameters: Map[String, String]): Option[LeafDirectories] = {
    val start = System.nanoTime()
    val ignoreMissing = new FileSourceOptions(CaseInsensitiveMap(parameters)).ignoreMissingFiles
    listings(
      fileSystem,
      roots,
      ignoreMissing).map(LeafDirectories.of(_, fileSystem, (System.nanoTime() - start) / 1000000))
  }

  /** The directories below the roots; none if native listing fails, or if Spark has to report an error. */
  private[millstream] def listings(
      fileSystem: Listed,
      roots: Seq[Path],
      ignoreMissing: Boolean): Option[collection.Seq[DirectoryListing]] = {
    for {
      found <- Option(fileSystem.listDataset(roots.asJava))
      (listings, failed) = found.asScala.partition(_.errno == 0)
      // As in Spark, a missing root is empty, and a directory that vanishes during the listing is an error unless
      // ignored.
      if failed.forall(f => f.isMissing && (ignoreMissing || f.isRoot))
    } yield if (ignoresHiddenRoots) listings.filterNot(isHiddenFile) else listings
  }

  /**
   * Whether Spark ignores a hidden file that is the only path, even if it lists paths recursively: it does before 4.3.
   */
  private lazy val ignoresHiddenRoots: Boolean = !new PathFilterWrapper(null).accept(new Path("/.hidden"))

  private def isHiddenFile(root: DirectoryListing) =
    root.isFile && root.count > 0 && DatasetNames.isHidden(root.name(0))
}
