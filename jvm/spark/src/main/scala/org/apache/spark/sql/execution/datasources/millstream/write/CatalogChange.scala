package org.apache.spark.sql.execution.datasources.millstream.write

import java.io.IOException

import scala.jdk.CollectionConverters._

import io.millstream.write.metastore.MetastoreChange
import io.millstream.write.protocol.{CommitDraft, CommitPlan}
import io.millstream.write.store.SwapDirectories
import io.millstream.write.protocol.CommitDraft.Totals
import io.millstream.write.store.WriteOptions.Visibility
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec

/**
 * A commit's change of the catalog: the written partitions, with their numbers of files and bytes after the commit.
 *
 * @param replaces whether the written files replace all others in their directories
 * @param below partitions whose files are all replaced; a partition that gets no new files is dropped
 * @param always names of partitions that must exist even if no file was written
 * @param replacesUnknown whether an INSERT INTO a partition that the catalog does not know replaces the files in its
 *     directory, as Hive does
 * @param isForNew whether partitions that exist at the commit are left unchanged: `IF NOT EXISTS`
 * @param ofTable whether an unpartitioned table itself has the numbers of files and bytes
 */
private[sql] final case class CatalogChange(
    table: CatalogTable,
    root: Path,
    conf: Configuration,
    replaces: Boolean,
    below: Option[TablePartitionSpec],
    always: Seq[String],
    replacesUnknown: Boolean,
    isForNew: Boolean,
    ofTable: Boolean) {

  def isPartitioned: Boolean = table.partitionColumnNames.nonEmpty
}

/** The catalog's part of one commit: it first looks up the current locations, and then plans the change. */
private[write] final class CatalogCommit(
    change: CatalogChange,
    directories: Directories,
    named: Seq[String],
    metastore: CatalogMetastore) {
  import CatalogCommit._
  import change._

  private val fileSystem = root.getFileSystem(conf)
  private var written = Seq.empty[String]
  private var known = Map.empty[String, Path]

  /** @param touched directories that get files */
  def find(touched: Set[String]): CommitPlan.Found = {
    written = (touched.map(SwapDirectories.partition) ++ always ++ Option.when(!isPartitioned)("")).toSeq.sorted
    val found = if (!isPartitioned || below.isEmpty)
      metastore.locations(table.database, table.identifier.table, written.asJava).asScala.toMap
    else metastore.locationsBelow(table, below.get)
    if (isForNew && found.nonEmpty) throw new CreatedMeanwhile(found.keys.mkString(", "))
    known = found.map { case (name, location) => name -> qualified(location) }
    if (isSwap) {
      new CommitPlan.Found(replaced.asJava, Nil.asJava, false)
    } else {
      written.foreach(checkUnmoved)
      val moved = known.values.flatMap(TableLocations.relative(root, _)).filter(directory =>
        SwapDirectories.partition(directory) != directory)
      val old =
        if (named.isEmpty) touched.map(SwapDirectories.partition).map(directories.destination) else named.toSet ++ moved
      new CommitPlan.Found(
        old.asJava,
        written.filterNot(known.contains).filter(_.nonEmpty).map(directories.destination).asJava,
        replacesUnknown)
    }
  }

  private def qualified(location: String): Path = TableLocations.qualified(fileSystem, new Path(location))

  private def isSwap: Boolean = directories.visibility == Visibility.METASTORE_SWAP

  /** Refuses the commit if the partition has been moved, because readers would not see the new files. */
  private def checkUnmoved(name: String): Unit =
    known.get(name).filter(_ != TableLocations.at(root, directories.destination(name))).foreach { location =>
      val what =
        if (name.isEmpty) table.identifier.unquotedString else s"partition $name of ${table.identifier.unquotedString}"
      throw new IOException(s"another statement has overwritten $what since this one began, and moved it to $location; nothing is written. This " +
        "statement can be run again, after REFRESH TABLE in a session that has read the table before")
    }

  /** The directories to replace, except for those outside the table that other partitions use as well. */
  private def replaced: Seq[String] = {
    val (inside, outside) = known.values.toSeq.partition(TableLocations.relative(root, _).nonEmpty)
    lazy val others = (metastore.locationsBelow(table, Map.empty) -- known.keys).values.map(qualified)
    val ours =
      outside.filter(path => TableLocations.isBeside(root, path) && !others.exists(TableLocations.overlap(path, _)))
    inside.map(TableLocations.relative(root, _).get) ++ ours.map(_.toUri.getPath)
  }

  def plan(draft: CommitDraft): MetastoreChange =
    if (!isPartitioned) {
      if (isSwap) ofTheTable(draft).swap(null, TableLocations.at(root, directories.of("")).toString)
      else if (ofTable) ofTheTable(draft) else null
    } else {
      val dropped = if (below.isEmpty) Nil else known.keys.toSeq.diff(written).sorted
      if (written.isEmpty && dropped.isEmpty) null else ofPartitions(draft, dropped)
    }

  private def ofTheTable(draft: CommitDraft): MetastoreChange =
    of(Nil, Nil, if (ofTable) sizes(draft, Seq(""))("") else Map.empty)

  private def ofPartitions(draft: CommitDraft, dropped: Seq[String]): MetastoreChange = {
    val parameters = sizes(draft, written)
    val partitions = written.map { name =>
      new MetastoreChange.Partition(
        name,
        new Path(root, directories.destination(name)).toString,
        parameters(name).asJava)
    }
    val added = written.filterNot(known.contains)
    val plain = of(partitions, dropped, Map.empty)
    val empty = if (dropped.isEmpty && added.isEmpty) null
    else new Path(root, SwapDirectories.emptyDirectory(directories.job)).toString
    val planned = if (isSwap) plain.swap(empty, null) else plain
    metastore.requireStorable(planned, added)
    planned
  }

  private def of(
      partitions: Seq[MetastoreChange.Partition],
      dropped: Seq[String],
      ofTable: Map[String, String]): MetastoreChange =
    new MetastoreChange(
      table.database,
      table.identifier.table,
      partitions.asJava,
      dropped.asJava,
      ofTable.asJava,
      Outdated).of(metastore.id(table))

  /**
   * The numbers of files and bytes. Existing files are counted, because Spark does not keep the catalog's numbers up to
   * date.
   */
  private def sizes(draft: CommitDraft, names: Seq[String]): Map[String, Map[String, String]] = {
    val kept = if (replaces) Map.empty[String, Totals] else draft.present(names.map(directories.of).asJava).asScala
    names.map { name =>
      val parts = Seq(kept.get(directories.of(name)), Option(draft.added.get(directories.of(name)))).flatten
      name -> Map(Files -> parts.map(_.files).sum.toString, Bytes -> parts.map(_.bytes).sum.toString)
    }.toMap
  }
}

/** Another statement has created partitions that were to be written only if they did not exist. */
private[write] final class CreatedMeanwhile(val names: String) extends IOException(s"$names already exists")

private[sql] object CatalogCommit {
  val Files = "numFiles"
  val Bytes = "totalSize"

  /**
   * Statistics of Hive and Spark on rows and columns, and of Spark on bytes, which this commit does not count. Spark's
   * statistics must be removed together.
   */
  private val Outdated = java.util.Set.of("COLUMN_STATS_ACCURATE", "numRows", "rawDataSize", "spark.sql.statistics.")
}
