package org.apache.spark.sql.execution.datasources.millstream

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import io.millstream.hadoop.MillstreamLocalFileSystem
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
 * The rules are Spark's own: partition discovery, pruning and filters are inherited from [[PartitioningAwareFileIndex]].
 * Only the data differ: directory listings of some 40 bytes per file, from which statuses and paths are created on access,
 * instead of a status, a path and two map entries kept for every file.
 */
class CompactFileIndex private (
    spark: SparkSession,
    fileSystem: MillstreamLocalFileSystem,
    override val rootPaths: Seq[Path],
    parameters: Map[String, String],
    userSchema: Option[StructType],
    first: LeafDirectories)
  extends PartitioningAwareFileIndex(spark, parameters, userSchema) {

  private val filtersFiles = PathFilterFactory.create(CaseInsensitiveMap(parameters)).nonEmpty

  /** The native listing, or Spark's own where native listing fails. */
  @volatile private var listed: Either[StockListing, LeafDirectories] = Right(first)
  @volatile private var spec: Option[PartitionSpec] = None

  logListed(first)

  override def partitionSpec(): PartitionSpec = spec.getOrElse {
    val inferred = inferPartitioning()
    spec = Some(inferred)
    inferred
  }

  override def refresh(): Unit = {
    listed = CompactFileIndex.list(fileSystem, rootPaths, parameters)
      .toRight(new StockListing(spark, rootPaths, parameters, userSchema))
    listed.foreach(logListed)
    spec = None
  }

  /** For a native listing, only the roots that are files: the superclass looks up nothing else in this map. */
  override protected def leafFiles: mutable.LinkedHashMap[Path, FileStatus] = listed match {
    case Right(leaves) => leaves.fileRootStatuses
    case Left(stock) => stock.leafFiles
  }

  override protected def leafDirToChildrenFiles: Map[Path, Array[FileStatus]] =
    listed.fold(_.leafDirToChildrenFiles, identity)

  /** Without a pattern or time filter, this is a view that creates each status on access. */
  override def allFiles(): Seq[FileStatus] = listed match {
    case Right(leaves) =>
      val files = new Statuses(selected(leaves))
      if (filtersFiles) files.filter(matchPathPattern) else files
    case Left(_) => super.allFiles()
  }

  /**
   * Also a view if there are neither partition columns nor conditions on files; Spark's own method would create all
   * statuses at once.
   */
  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] = listed match {
    case Right(leaves)
        if !filtersFiles && leaves.fileRoots.isEmpty && partitionSpec().partitionColumns.isEmpty &&
          !dataFilters.exists(_.references.exists(CompactFileIndex.isOfMetadata)) && !selected(leaves).exists(_.hasUnderscores) =>
      Seq(PartitionDirectory(InternalRow.empty, new NonEmptyFiles(selected(leaves))))
    case _ => super.listFiles(partitionFilters, dataFilters)
  }

  override def sizeInBytes: Long = listed match {
    case Right(leaves) if !filtersFiles => selected(leaves).iterator.map(_.bytes).sum
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

  override def equals(other: Any): Boolean = other match {
    case that: CompactFileIndex => rootPaths.sorted == that.rootPaths.sorted
    case _ => false
  }

  override def hashCode(): Int = rootPaths.toSet.hashCode()
}

object CompactFileIndex {
  private val Enoent = 2

  private[millstream] def isOfMetadata(attribute: Attribute): Boolean = attribute match {
    case FileSourceMetadataAttribute(_) => true
    case _ => false
  }

  /** None if the roots cannot be listed natively in exactly the way Spark lists them. */
  private[millstream] def create(
      spark: SparkSession,
      fileSystem: MillstreamLocalFileSystem,
      roots: Seq[Path],
      parameters: Map[String, String],
      userSchema: Option[StructType]): Option[CompactFileIndex] =
    list(fileSystem, roots, parameters).map { leaves =>
      new CompactFileIndex(spark, fileSystem, roots, parameters, userSchema, leaves)
    }

  private def list(
      fileSystem: MillstreamLocalFileSystem,
      roots: Seq[Path],
      parameters: Map[String, String]): Option[LeafDirectories] = {
    val start = System.nanoTime()
    val ignoreMissing = new FileSourceOptions(CaseInsensitiveMap(parameters)).ignoreMissingFiles
    val rootDirectories = roots.map(root => fileSystem.pathToFile(root).getPath).toSet
    for {
      found <- Option(fileSystem.listDataset(roots.asJava))
      (listings, failed) = found.asScala.partition(_.errno == 0)
      // As in Spark, a missing root is empty, and a directory that vanishes during the listing is an error unless ignored.
      if failed.forall(f => f.errno == Enoent && (ignoreMissing || rootDirectories(f.directory)))
    } yield LeafDirectories.of(listings, fileSystem, (System.nanoTime() - start) / 1000000)
  }
}

/** The files as Spark itself lists them. */
private final class StockListing(
    spark: SparkSession,
    roots: Seq[Path],
    parameters: Map[String, String],
    userSchema: Option[StructType])
  extends InMemoryFileIndex(spark, roots, parameters, userSchema) {

  override def leafFiles: mutable.LinkedHashMap[Path, FileStatus] = super.leafFiles

  override def leafDirToChildrenFiles: Map[Path, Array[FileStatus]] = super.leafDirToChildrenFiles
}
