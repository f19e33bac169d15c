package org.apache.spark.sql.execution.datasources.millstream

import java.io.{FileNotFoundException, IOException}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import io.millstream.hadoop.MillstreamLocalFileSystem
import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.metrics.source.HiveCatalogMetrics
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/**
 * Spark's index of the files below some roots, listed natively and kept in columns.
 *
 * The rules are Spark's own: partition discovery, pruning and filters are inherited from [[PartitioningAwareFileIndex]].
 * What differs is what they work on: directory listings, some 40 bytes a file, from which statuses and paths are made
 * whenever they are looked at, instead of a status, a path and two map entries for every file for ever.
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

  @volatile private var leaves: LeafDirectories = first
  @volatile private var spec: Option[PartitionSpec] = None

  logListed(first)

  override def partitionSpec(): PartitionSpec = spec.getOrElse {
    val inferred = inferPartitioning()
    spec = Some(inferred)
    inferred
  }

  override def refresh(): Unit = {
    val fresh = CompactFileIndex.list(fileSystem, rootPaths, parameters).fold(throw _, identity)
    logListed(fresh)
    leaves = fresh
    spec = None
  }

  /** Only the roots that are files: the superclass looks up nothing else here. */
  override protected def leafFiles: mutable.LinkedHashMap[Path, FileStatus] =
    mutable.LinkedHashMap.from(leaves.fileRoots.map(leaf => leaf.status(0).getPath -> leaf.status(0)))

  override protected def leafDirToChildrenFiles: Map[Path, Array[FileStatus]] = leaves

  /** Without a pattern or time to filter by, this is a view that makes each status when it is looked at. */
  override def allFiles(): Seq[FileStatus] = {
    val files = new Statuses(selected)
    if (filtersFiles) files.filter(matchPathPattern) else files
  }

  override def sizeInBytes: Long =
    if (filtersFiles) super.sizeInBytes else selected.iterator.map(_.bytes).sum

  /** In a flat data set the files directly in the roots count, otherwise all. */
  private def selected: IndexedSeq[Leaf] =
    if (partitionSpec().partitionColumns.isEmpty && !recursiveFileLookup) {
      rootPaths.flatMap(root => leaves.at(fileSystem.makeQualified(root))).toIndexedSeq
    } else {
      leaves.all
    }

  private def logListed(listed: LeafDirectories): Unit = {
    val files = listed.all.iterator.map(_.count.toLong).sum
    HiveCatalogMetrics.incrementFilesDiscovered(math.min(files, Int.MaxValue).toInt)
    logInfo(s"Millstream listed $files files in ${listed.all.length} directories under ${rootPaths.length} paths " +
      s"in ${listed.tookMillis} ms")
  }

  override def equals(other: Any): Boolean = other match {
    case that: CompactFileIndex => rootPaths.sorted == that.rootPaths.sorted
    case _ => false
  }

  override def hashCode(): Int = rootPaths.toSet.hashCode()
}

object CompactFileIndex {
  private val Enoent = 2

  /** None if the roots cannot be listed natively in exactly the way Spark lists them. */
  private[millstream] def create(
      spark: SparkSession,
      fileSystem: MillstreamLocalFileSystem,
      roots: Seq[Path],
      parameters: Map[String, String],
      userSchema: Option[StructType]): Option[CompactFileIndex] =
    list(fileSystem, roots, parameters).toOption.map { leaves =>
      new CompactFileIndex(spark, fileSystem, roots, parameters, userSchema, leaves)
    }

  private def list(
      fileSystem: MillstreamLocalFileSystem,
      roots: Seq[Path],
      parameters: Map[String, String]): Either[IOException, LeafDirectories] = {
    val start = System.nanoTime()
    Option(fileSystem.listDataset(roots.asJava)) match {
      case None =>
        Left(new IOException(s"Cannot list natively ${roots.mkString(", ")}: a name that Java cannot express, or an error of " +
          s"native code, which the log tells. With ${IndexLocalFiles.Enabled}=false a new read lists the files as Spark does"))
      case Some(found) =>
        val listings = found.asScala
        val ignoreMissing = new FileSourceOptions(CaseInsensitiveMap(parameters)).ignoreMissingFiles
        val rootDirectories = roots.map(root => fileSystem.pathToFile(root).getPath).toSet
        val failed = listings.filter(_.errno != 0)
        // As in Spark: a missing root is empty, a directory that vanishes meanwhile is an error unless told otherwise.
        failed.find(f => f.errno != Enoent || !(ignoreMissing || rootDirectories(f.directory))) match {
          case Some(gone) if gone.errno == Enoent =>
            Left(new FileNotFoundException(s"File ${gone.directoryPath} does not exist"))
          case Some(bad) => Left(new IOException(s"Cannot list ${bad.directoryPath}: error ${bad.errno}"))
          case None =>
            Right(LeafDirectories.of(listings.filter(_.errno == 0), fileSystem, (System.nanoTime() - start) / 1000000))
        }
    }
  }
}
