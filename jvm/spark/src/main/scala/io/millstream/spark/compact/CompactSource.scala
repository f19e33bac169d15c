package io.millstream.spark.compact

import java.io.FileNotFoundException
import java.net.URI
import java.nio.file.{AccessDeniedException, Files, Path, Paths}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._

import io.millstream.hadoop.MillstreamLocalFileSystem
import io.millstream.hadoop.compact.TableLogs
import io.millstream.hadoop.listing.{DatasetNames, DirectoryListing, Version, Versions}
import io.millstream.hadoop.reading.ListedFileSystem
import io.millstream.spark.console.Failures
import io.millstream.write.protocol.{Journal, ReadGuard, Resolution, TableAccess, TableVersion}
import io.millstream.write.store.Store
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path => HadoopPath}
import org.apache.hadoop.security.AccessControlException

/** The tree that a compaction reads. */
private[spark] trait SourceTree {

  /** The path for messages, without a trailing slash. */
  def name: String

  /** Its absolute path on its file system, without a trailing slash. */
  def path: String

  /** The URI of its file system. */
  def fileSystem: URI

  /** All files of the tree. */
  def listings(): collection.Seq[DirectoryListing]

  /**
   * Metadata that references the tree's files, such as the log of a table.
   *
   * @param isReplaced whether its files will be replaced
   */
  def tableLog(isReplaced: Boolean): Option[TableLogs.Evidence]

  /**
   * Refuses the compaction if a statement with direct writes is not over in one of these directories, which are in or
   * above the tree.
   */
  def refuseWrites(directories: Seq[String]): Unit

  /** The directories at or above its root that have a journal of direct writes. */
  def journals: Seq[HadoopPath]

  /** The path of a directory below the root. */
  final def relative(directory: String): String = directory.drop(path.length).dropWhile(_ == '/')
}

private[spark] object SourceTree {

  /**
   * Refuses a directory with a journal in which a statement is not over: only some of its files may be visible, and it
   * looks for them under their names.
   */
  def refuseUnfinishedWrites(directory: HadoopPath, name: String, conf: Configuration): Unit = {
    val table = TableAccess.of(directory, conf, null)
    val resolution = new Resolution(table)
    Journal.of(table.store).jobs.asScala.find(job =>
      !job.isFinished && (job.hasBegun || resolution.isCommitted(job))).foreach { job =>
      throw new CompactFailure(s"$name: statement ${job.id} with direct writes has not ended; wait until it has, or run `millstream recover` on the table")
    }
  }
}

/**
 * Guards a compaction against statements with direct writes that change its source meanwhile. Those that have begun
 * before are refused, not finished ([[SourceTree.refuseWrites]]): nothing is written to a source.
 *
 * Created before the source is listed.
 */
private[spark] final class SourceGuard(source: SourceTree, conf: Configuration) {
  private val before = source.journals.map(directory => directory -> versionOf(directory)).toMap

  private def versionOf(directory: HadoopPath): TableVersion =
    Journal.of(TableAccess.of(directory, conf, null).store).version

  private def versionBefore(directory: HadoopPath): TableVersion = before.getOrElse(directory, new TableVersion(0, 0))

  /**
   * Refuses a listing in which some directories may be older and others newer than a write. No write may be running
   * now.
   */
  def requireUnchanged(): Unit = source.journals.find(directory =>
    versionOf(directory) != versionBefore(directory)).foreach { directory =>
    throw new CompactFailure(s"${CompactTasks.shown(directory)}: a statement with direct writes changed it while it was being listed; run the same command again")
  }

  /** Refuses the commit if files that were listed may have been replaced; `ReadGuard` has the rule. */
  def check(): Unit =
    source.journals.foreach(directory => new ReadGuard(directory, versionBefore(directory), false).check(conf))
}

/**
 * A tree on a local or mounted file system, listed natively.
 *
 * @param given the path that the user gave
 */
private[spark] final class LocalTree(root: Path, given: Path, conf: Configuration) extends SourceTree {
  import SourceTree._

  override def name: String = root.toString
  override def path: String = name
  override def fileSystem: URI = URI.create("file:///")

  override def listings(): collection.Seq[DirectoryListing] = {
    val fileSystem = new MillstreamLocalFileSystem
    fileSystem.initialize(this.fileSystem, conf)
    Option(fileSystem.listDatasetAndInexpressible(java.util.List.of(new HadoopPath(root.toUri)))).getOrElse {
      throw new CompactFailure(
        s"$root: cannot be listed natively; an earlier warning says why, or its name needs a UTF-8 locale")
    }.asScala
  }

  override def tableLog(isReplaced: Boolean): Option[TableLogs.Evidence] =
    TableLogs.ofLocal(root.toString, given.toString, isReplaced).toScala

  override def refuseWrites(directories: Seq[String]): Unit = {
    Iterator.iterate(root.getParent)(_.getParent).takeWhile(_ != null).foreach(above => refuseWrites(above.toString))
    directories.foreach(refuseWrites)
  }

  override def journals: Seq[HadoopPath] =
    Iterator.iterate(root)(_.getParent).takeWhile(_ != null).filter(hasJournal).map(directory =>
      new HadoopPath(directory.toUri)).toSeq

  private def hasJournal(directory: Path): Boolean = Files.isDirectory(directory.resolve(Store.JOURNAL))

  private def refuseWrites(directory: String): Unit =
    if (hasJournal(Paths.get(directory)))
      refuseUnfinishedWrites(new HadoopPath(Paths.get(directory).toUri), directory, conf)
}

/**
 * A tree on another Hadoop file system.
 *
 * @param root qualified
 */
private[spark] final class HadoopTree(root: HadoopPath, conf: Configuration) extends SourceTree {
  import HadoopTree._
  import SourceTree._

  private val fs = root.getFileSystem(conf)

  override val name: String = root.toString.stripSuffix("/")
  override val path: String = root.toUri.getPath.stripSuffix("/")
  override def fileSystem: URI = fs.getUri

  override def listings(): collection.Seq[DirectoryListing] = fs match {
    case ours: ListedFileSystem if ours.listsNatively =>
      Option(
        ours.listDataset(java.util.List.of(root))).fold[collection.Seq[DirectoryListing]](listedByHadoop)(_.asScala)
    case _ => listedByHadoop
  }

  private def listedByHadoop: Seq[DirectoryListing] = {
    val found = mutable.LinkedHashMap.empty[String, DirectoryListing.Builder]
    val files = fs.listFiles(root, true)
    while (files.hasNext) {
      val status = files.next()
      val directory = status.getPath.getParent.toUri.getPath
      if (!relative(directory).split('/').exists(DatasetNames.isHidden)) {
        found.getOrElseUpdate(directory, new DirectoryListing.Builder(fs.getUri, directory, 0))
          .add(status.getPath.getName, status.getLen, status.getModificationTime, packedTag(status))
      }
    }
    found.values.map(_.build()).toSeq
  }

  override def tableLog(isReplaced: Boolean): Option[TableLogs.Evidence] = TableLogs.of(fs, root).toScala

  /** A directory with a partition's name counts as part of a table, and is not examined. */
  override def refuseWrites(directories: Seq[String]): Unit = {
    val ours = directories.flatMap(directory => upTo(path, directory)).distinct.filter(directory =>
      !isPartition(directory) || directory == path)
    CompactTasks.inParallel(ours.map(directory =>
      () => if (exists(directory, Store.JOURNAL)) refuseWrites(at(directory))) ++
      above.map(directory => () => if (existsAbove(directory)) refuseWrites(directory)))
  }

  private def refuseWrites(directory: HadoopPath): Unit = refuseUnfinishedWrites(directory, directory.toString, conf)

  override def journals: Seq[HadoopPath] = {
    val own = () => Option.when(exists(path, Store.JOURNAL))(root)
    CompactTasks.inParallel(own +: above.map(directory => () => Option.when(existsAbove(directory))(directory))).flatten
  }

  private def above: Seq[HadoopPath] = Iterator.iterate(root.getParent)(_.getParent).takeWhile(_ != null).toSeq

  /**
   * Whether there is a journal above the tree. Credentials may cover only the tree; then their owners could not have
   * written one.
   */
  private def existsAbove(directory: HadoopPath): Boolean =
    try fs.exists(new HadoopPath(directory, Store.JOURNAL))
    catch {
      case _: AccessDeniedException | _: AccessControlException => false
    }

  private def at(directory: String): HadoopPath =
    new HadoopPath(root.toUri.getScheme, root.toUri.getAuthority, if (directory.isEmpty) "/" else directory)

  private def exists(directory: String, name: String): Boolean = fs.exists(new HadoopPath(at(directory), name))
}

private[spark] object HadoopTree {

  /**
   * The tree at a path.
   *
   * @throws CompactFailure if it is not a directory
   */
  def at(path: String, conf: Configuration): HadoopTree = {
    val root = qualified(path, conf)
    val status =
      try root.getFileSystem(conf).getFileStatus(root)
      catch {
        case _: FileNotFoundException => throw new CompactFailure(s"$path: there is no such directory")
      }
    if (!status.isDirectory) throw new CompactFailure(s"$path: not a directory")
    new HadoopTree(root, conf)
  }

  /**
   * A path in its file system's spelling.
   *
   * @throws CompactFailure if this Hadoop lacks the file system
   */
  def qualified(path: String, conf: Configuration): HadoopPath = {
    val given = new HadoopPath(path)
    val fs =
      try given.getFileSystem(conf)
      catch {
        case e: RuntimeException if e.getCause.isInstanceOf[ClassNotFoundException] =>
          throw new CompactFailure(
            s"$path: Hadoop's classes for this file system are missing: ${Failures.oneLine(e.getCause)}")
      }
    fs.makeQualified(if (given.toUri.getPath.isEmpty) new HadoopPath(given, "/") else given)
  }

  private def isPartition(directory: String): Boolean =
    directory.substring(directory.lastIndexOf('/') + 1).contains("=")

  /** A directory and its parents, up to a root. */
  private def upTo(root: String, directory: String): Seq[String] =
    Iterator.iterate(directory)(below => below.substring(0, math.max(0, below.lastIndexOf('/')))).takeWhile(
      _.length > root.length).toSeq :+ root

  private def packedTag(status: FileStatus): Array[Byte] = Option(Version.tagOf(status)).map(Versions.pack).orNull
}
