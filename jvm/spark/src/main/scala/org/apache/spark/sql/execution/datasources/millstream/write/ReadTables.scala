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
 * The tables and directories that a statement reads. Committed writes to them that are not finished are finished before their files are listed,
 * whoever has begun them; when the statement commits, it is seen whether they have changed since.
 */
private[sql] object ReadTables {
  /** What a command that writes directly has read; Spark hands it on with every copy of the command. */
  val Guards: TreeNodeTag[Seq[ReadGuard]] = TreeNodeTag("millstream.write.reads")

  private val AtOnce = 64

  /** Of two indexes of the same paths, which are equal, each has listed files at its own time. */
  private final case class Read(root: Path, table: Option[CatalogTable], index: Option[FileIndex]) {
    override def equals(other: Any): Boolean = other match {
      case Read(`root`, `table`, another) => index.orNull eq another.orNull
      case _ => false
    }

    override def hashCode: Int = root.hashCode
  }

  /**
   * Called while the statement is analysed: its files are listed later.
   *
   * @param written the root of what the statement writes
   */
  def guard(session: SparkSession, query: LogicalPlan, written: Path, hadoopConf: Configuration): Seq[ReadGuard] = {
    val target = qualified(written, hadoopConf)
    val found = parallel(reads(query).distinct)(read => directories(read, hadoopConf).map(_ -> read)).flatten
    parallel(found.groupBy(_._1).toSeq) { case (root, same) =>
      try {
        val guard = ReadGuard.of(root, hadoopConf, CatalogMetastore.of(session, same.flatMap(_._2.table).headOption))
        // A relation may have listed its files before, and what it has listed may be an hour old. When that was, an index does not say.
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
    Parallel.map[T, R](AtOnce, items.asJavaCollection, item => step(item)).asScala.toSeq

  /** A swap may have put a table without partitions elsewhere since the session has read it, and its old files stay for a while. */
  private def checkLocation(session: SparkSession, table: CatalogTable): Unit = if (table.partitionColumnNames.isEmpty) {
    val now = session.sharedState.externalCatalog.getTable(table.database, table.identifier.table).location
    if (new Path(now) != new Path(table.location)) {
      session.sessionState.catalog.refreshTable(table.identifier)
      throw new SparkException(s"${table.identifier.unquotedString} has been put at $now since this session has read it, by another that has overwritten it; nothing " +
        "is written, and the statement can be run again")
    }
  }

  /** Directories that may have a journal: a table's; that of files or partitions that are named by their paths, and those above them up to the table's. */
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
   * Finishes the committed writes to what a statement is about to write to, before it looks where that is: they may put it elsewhere.
   *
   * @return the table, as the catalog has it then
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

  /** Whether a query reads what is in a directory, or in one above or below it. */
  def doesRead(query: LogicalPlan, written: Path, hadoopConf: Configuration): Boolean = {
    val target = qualified(written, hadoopConf)
    reads(query).map(read => qualified(read.root, hadoopConf))
      .exists(root => root == target || TablePlaces.relative(root, target).nonEmpty || TablePlaces.relative(target, root).nonEmpty)
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
