package org.apache.spark.sql.execution.datasources.millstream.write

import java.io.{FileNotFoundException, IOException}
import java.net.{SocketException, SocketTimeoutException, UnknownHostException}
import java.nio.file.AccessDeniedException
import java.util.{Collections, IdentityHashMap}

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

import io.millstream.write.protocol.{DirectJob, ReadGuard}
import io.millstream.write.store.{Causes, Parallel, SwapDirectories}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path, UnsupportedFileSystemException}
import org.apache.hadoop.security.AccessControlException

import org.apache.spark.SparkException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitioningAwareFileIndex}

/**
 * Guards the files that a statement reads and writes. Before they are listed, all committed but unfinished writes to
 * them are finished, whichever process began them. When the statement commits, it checks whether what it has read has
 * changed since.
 *
 * Files are guarded by their path, because a table's files are also read as a partition of another table, by an
 * external table on one of its partitions, or by their path. So a journal is looked for in each directory that is read
 * or written, and in every directory above it.
 */
private[sql] object ReadTables {

  /** The guards of a command that writes directly; Spark copies the tag with the command. */
  val Guards: TreeNodeTag[Seq[ReadGuard]] = TreeNodeTag("millstream.write.reads")

  /**
   * A directory that may have a journal.
   *
   * @param used the directory that is read or written, if it is below this one
   * @param read how it was found
   */
  private final case class Candidate(directory: Path, used: Option[Path], read: FilesRead)

  /**
   * Guards the files that a query reads. Called while the statement is analysed, before its files are listed.
   *
   * @param written the root directory of the statement's target
   */
  def guard(session: SparkSession, query: LogicalPlan, written: Path, hadoopConf: Configuration): Seq[ReadGuard] = {
    val target = qualified(written, hadoopConf)
    val reads = new StatementReads(session).of(query)
    val found = parallel(reads)(read => candidates(read, target, hadoopConf)).flatten
    val guarded = parallel(found.groupBy(_.directory).toSeq) { case (directory, same) =>
      try {
        val table = same.filter(_.used.isEmpty).flatMap(_.read.table).headOption
        val guard =
          open(session, directory, table, if (same.exists(_.used.isEmpty)) Nil else same.flatMap(_.used), hadoopConf)
        guard.map(opened => (opened, renew(session, opened, same, table, target)))
      } catch {
        case e: IOException => throw new SparkException(s"$directory cannot be read: ${Causes.text(e)}", e)
      }
    }.flatten
    guarded.map(_._1).filter(_.hasHelped).foreach(finished => forgetListings(session, finished.root))
    if (!session.sessionState.conf.ignoreMissingFiles)
      checkPaths(reads.filter(_.table.isEmpty), guarded.flatMap(_._2), hadoopConf)
    guarded.map(_._1)
  }

  private def parallel[T, R](items: Seq[T])(step: T => R): Seq[R] =
    Parallel.map[T, R](Parallel.THREADS, items.asJavaCollection, item => step(item)).asScala.toSeq

  /**
   * The guard of a directory.
   *
   * @param used the directories below it that are read or written; none if it is read or written itself
   * @return the guard; none if it is only above them and has no journal
   */
  private def open(
      session: SparkSession,
      directory: Path,
      table: Option[CatalogTable],
      used: Seq[Path],
      hadoopConf: Configuration): Option[ReadGuard] = {
    val metastore = CatalogMetastore.of(session, table)
    val guard = if (used.isEmpty) {
      ReadGuard.of(directory, hadoopConf, metastore)
    } else {
      val names = used.flatMap(withoutLinks)
      ReadGuard.above(
        directory,
        part => withoutLinks(part).exists(name => names.exists(TableLocations.overlap(_, name))),
        hadoopConf,
        metastore)
    }
    Option(guard.orElse(null))
  }

  /** A directory by its own path, and by that without symbolic links. */
  private def withoutLinks(directory: Path): Seq[Path] = directory +: TableLocations.withoutLinks(directory).toSeq

  /**
   * A relation may have listed its files long ago, and an index does not tell when.
   *
   * @return the indexes that have listed their files again
   */
  private def renew(
      session: SparkSession,
      guard: ReadGuard,
      same: Seq[Candidate],
      table: Option[CatalogTable],
      target: Path): Seq[FileIndex] = {
    val isOld = guard.hasHelped || guard.version.changed > 0 || TableLocations.isSame(guard.root, target)
    val old = if (isOld) distinct(same.flatMap(_.read.index)) else Nil
    old.foreach(_.refresh())
    if (guard.version.changed > 0) table.foreach(checkLocation(session, _))
    old
  }

  /** Indexes by identity: two of the same paths are equal, but may have listed files at different times. */
  private def distinct(indexes: Seq[FileIndex]): Seq[FileIndex] = {
    val found = Collections.newSetFromMap(new IdentityHashMap[FileIndex, java.lang.Boolean])
    indexes.filter(found.add)
  }

  /**
   * Refuses a statement if one of its query's paths is gone. Spark requires paths to exist when it first lists them,
   * and fails to read a file that has been removed since; but when it lists them again it ignores missing ones, and the
   * statement would write too few rows.
   *
   * @param reads what the query reads by its path
   * @param listedAgain the indexes that have listed their files again
   */
  private def checkPaths(reads: Seq[FilesRead], listedAgain: Seq[FileIndex], hadoopConf: Configuration): Unit = {
    val named = distinct(listedAgain).collect { case files: PartitioningAwareFileIndex =>
      files.rootPaths
    }.flatten.toSet
    parallel(reads.map(_.root).distinct.filter(named)) { path =>
      if (!path.getFileSystem(hadoopConf).exists(path)) {
        throw new SparkException(
          s"$path existed when it was listed for this statement, and is gone; nothing is written. Read its replacement, " +
            "and run the statement again")
      }
    }
  }

  /** A swap may have moved an unpartitioned table since the session last read it; the old files stay for some time. */
  private def checkLocation(session: SparkSession, table: CatalogTable): Unit =
    if (table.partitionColumnNames.isEmpty) {
      val now = session.sharedState.externalCatalog.getTable(table.database, table.identifier.table).location
      if (new Path(now) != new Path(table.location)) {
        session.sessionState.catalog.refreshTable(table.identifier)
        throw new SparkException(s"another statement has overwritten ${table.identifier.unquotedString} since this session has read it, and moved it to $now; nothing " +
          "is written, and the statement can be run again")
      }
    }

  /**
   * Directories that may have a journal of jobs that write files read: theirs, all those above, and the statement's own
   * target below.
   */
  private def candidates(read: FilesRead, target: Path, hadoopConf: Configuration): Seq[Candidate] =
    try {
      val fileSystem = read.root.getFileSystem(hadoopConf)
      val isFile =
        read.table.isEmpty && DirectJob.whyNot(fileSystem).isEmpty && fileSystem.getFileStatus(read.root).isFile
      val directory = qualified(if (isFile) read.root.getParent else read.root, hadoopConf)
      Candidate(directory, None, read) +: (above(directory).map(Candidate(_, Some(directory), read)) ++
        Seq(target).filter(TableLocations.relative(
          directory,
          _).exists(_.nonEmpty)).map(Candidate(_, Some(target), read)))
    } catch {
      case _: FileNotFoundException => Nil
      case NonFatal(e) if isUnreachable(e) =>
        ReplaceInserts.unguarded(read.root.toString, e)
        Nil
    }

  /**
   * Whether an error means that a location cannot be read either: its file system is unknown, its server does not
   * respond, or access is denied.
   */
  def isUnreachable(error: Throwable): Boolean = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).exists {
    case _: UnsupportedFileSystemException | _: ClassNotFoundException | _: UnknownHostException | _: SocketException | _: SocketTimeoutException |
        _: AccessDeniedException | _: AccessControlException => true
    case _ => false
  }

  /** All directories above one, also above the directory to which it is a symbolic link. */
  private def above(directory: Path): Seq[Path] = {
    def parents(of: Path) = Iterator.iterate(of.getParent)(_.getParent).takeWhile(_ != null).toSeq
    withoutLinks(directory).flatMap(parents).distinct
  }

  /**
   * Finishes the committed writes to a statement's target, and to tables of which it is a part, before the statement
   * looks up the location, because they may move it.
   *
   * @return the table's current entry in the catalog
   */
  def finishWrites(
      session: SparkSession,
      root: Path,
      table: Option[CatalogTable],
      hadoopConf: Configuration): Option[CatalogTable] = {
    val hasHelped =
      try finish(session, Seq(qualified(root, hadoopConf)), table, hadoopConf)
      catch {
        case e: IOException => throw new SparkException(
            s"Nothing can be written to ${table.fold(root.toString)(_.identifier.unquotedString)}: ${Causes.text(e)}",
            e)
      }
    if (hasHelped) {
      table.map { known =>
        session.sessionState.catalog.refreshTable(known.identifier)
        session.sharedState.externalCatalog.getTable(known.database, known.identifier.table)
      }
    } else {
      table
    }
  }

  /**
   * Finishes the committed writes to other tables in whose directories a statement writes or replaces files: through
   * links, or because partitions are there.
   *
   * @param directories the directories of the statement's target that it changes
   * @return whether there were such writes
   */
  def finishOthers(session: SparkSession, root: Path, directories: Seq[Path], hadoopConf: Configuration): Boolean =
    finish(session, TableLocations.outside(root, directories), None, hadoopConf)

  /** Finishes the committed writes to directories, which may be those of a table, and to the directories above them. */
  private def finish(
      session: SparkSession,
      targets: Seq[Path],
      table: Option[CatalogTable],
      hadoopConf: Configuration): Boolean = {
    val names = parallel(targets)(target => target -> withoutLinks(target))
    val finished = parallel((targets ++ targets.flatMap(above)).distinct) { directory =>
      val isTarget = targets.contains(directory)
      val below = if (isTarget) Nil
      else names.collect { case (target, all) if all.exists(TableLocations.relative(directory, _).nonEmpty) => target }
      open(session, directory, table.filter(_ => isTarget), below, hadoopConf)
    }.flatten.filter(_.hasHelped)
    finished.foreach(guard => forgetListings(session, guard.root))
    finished.nonEmpty
  }

  /**
   * Makes a session list files below a directory again, in which it has finished the write of another process: it may
   * have listed them when only some were visible, for any table.
   */
  def forgetListings(session: SparkSession, root: Path): Unit = {
    session.sessionState.catalog.invalidateAllCachedTables()
    session.catalog.refreshByPath(root.toString)
  }

  /** Whether a query reads a directory, or one above or below it. */
  def doesRead(session: SparkSession, query: LogicalPlan, written: Path, hadoopConf: Configuration): Boolean = {
    val target = qualified(written, hadoopConf)
    new StatementReads(session).of(
      query).flatMap(read => Try(qualified(read.root, hadoopConf)).toOption).exists(TableLocations.overlap(_, target))
  }

  private def qualified(root: Path, hadoopConf: Configuration): Path =
    SwapDirectories.home(root.getFileSystem(hadoopConf).makeQualified(root))
}
