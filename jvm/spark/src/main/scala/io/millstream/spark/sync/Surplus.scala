package io.millstream.spark.sync

import org.apache.spark.sql.{Dataset, Encoder, Encoders}
import org.apache.spark.sql.functions.{col, lit, when}

import WorkingDirectory._

/**
 * An entry that only the destination has.
 *
 * @param isInDeleted whether its parent directory is also surplus
 * @param isProtected whether the filter protects it
 */
final case class SurplusEntry(step: Step, isInDeleted: Boolean, isProtected: Boolean)

/**
 * Determines which entries that only the destination has may be deleted. These stay:
 *
 *  - entries that the filter protects, with their contents;
 *  - the parent directories of such entries;
 *  - the contents of directories that could not be listed in the source, or are in another file system there.
 */
private[sync] final class Surplus(work: WorkingDirectory, site: Site, listings: Listings) {
  import Surplus._

  /** Steps that delete entries, or report that a directory is kept. */
  def steps(surplus: Dataset[Step]): Dataset[Step] = {
    work.save(Examined, examined(surplus))
    val entries = work.load[SurplusEntry](Examined)
    val kept = entries.filter(col("isProtected"))
    val unlisted = listings.all(Source).filter(col("kind").isin(Kind.Failed, Kind.OtherFileSystem)).select("path")
    val closed =
      kept.filter(col("step.destination.kind") === Kind.Directory).select("step.path").union(unlisted).as[String]
    val open = entries.filter(!col("isProtected")).select("step.*", "isInDeleted")
    val candidates =
      if (closed.isEmpty) open else open.join(below(closed, open.select("path").as[String]), Seq("path"), "left_anti")
    if (kept.isEmpty) candidates.drop("isInDeleted").as[Step]
    else {
      val holding = kept.select("step.path").as[String].flatMap(Paths.ancestors(_)).distinct().toDF("path").withColumn(
        "holds",
        lit(true))
      // One notice for each tree that stays.
      candidates.join(holding, Seq("path"), "left_outer").filter(col("holds").isNull || !col("isInDeleted"))
        .withColumn(
          "action",
          when(col("holds"), Action.Keep).otherwise(col("action"))).drop("isInDeleted", "holds").as[Step]
    }
  }

  private def examined(surplus: Dataset[Step]): Dataset[SurplusEntry] = {
    val directories = listings.entries(Source).filter(col("kind") === Kind.Directory).select("path").as[String]
    val site = this.site
    surplus.map(step => Paths.parent(step.path) -> step.copy(action = Action.Delete))
      .joinWith(directories, col("_1") === directories("path"), "left_outer")
      .mapPartitions { pairs =>
        val filter = site.openFilter()
        pairs.map { case ((_, step), above) =>
          val isInDeleted = above == null
          SurplusEntry(
            step,
            isInDeleted,
            filter.exists(_.protects(step.path, step.destination.exists(_.isDirectory), isInDeleted)))
        }
      }
  }

  /** The paths that are at or below some others. */
  private def below(directories: Dataset[String], paths: Dataset[String]): Dataset[String] = {
    val lineages = paths.flatMap(path => (Iterator(path) ++ Paths.ancestors(path)).map(_ -> path)).toDF("above", "path")
    lineages.join(directories.toDF("above").distinct(), Seq("above"), "left_semi").select("path").distinct().as[String]
  }
}

private object Surplus {
  private val Examined = "plan-surplus"

  private implicit val encodesSurplus: Encoder[SurplusEntry] = Encoders.product[SurplusEntry]
  private implicit val encodesKeyed: Encoder[(String, Step)] = Encoders.product[(String, Step)]
  private implicit val encodesPairs: Encoder[(String, String)] = Encoders.product[(String, String)]
}
