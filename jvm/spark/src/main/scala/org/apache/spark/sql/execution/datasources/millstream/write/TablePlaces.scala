package org.apache.spark.sql.execution.datasources.millstream.write

import io.millstream.write.protocol.DirectJob
import io.millstream.write.store.{SwapDirectories, WriteOptions}
import io.millstream.write.store.WriteOptions.Visibility
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.getPartitionPathString

/**
 * Where the catalog has a table's partitions, by their names; "" is a table without partitions.
 *
 * @param root the table's directory, which has the journal
 * @param moved those that a swap has put elsewhere below the root, by directories relative to it
 * @param foreign locations that are of no direct write
 */
private[sql] final case class TablePlaces(root: Path, moved: Map[String, String], foreign: Seq[Path]) {
  /** Whether no direct write can be where a partition is; says so in the log. */
  def isOutOfReach(target: String, visibility: Visibility, overwrites: Boolean, conf: Configuration): Boolean = {
    val elsewhere = foreign.find(path =>
      visibility != Visibility.METASTORE_SWAP || !TablePlaces.isBeside(root, path) || TablePlaces.overlap(root, path))
    elsewhere.foreach(path => ReplaceInserts.leave(target, s"a partition of the table is at $path", overwrites, conf))
    elsewhere.nonEmpty
  }
}

private[sql] object TablePlaces {
  def apply(fileSystem: FileSystem, root: Path, locations: Seq[(String, Path)]): TablePlaces = {
    val places = locations.map { case (name, location) => (name, qualified(fileSystem, location)) }
    val (ours, foreign) = places.partition { case (name, location) => ofJobs(root, location).getOrElse("?") == name }
    TablePlaces(root, ours.collect { case (name, location) if at(root, name) != location => name -> relative(root, location).get }.toMap,
      foreign.map(_._2))
  }

  /** The directory of those of a table's columns, in their order, that a specification has. */
  def directory(columns: Seq[String], spec: TablePartitionSpec): String =
    columns.flatMap(column => spec.get(column).map(getPartitionPathString(column, _))).mkString("/")

  /** A location in full. It may be on another file system, of which this one would not hear. */
  def qualified(fileSystem: FileSystem, location: Path): Path = location.makeQualified(fileSystem.getUri, fileSystem.getWorkingDirectory)

  /** Whether a location is on the table's file system. */
  def isBeside(root: Path, location: Path): Boolean =
    location.toUri.getScheme == root.toUri.getScheme && location.toUri.getAuthority == root.toUri.getAuthority

  /** The partition that a directory of direct writes is for. */
  private def ofJobs(root: Path, location: Path): Option[String] = relative(root, location).map(SwapDirectories.partition)

  def at(root: Path, directory: String): Path = if (directory.isEmpty) root else new Path(root, directory)

  /** A location's directory relative to the root, if it is below. */
  def relative(root: Path, location: Path): Option[String] =
    if (location == root) Some("")
    else {
      val top = if (root.isRoot) root.toString else s"${root.toString}${Path.SEPARATOR}"
      Option.when(location.toString.startsWith(top))(location.toString.stripPrefix(top))
    }

  /**
   * How a statement becomes visible; says so in the log if that is another way than was asked for.
   *
   * @param whyNoSwap why the catalog cannot make it visible, if it cannot
   */
  def visibility(target: String, root: Path, overwrites: Boolean, isPartitioned: Boolean, conf: Configuration)(
      whyNoSwap: => Option[String]): Visibility = {
    val asked = if (overwrites) WriteOptions.visibility(conf) else Visibility.IN_PLACE
    val reason = asked match {
      case Visibility.IN_PLACE => None
      case Visibility.EXCHANGE if isPartitioned => Option(DirectJob.whyNoExchange(root, conf).orElse(null))
      case Visibility.EXCHANGE => Some("it has no partitions, and its own directory, in which the journal is, cannot be exchanged")
      case Visibility.METASTORE_SWAP => whyNoSwap
    }
    reason.foreach(ReplaceInserts.inPlace(target, _, conf))
    if (reason.isEmpty) asked else Visibility.IN_PLACE
  }

  /** A table whose directory is deleted with it must not leave it before. */
  val ManagedWithoutPartitions =
    "it is a managed table without partitions, and dropping one elsewhere would leave the directory in which the next of its name is made"

  /** Whether one directory is the other, or in it. */
  def overlap(one: Path, other: Path): Boolean = relative(one, other).nonEmpty || relative(other, one).nonEmpty
}

/**
 * Where the files of one statement go, by the names of partitions; goes to the tasks.
 *
 * @param job that writes
 * @param moved partitions that are in directories of earlier ones
 */
private[write] final case class Directories(job: String, visibility: Visibility, moved: Map[String, String]) {
  /** Where the files of a partition are written. */
  def of(partition: String): String = if (visibility == Visibility.IN_PLACE) existing(partition) else own(partition)

  /** Where they are after the commit. */
  def place(partition: String): String = if (visibility == Visibility.METASTORE_SWAP) own(partition) else existing(partition)

  /** Where all files of a statement are, before and after its commit, if it is one directory that is known from the start; "" otherwise. */
  def below(static: String): String =
    if (visibility == Visibility.METASTORE_SWAP) SwapDirectories.root(job) else if (moved.isEmpty) static else ""

  private def own(partition: String): String = SwapDirectories.of(job, partition)

  private def existing(partition: String): String = moved.getOrElse(partition, partition)
}
