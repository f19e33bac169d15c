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
 * What a commit tells the catalog: the partitions that it writes, with how many files and bytes they then have.
 *
 * @param replaces whether the files written are all that their directories then have
 * @param below partitions of which all files go: one that gets no new ones is dropped
 * @param always partitions, by name, that are to be there also if no file was written
 * @param replacesUnknown whether an INSERT INTO a partition that the catalog does not know replaces the files in its directory, as Hive does
 * @param isForNew whether partitions that the catalog has by then are left as they are: `IF NOT EXISTS`
 * @param ofTable whether the table itself, if it has no partitions, says how many files and bytes it has
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

/** One commit's: first it looks where the catalog has what is written, then it says what is to change. */
private[write] final class CatalogCommit(change: CatalogChange, directories: Directories, named: Seq[String], metastore: CatalogMetastore) {
  import CatalogCommit._
  import change._

  private val fileSystem = root.getFileSystem(conf)
  private var written = Seq.empty[String]
  private var known = Map.empty[String, Path]

  /** @param touched directories that get files */
  def find(touched: Set[String]): CommitPlan.Found = {
    written = (touched.map(SwapDirectories.partition) ++ always ++ Option.when(!isPartitioned)("")).toSeq.sorted
    val found = if (!isPartitioned || below.isEmpty) metastore.locations(table.database, table.identifier.table, written.asJava).asScala.toMap
      else metastore.locationsBelow(table, below.get)
    if (isForNew && found.nonEmpty) throw new MadeMeanwhile(found.keys.mkString(", "))
    known = found.map { case (name, location) => name -> qualified(location) }
    if (isSwap) {
      new CommitPlan.Found(replaced.asJava, Nil.asJava, false)
    } else {
      written.foreach(checkUnmoved)
      val moved = known.values.flatMap(TablePlaces.relative(root, _)).filter(directory => SwapDirectories.partition(directory) != directory)
      val old = if (named.isEmpty) touched.map(SwapDirectories.partition).map(directories.place) else named.toSet ++ moved
      new CommitPlan.Found(old.asJava, written.filterNot(known.contains).filter(_.nonEmpty).map(directories.place).asJava, replacesUnknown)
    }
  }

  private def qualified(location: String): Path = TablePlaces.qualified(fileSystem, new Path(location))

  private def isSwap: Boolean = directories.visibility == Visibility.METASTORE_SWAP

  /** Who has written where readers no longer look has written nothing. */
  private def checkUnmoved(name: String): Unit =
    known.get(name).filter(_ != TablePlaces.at(root, directories.place(name))).foreach { location =>
      val what = if (name.isEmpty) table.identifier.unquotedString else s"partition $name of ${table.identifier.unquotedString}"
      throw new IOException(s"$what has been put at $location since this statement began, by another that has overwritten it; nothing is " +
        "written, and it can be run again, after REFRESH TABLE in a session that has read the table before")
    }

  /** The directories of what is to be replaced, but for those outside that belong to others as well. */
  private def replaced: Seq[String] = {
    val (inside, outside) = known.values.toSeq.partition(TablePlaces.relative(root, _).nonEmpty)
    lazy val others = (metastore.locationsBelow(table, Map.empty) -- known.keys).values.map(qualified)
    val ours = outside.filter(path => TablePlaces.isBeside(root, path) && !others.exists(TablePlaces.overlap(path, _)))
    inside.map(TablePlaces.relative(root, _).get) ++ ours.map(_.toUri.getPath)
  }

  def plan(draft: CommitDraft): MetastoreChange =
    if (!isPartitioned) {
      if (isSwap) ofTheTable(draft).swap(null, TablePlaces.at(root, directories.of("")).toString)
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
      new MetastoreChange.Partition(name, new Path(root, directories.place(name)).toString, parameters(name).asJava)
    }
    val plain = of(partitions, dropped, Map.empty)
    if (!isSwap) plain
    else {
      val hasNone = dropped.nonEmpty || !written.forall(known.contains)
      plain.swap(if (hasNone) new Path(root, SwapDirectories.none(directories.job)).toString else null, null)
    }
  }

  private def of(partitions: Seq[MetastoreChange.Partition], dropped: Seq[String], ofTable: Map[String, String]): MetastoreChange =
    new MetastoreChange(table.database, table.identifier.table, partitions.asJava, dropped.asJava, ofTable.asJava, Outdated).of(metastore.id(table))

  /** What the catalog says of files that are there already need not be so: Spark does not keep it. */
  private def sizes(draft: CommitDraft, names: Seq[String]): Map[String, Map[String, String]] = {
    val kept = if (replaces) Map.empty[String, Totals] else draft.present(names.map(directories.of).asJava).asScala
    names.map { name =>
      val parts = Seq(kept.get(directories.of(name)), Option(draft.added.get(directories.of(name)))).flatten
      name -> Map(Files -> parts.map(_.files).sum.toString, Bytes -> parts.map(_.bytes).sum.toString)
    }.toMap
  }
}

/** Partitions that are to be written only if they are not there have come into being. */
private[write] final class MadeMeanwhile(val names: String) extends IOException(s"$names is there already")

private[sql] object CatalogCommit {
  val Files = "numFiles"
  val Bytes = "totalSize"

  /** What Hive and Spark say of rows and columns, and Spark of bytes, which nobody has counted anew. Spark's go together or not at all. */
  private val Outdated = java.util.Set.of("COLUMN_STATS_ACCURATE", "numRows", "rawDataSize", "spark.sql.statistics.")
}
