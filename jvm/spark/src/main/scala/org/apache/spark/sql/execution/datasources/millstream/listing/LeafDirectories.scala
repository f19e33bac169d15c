package org.apache.spark.sql.execution.datasources.millstream.listing

import scala.collection.immutable.AbstractMap
import scala.collection.mutable

import io.millstream.hadoop.listing.DirectoryListing
import org.apache.hadoop.fs.{BlockLocation, FileStatus, FileSystem, LocatedFileStatus, Path}

import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata

/**
 * The files of one directory, or one root that is a file.
 *
 * @param path the directory
 * @param parts its listing, in parts if it is huge
 */
private final class Leaf(val path: Path, val parts: Array[DirectoryListing], blockSize: Long) {
  val count: Int = parts.map(_.count).sum

  private val mayHaveChecksums = parts.exists(_.mayHaveChecksums)

  def bytes: Long = parts.iterator.map(p => (0 until p.count).iterator.map(p.size).sum).sum

  def status(i: Int): FileStatus = {
    var part = 0
    var entry = i
    while (entry >= parts(part).count) {
      entry -= parts(part).count
      part += 1
    }
    if (parts(part).knowsHosts) new IndexedLocatedFileStatus(parts(part), entry, blockSize)
    else new IndexedFileStatus(parts(part), entry, mayHaveChecksums, blockSize)
  }

  /** Whether a name begins with an underscore; only Spark can decide which of those files are data. */
  def hasUnderscores: Boolean = parts.exists(part => (0 until part.count).exists(part.hasUnderscore))

  /** The indexes of the empty files. */
  def emptyFiles: Iterator[Int] =
    parts.iterator.flatMap(part => Iterator.tabulate(part.count)(part.size)).zipWithIndex.collect { case (0, i) => i }

  def statuses: Array[FileStatus] = Array.tabulate(count)(status)

  /** The file whose name is the first in string order. */
  def firstByName: Option[FileStatus] =
    parts.iterator.flatMap(part => Iterator.tabulate(part.count)(part.name)).zipWithIndex.minByOption(_._1).map {
      case (_, i) => status(i)
    }
}

/** A file of the index. */
private[millstream] trait Indexed {
  def listing: DirectoryListing
  def entry: Int
  def mayHaveChecksums: Boolean

  def name: String = listing.name(entry)
}

/** A status whose path is created on access. */
private[millstream] final class IndexedFileStatus(
    val listing: DirectoryListing,
    val entry: Int,
    val mayHaveChecksums: Boolean,
    blockSize: Long)
    extends FileStatus(listing.size(entry), false, 1, blockSize, listing.modificationTime(entry), null) with Indexed {

  override def getPath: Path = listing.path(entry)

  override def toString: String = plain.toString

  /** Serialises as an ordinary status. */
  protected def writeReplace(): AnyRef = plain

  private def plain = new FileStatus(getLen, false, 1, blockSize, getModificationTime, getPath)
}

/** The same with the locations of its blocks, also created on access. */
private[millstream] final class IndexedLocatedFileStatus(val listing: DirectoryListing, val entry: Int, blockSize: Long)
    extends LocatedFileStatus(
      listing.size(entry),
      false,
      1,
      blockSize,
      listing.modificationTime(entry),
      0,
      null,
      null,
      null,
      null,
      null,
      null)
    with Indexed {

  override def mayHaveChecksums: Boolean = false

  override def getPath: Path = listing.path(entry)

  override def getBlockLocations: Array[BlockLocation] = listing.blockLocations(entry)

  override def toString: String = plain.toString

  /** Serialises as an ordinary status. */
  protected def writeReplace(): AnyRef = plain

  private def plain =
    new LocatedFileStatus(new FileStatus(getLen, false, 1, blockSize, getModificationTime, getPath), getBlockLocations)
}

/**
 * The directories that contain files, and the roots that are files, as the map from directories to files that Spark's
 * index uses; its values are created on access.
 */
private final class LeafDirectories(
    directories: mutable.LinkedHashMap[Path, Leaf],
    val fileRoots: IndexedSeq[Leaf],
    val tookMillis: Long)
    extends AbstractMap[Path, Array[FileStatus]] {

  /** Every file is in exactly one of these. */
  val all: IndexedSeq[Leaf] = directories.values.toIndexedSeq

  /**
   * The order of Spark's own index, after `files.groupBy(parent)`: partition discovery takes the first spelling of a
   * column's name, and reports the first conflict.
   */
  private val inSparksOrder: Map[Path, Leaf] = (mutable.HashMap.empty[Path, Leaf] ++= directories).toMap

  /** Lazy, but kept, because Spark looks up each root in it. */
  lazy val fileRootStatuses: mutable.LinkedHashMap[Path, FileStatus] =
    mutable.LinkedHashMap.from(fileRoots.map(leaf => leaf.status(0).getPath -> leaf.status(0)))

  private val fileRootsByPath = fileRoots.map(leaf => leaf.status(0).getPath -> leaf).toMap

  /** The files of the directory `path`, or the file `path`. */
  def at(path: Path): Option[Leaf] = {
    // The root of a bucket may be given without its slash, and then differs from the listed directory.
    val absolute = if (path.isRoot && !path.isAbsolute) new Path(path, Path.SEPARATOR) else path
    directories.get(absolute).orElse(fileRootsByPath.get(absolute))
  }

  override def get(path: Path): Option[Array[FileStatus]] = directories.get(path).map(_.statuses)

  override def iterator: Iterator[(Path, Array[FileStatus])] =
    inSparksOrder.iterator.map { case (path, leaf) => path -> leaf.statuses }

  override def removed(path: Path): Map[Path, Array[FileStatus]] = Map.from(iterator).removed(path)

  override def updated[V >: Array[FileStatus]](path: Path, files: V): Map[Path, V] =
    Map.from[Path, V](iterator).updated(path, files)
}

private object LeafDirectories {

  /** The directories of several listings; where they overlap, the first counts. */
  def combined(parts: Seq[LeafDirectories]): LeafDirectories = {
    val directories = mutable.LinkedHashMap.empty[Path, Leaf]
    parts.foreach(_.all.foreach(leaf => directories.getOrElseUpdate(leaf.path, leaf)))
    new LeafDirectories(directories, parts.flatMap(_.fileRoots).toIndexedSeq, parts.map(_.tookMillis).sum)
  }

  /** Merges the parts of a directory, and removes duplicates of overlapping roots. */
  def of(
      listings: collection.Seq[DirectoryListing],
      fileSystem: FileSystem,
      tookMillis: Long): LeafDirectories = {
    val (files, directories) = listings.filter(_.count > 0).partition(_.isFile)
    val leaves = mutable.LinkedHashMap.empty[Path, Leaf]
    def leaf(path: Path, parts: Array[DirectoryListing]) =
      new Leaf(path, parts, fileSystem.getDefaultBlockSize(path))
    val byDirectory = mutable.LinkedHashMap.empty[String, mutable.ArrayBuffer[DirectoryListing]]
    directories.foreach { part =>
      val parts = byDirectory.getOrElseUpdate(part.directory, mutable.ArrayBuffer.empty)
      // Another root's listing of the same directory is a duplicate.
      if (parts.headOption.forall(_.root == part.root)) parts += part
    }
    byDirectory.valuesIterator.foreach { parts =>
      val path = parts.head.directoryPath
      leaves(path) = leaf(path, parts.toArray)
    }
    val fileRoots = files.distinctBy(_.path(0)).map(f => leaf(f.directoryPath, Array(f))).toIndexedSeq
    fileRoots.groupBy(_.path).foreach { case (parent, roots) =>
      val known = leaves.get(parent)
      val listed = known.fold(Set.empty[String])(_.statuses.map(_.getPath.getName).toSet)
      val more = roots.filterNot(root => listed(root.status(0).getPath.getName))
      leaves(parent) = leaf(parent, known.fold(Array.empty[DirectoryListing])(_.parts) ++ more.flatMap(_.parts))
    }
    new LeafDirectories(leaves, fileRoots, tookMillis)
  }
}

/** All statuses of some leaves, each created on access. */
private final class Statuses(leaves: IndexedSeq[Leaf]) extends scala.collection.immutable.IndexedSeq[FileStatus] {

  /** `starts(i)` files come before leaf `i`. */
  private val starts: Array[Int] = leaves.iterator.map(_.count).scanLeft(0)(_ + _).toArray

  override def length: Int = starts.last

  override def apply(i: Int): FileStatus = {
    val found = java.util.Arrays.binarySearch(starts, i)
    val leaf = if (found < 0) -found - 2 else starts.lastIndexOf(i, leaves.length - 1)
    leaves(leaf).status(i - starts(leaf))
  }

  override def iterator: Iterator[FileStatus] =
    leaves.iterator.flatMap(leaf => Iterator.range(0, leaf.count).map(leaf.status))
}

/** The non-empty files of some leaves, in the form that Spark's scans use, each created on access. */
private final class NonEmptyFiles(leaves: IndexedSeq[Leaf])
    extends scala.collection.immutable.IndexedSeq[FileStatusWithMetadata] {
  private val statuses = new Statuses(leaves)

  /** For each empty file, the number of non-empty files before it. */
  private val fullBefore: Array[Int] = {
    val starts = leaves.iterator.map(_.count).scanLeft(0)(_ + _)
    val empty = leaves.iterator.zip(starts).flatMap { case (leaf, start) => leaf.emptyFiles.map(_ + start) }
    empty.zipWithIndex.map { case (i, emptyBefore) => i - emptyBefore }.toArray
  }

  override def length: Int = statuses.length - fullBefore.length

  override def apply(i: Int): FileStatusWithMetadata = FileStatusWithMetadata(statuses(i + emptyBefore(i)))

  /** The number of empty files before the non-empty file with index `i`. */
  private def emptyBefore(i: Int): Int = {
    var (low, high) = (0, fullBefore.length)
    while (low < high) {
      val middle = (low + high) >>> 1
      if (fullBefore(middle) <= i) low = middle + 1 else high = middle
    }
    low
  }

  override def iterator: Iterator[FileStatusWithMetadata] =
    statuses.iterator.filter(_.getLen > 0).map(FileStatusWithMetadata(_))
}
