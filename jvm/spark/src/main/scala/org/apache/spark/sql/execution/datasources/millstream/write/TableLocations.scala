package org.apache.spark.sql.execution.datasources.millstream.write

import java.nio.file.Paths

import scala.jdk.CollectionConverters._
import scala.util.Try

import io.millstream.write.protocol.DirectJob
import io.millstream.write.store.{Parallel, SwapDirectories, WriteOptions}
import io.millstream.write.store.WriteOptions.Visibility
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.getPartitionPathString

/**
 * The catalog's locations of a table's partitions, by name; "" is a table without partitions.
 *
 * @param root the table's directory, which contains the journal
 * @param moved partitions that a swap has moved to other directories below the root; the directories are relative to it
 * @param foreign locations that no direct write has made
 */
private[sql] final case class TableLocations(root: Path, moved: Map[String, String], foreign: Seq[Path]) {

  /** Whether a partition's location prevents direct writes; logs a warning if so. */
  def isOutOfReach(target: String, visibility: Visibility, overwrites: Boolean, conf: Configuration): Boolean = {
    val elsewhere = foreign.find(path =>
      visibility != Visibility.METASTORE_SWAP || !TableLocations.isBeside(root, path) || TableLocations.overlap(
        root,
        path))
    elsewhere.foreach(path => ReplaceInserts.leave(target, s"a partition of the table is at $path", overwrites, conf))
    elsewhere.nonEmpty
  }
}

private[sql] object TableLocations {
  def apply(fileSystem: FileSystem, root: Path, locations: Seq[(String, Path)]): TableLocations = {
    val qualifiedLocations = locations.map { case (name, location) => (name, qualified(fileSystem, location)) }
    val (ours, foreign) = qualifiedLocations.partition { case (name, location) =>
      ofJobs(root, location).getOrElse("?") == name
    }
    TableLocations(
      root,
      ours.collect {
        case (name, location) if at(root, name) != location => name -> relative(root, location).get
      }.toMap,
      foreign.map(_._2))
  }

  /** The directory for the columns of a specification, in the table's order. */
  def directory(columns: Seq[String], spec: TablePartitionSpec): String =
    columns.flatMap(column => spec.get(column).map(getPartitionPathString(column, _))).mkString("/")

  /** A qualified location. It may be on another file system, which this one's own method would reject. */
  def qualified(fileSystem: FileSystem, location: Path): Path =
    location.makeQualified(fileSystem.getUri, fileSystem.getWorkingDirectory)

  /** Whether a location is on the table's file system. */
  def isBeside(root: Path, location: Path): Boolean =
    location.toUri.getScheme == root.toUri.getScheme && location.toUri.getAuthority == root.toUri.getAuthority

  /** The partition of a location below the root. */
  private def ofJobs(root: Path, location: Path): Option[String] =
    relative(root, location).map(SwapDirectories.partition)

  def at(root: Path, directory: String): Path = if (directory.isEmpty) root else new Path(root, directory)

  /**
   * The path of a local directory without symbolic links; none if that is the same, or the directory is missing or
   * elsewhere.
   */
  def withoutLinks(directory: Path): Option[Path] =
    Option.when(directory.toUri.getScheme == "file")(directory).flatMap { local =>
      Try(new Path(
        local.toUri.getScheme,
        local.toUri.getAuthority,
        Paths.get(local.toUri.getPath).toRealPath().toString)).toOption.filter(_ != directory)
    }

  /**
   * The local directories elsewhere to which directories below a root are symbolic links.
   *
   * @return their paths without links
   */
  def linkedFrom(root: Path, directories: Seq[Path]): Seq[Path] = {
    lazy val top = withoutLinks(root).getOrElse(root)
    val local = directories.filter(directory =>
      directory.toUri.getScheme == "file" && relative(root, directory).exists(_.nonEmpty))
    Parallel.map[Path, Option[Path]](
      Parallel.THREADS,
      local.asJavaCollection,
      withoutLinks(_).filter(relative(top, _).isEmpty)).asScala.flatten.toSeq.distinct
  }

  /** The directories of a table that are not below its root, or are links to directories elsewhere. */
  def outside(root: Path, directories: Seq[Path]): Seq[Path] = {
    val (below, elsewhere) = directories.partition(relative(root, _).nonEmpty)
    elsewhere ++ linkedFrom(root, below)
  }

  /** Whether two paths name the same directory. */
  def isSame(one: Path, other: Path): Boolean =
    one == other || withoutLinks(one).getOrElse(one) == withoutLinks(other).getOrElse(other)

  /** A location's directory relative to the root, if it is below. */
  def relative(root: Path, location: Path): Option[String] =
    if (location == root) Some("")
    else {
      val top = if (root.isRoot) root.toString else s"${root.toString}${Path.SEPARATOR}"
      Option.when(location.toString.startsWith(top))(location.toString.stripPrefix(top))
    }

  /**
   * How a statement becomes visible; logs a warning if that differs from the requested visibility.
   *
   * @param whyNoSwap why the catalog cannot make it visible; none if it can
   */
  def visibility(target: String, root: Path, overwrites: Boolean, isPartitioned: Boolean, conf: Configuration)(
      whyNoSwap: => Option[String]): Visibility = {
    val asked = if (overwrites) WriteOptions.visibility(conf) else Visibility.IN_PLACE
    val reason = asked match {
      case Visibility.IN_PLACE => None
      case Visibility.EXCHANGE if isPartitioned => Option(DirectJob.whyNoExchange(root, conf).orElse(null))
      case Visibility.EXCHANGE =>
        Some("it has no partitions, and its own directory cannot be exchanged, because it contains the journal")
      case Visibility.METASTORE_SWAP => whyNoSwap
    }
    reason.foreach(ReplaceInserts.inPlace(target, _, conf))
    if (reason.isEmpty) asked else Visibility.IN_PLACE
  }

  /** The data of a managed table must stay in its directory, which is deleted with the table. */
  val ManagedWithoutPartitions =
    "it is a managed table without partitions, and dropping it at another location would leave behind the directory that the next table of that name uses"

  /** Whether the directories are equal, or one contains the other. */
  def overlap(one: Path, other: Path): Boolean = relative(one, other).nonEmpty || relative(other, one).nonEmpty
}

/**
 * The directories of one statement's files, by partition name; sent to the tasks.
 *
 * @param job the id of the job
 * @param moved partitions that are in directories of earlier jobs
 */
private[write] final case class Directories(job: String, visibility: Visibility, moved: Map[String, String]) {

  /** The directory to which a partition's files are written. */
  def of(partition: String): String = if (visibility == Visibility.IN_PLACE) existing(partition) else own(partition)

  /** The directory that contains them after the commit. */
  def destination(partition: String): String =
    if (visibility == Visibility.METASTORE_SWAP) own(partition) else existing(partition)

  /**
   * The directory that contains all files of the statement, before and after its commit, if it is known from the start;
   * "" otherwise.
   */
  def below(static: String): String =
    if (visibility == Visibility.METASTORE_SWAP) SwapDirectories.root(job) else if (moved.isEmpty) static else ""

  private def own(partition: String): String = SwapDirectories.of(job, partition)

  private def existing(partition: String): String = moved.getOrElse(partition, partition)
}
