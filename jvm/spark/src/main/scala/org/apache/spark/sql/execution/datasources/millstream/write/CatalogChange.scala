package org.apache.spark.sql.execution.datasources.millstream.write

import java.io.FileNotFoundException

import scala.jdk.CollectionConverters._

import io.millstream.write.{CommitDraft, MetastoreChange, WriteOptions}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.util.ThreadUtils

/**
 * What a commit tells the catalog: the partitions that it writes, with how many files and bytes they then have.
 *
 * @param replaces whether the files written are all that their directories then have
 * @param overwritten directories of partitions whose files all go: one that gets no new ones is dropped
 * @param always directories of partitions that are to be there also if no file was written
 * @param ofTable whether the table itself, if it has no partitions, says how many files and bytes it has
 */
private[sql] final case class CatalogChange(
    table: CatalogTable,
    root: Path,
    conf: Configuration,
    replaces: Boolean,
    overwritten: Seq[String],
    always: Seq[String],
    ofTable: Boolean) {
  import CatalogChange._

  def plan(draft: CommitDraft): MetastoreChange = {
    val directories = (draft.added.keySet.asScala ++ always).toSeq.sorted
    val dropped = overwritten.diff(directories)
    if (table.partitionColumnNames.isEmpty) {
      if (ofTable) change(Nil, Nil, sizes(draft, Seq(""))("")) else null
    } else if (directories.isEmpty && dropped.isEmpty) {
      null
    } else {
      val parameters = sizes(draft, directories)
      val partitions = directories.map(d => new MetastoreChange.Partition(d, new Path(root, d).toString, parameters(d).asJava))
      change(partitions, dropped, Map.empty)
    }
  }

  private def change(partitions: Seq[MetastoreChange.Partition], dropped: Seq[String], ofTable: Map[String, String]): MetastoreChange =
    new MetastoreChange(table.database, table.identifier.table, partitions.asJava, dropped.asJava, ofTable.asJava, Outdated)

  private def sizes(draft: CommitDraft, directories: Seq[String]): Map[String, Map[String, String]] = {
    val kept = if (replaces) Map.empty[String, (Long, Long)] else present(directories)
    directories.map { directory =>
      val added = Option(draft.added.get(directory)).fold((0L, 0L))(totals => (totals.files, totals.bytes))
      val (files, bytes) = kept.getOrElse(directory, (0L, 0L))
      directory -> Map(Files -> (files + added._1).toString, Bytes -> (bytes + added._2).toString)
    }.toMap
  }

  /** Data files that directories have, and their bytes. What the catalog says of them need not be so: Spark does not keep it. */
  private def present(directories: Seq[String]): Map[String, (Long, Long)] = {
    val fileSystem = root.getFileSystem(conf)
    ThreadUtils.parmap(directories, "millstream-sizes", math.min(directories.length, conf.getInt(WriteOptions.THREADS, Threads))) { directory =>
      val path = if (directory.isEmpty) root else new Path(root, directory)
      val found = try fileSystem.listStatus(path).toSeq catch { case _: FileNotFoundException => Nil }
      val data = found.filter(status => status.isFile && !"._".contains(status.getPath.getName.head))
      directory -> ((data.length.toLong, data.iterator.map(_.getLen).sum))
    }.toMap
  }
}

private[sql] object CatalogChange {
  val Files = "numFiles"
  val Bytes = "totalSize"
  private val Threads = 64

  /** What Hive and Spark say of rows, and Spark of bytes, which nobody has counted anew. */
  private val Outdated = java.util.Set.of("COLUMN_STATS_ACCURATE", "numRows", "rawDataSize",
    "spark.sql.statistics.totalSize", "spark.sql.statistics.numRows")
}
