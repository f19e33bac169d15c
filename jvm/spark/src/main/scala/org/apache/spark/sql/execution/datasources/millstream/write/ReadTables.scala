package org.apache.spark.sql.execution.datasources.millstream.write

import java.io.{FileNotFoundException, IOException}

import scala.jdk.CollectionConverters._

import io.millstream.write.protocol.{DirectJob, ReadGuard}
import io.millstream.write.store.{Parallel, SwapDirectories}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.SparkException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, HiveTableRelation}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation}

/**
 * The tables and directories that a statement reads. Before their files are listed, all committed but unfinished writes to them are finished,
 * whichever process began them. When the statement commits, it checks whether they have changed since.
 */
private[sql] object ReadTables {
  /** The guards of a command that writes directly; Spark copies the tag with the command. */
  val Guards: TreeNodeTag[Seq[ReadGuard]] = TreeNodeTag("millstream.write.reads")

  private val Threads = 64

  /** Compares indexes by identity: two indexes of the same paths are equal, but may have listed files at different times. */
  private final case class Read(root: Path, table: Option[CatalogTable], index: Option[FileIndex]) {
    override def equals(other: Any): Boolean = other match {
      case Read(`root`, `table`, another) => index.orNull eq another.orNull
      case _ => false
    }

    override def hashCode: Int = root.hashCode
  }

  /**
   * Guards the tables of a query. Called while the statement is analysed, before its files are listed.
   *
   * @param written the root directory of the statement's target
   */
  def guard(session: SparkSession, query: LogicalPlan, written: Path, hadoopConf: Configuration): Seq[ReadGuard] = {
    val target = qualified(written, hadoopConf)
    val found = parallel(reads(query).distinct)(read => directories(read, hadoopConf).map(_ -> read)).flatten
    parallel(found.groupBy(_._1).toSeq) { case (root, same) =>
      try {
        val guard = ReadGuard.of(root, hadoopConf, CatalogMetastore.of(session, same.flatMap(_._2.table).headOption))
        // A relation may have listed its files long ago, and an index does not tell when.
        guard.ifPresent { made =>
          if (made.hasHelped || made.version.changed > 0 || root == target) same.flatMap(_._2.index).foreach(_.refresh())
          if (made.version.changed > 0) same.flatMap(_._2.table).headOption.foreach(checkLocation(session, _))
        }
        Option(guard.orElse(null))
      } catch {
        case e: IOException => throw new SparkException(s"$root cannot be read: ${e.getMessage}", e)
      }
    }.flatten
  }

  private def parallel[T, R](items: Seq[T])(step: T => R): Seq[R] =
    Parallel.map[T, R](Threads, items.asJavaCollection, item => step(item)).asScala.toSeq

  /** A swap may have moved an unpartitioned table since the session last read it; the old files stay for some time. */
  private def checkLocation(session: SparkSession, table: CatalogTable): Unit = if (table.partitionColumnNames.isEmpty) {
    val now = session.sharedState.externalCatalog.getTable(table.database, table.identifier.table).location
    if (new Path(now) != new Path(table.location)) {
      session.sessionState.catalog.refreshTable(table.identifier)
      throw new SparkException(s"another statement has overwritten ${table.identifier.unquotedString} since this session has read it, and moved it to $now; nothing " +
        "is written, and the statement can be run again")
    }
  }

  /**
   * Directories that may have a journal: a table's; or, for files or partitions read by path, their directory and those above it up to the table's.
   */
  private def directories(read: Read, hadoopConf: Configuration): Seq[Path] =
    try {
      val fileSystem = read.root.getFileSystem(hadoopConf)
      val isFile = read.table.isEmpty && DirectJob.whyNot(fileSystem).isEmpty && fileSystem.getFileStatus(read.root).isFile
      val directory = if (isFile) read.root.getParent else read.root
      (if (read.table.nonEmpty) Seq(directory) else upToTable(directory)).map(qualified(_, hadoopConf))
    } catch {
      case _: FileNotFoundException => Nil
    }

  /**
   * Finishes the committed writes to a statement's target before the statement looks up the location, because they may move it.
   *
   * @return the table's current entry in the catalog
   */
  def finishWrites(session: SparkSession, root: Path, table: Option[CatalogTable], hadoopConf: Configuration): Option[CatalogTable] = {
    val guard = try ReadGuard.of(qualified(root, hadoopConf), hadoopConf, CatalogMetastore.of(session, table)) catch {
      case e: IOException => throw new SparkException(s"Nothing can be written to ${table.fold(root.toString)(_.identifier.unquotedString)}: ${e.getMessage}", e)
    }
    if (guard.isPresent && guard.get.hasHelped) {
      table.map { known =>
        session.sessionState.catalog.refreshTable(known.identifier)
        session.sharedState.externalCatalog.getTable(known.database, known.identifier.table)
      }
    } else {
      table
    }
  }

  /** Whether a query reads a directory, or one above or below it. */
  def doesRead(query: LogicalPlan, written: Path, hadoopConf: Configuration): Boolean = {
    val target = qualified(written, hadoopConf)
    reads(query).map(read => qualified(read.root, hadoopConf))
      .exists(root => root == target || TableLocations.relative(root, target).nonEmpty || TableLocations.relative(target, root).nonEmpty)
  }

  private def qualified(root: Path, hadoopConf: Configuration): Path = SwapDirectories.home(root.getFileSystem(hadoopConf).makeQualified(root))

  private def reads(query: LogicalPlan): Seq[Read] =
    query.collectWithSubqueries {
      case relation: HiveTableRelation => relation.tableMeta.storage.locationUri.map(uri => Read(new Path(uri), Some(relation.tableMeta), None)).toSeq
      case LogicalRelation(of: HadoopFsRelation, _, Some(table), _, _) if table.storage.locationUri.nonEmpty =>
        Seq(Read(new Path(table.location), Some(table), Some(of.location)))
      case LogicalRelation(of: HadoopFsRelation, _, _, _, _) => of.location.rootPaths.map(Read(_, None, Some(of.location)))
    }.flatten

  private def upToTable(path: Path): Seq[Path] =
    if (path.getParent != null && path.getName.indexOf('=') > 0) path +: upToTable(path.getParent) else Seq(path)
}
