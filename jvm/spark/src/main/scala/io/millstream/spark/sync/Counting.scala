package io.millstream.spark.sync

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.functions.{coalesce, col, count, lit, sum}

import WorkingDirectory._

/** Counts the manifest's rows. Only the first problems reach the driver. */
private[sync] final class Counting(work: WorkingDirectory) {
  import Counting._

  private val parts = work.parts(s"$Manifest-")
  private lazy val manifest = work.load[Outcome](parts: _*).filter(col("reason") =!= LeftBefore)

  private val groups: Seq[Group] =
    if (parts.isEmpty) Nil
    else manifest.groupBy(
      col("action"),
      col("status"),
      col("reason").isin(New, Phases.Contents)).agg(count(lit(1)), coalesce(sum("size"), lit(0L))).collect()
      .map(row => Group(row.getString(0), row.getString(1), row.getBoolean(2), row.getLong(3), row.getLong(4))).toSeq

  private def countOf(is: Group => Boolean): Long = groups.filter(is).map(_.count).sum

  def summary(empty: SyncSummary, undeleted: Long): SyncSummary = {
    val isDone = Set(Status.Done, Status.Grown, Status.Wanted)
    val copies = groups.filter(group => group.action == Action.Copy && isDone(group.status))
    empty.copy(
      created = countOf(group =>
        isDone(group.status) && (group.action == Action.Directory || Made(group.action) && group.isSpecial)),
      copiedFiles = copies.map(_.count).sum,
      copiedBytes = copies.map(_.bytes).sum,
      kept = countOf(_.status == Status.Kept),
      amended = countOf(group => group.action == Action.Amend && isDone(group.status) && !group.isSpecial),
      deleted = countOf(group => group.action == Action.Delete && isDone(group.status)),
      undeleted = undeleted,
      moving = countOf(group => Status.Moving(group.status)),
      errors = countOf(_.status == Status.Failed),
      problems = if (countOf(_.status == Status.Failed) == 0) Nil else problems)
  }

  private def problems: Seq[Problem] =
    manifest.filter(col("status") === Status.Failed).limit(MaxShown).collect().toSeq
      .map(outcome =>
        Problem(
          Names.shown(outcome.path),
          outcome.operation.getOrElse(outcome.action),
          outcome.message.fold("")(Names.shown))).sortBy(_.path)

  /**
   * Lines about entries that were or would be changed, and about unchanged ones if they were noted, one part after the
   * other, as [[Itemized]] formats them.
   */
  def lines(options: SyncOptions): Iterator[String] =
    if (parts.isEmpty) Iterator.empty
    else {
      val shown = manifest.filter(col("status").isin(Status.Done, Status.Grown, Status.Wanted, Status.Same))
      Itemized(options.prefix, options.items, options.asciiOutput).lines(shown.toLocalIterator().asScala)
    }

  /** Notices that are not errors. */
  def notices: Seq[String] =
    mounts.map(mount => s"not deleted, because a file system is mounted on it: ${Names.shown(mount)}") ++ noted

  private def noted =
    if (groups.forall(group => !Noted.contains(group.status))) Nil
    else manifest.filter(col("status").isin(Noted.keys.toSeq: _*)).limit(MaxShown).collect().toSeq.sortBy(_.path)
      .map(outcome =>
        s"${Noted(outcome.status)}: ${Names.shown(outcome.path)}${outcome.message.fold("")(why => s" ($why)")}")

  /** Mounts in the destination that would have been deleted. */
  private def mounts: Seq[String] =
    if (countOf(_.status == Status.Mounted) == 0) Nil
    else {
      val places =
        manifest.filter(col("status") === Status.Mounted).select(coalesce(col("message"), col("path"))).as[String]
      places.distinct().limit(MaxShown).collect().toSeq.sorted
    }
}

private[sync] object Counting {
  private val MaxShown = 1000
  private val New = "new"
  private val Made = Set(Action.Copy, Action.Link, Action.HardLink)
  private val Noted = Map(
    Status.Skipped -> "skipping non-regular file",
    Status.Vanished -> "file has vanished",
    Status.Changed -> "not copied, because it changed while it was read",
    Status.Grown -> "grew while it was copied; run this again for the rest",
    Status.Appeared -> "not deleted, because the source has it now",
    Status.NotEmpty -> "cannot delete non-empty directory")

  /** @param isSpecial whether the entry is new, or is a directory whose time is only restored */
  private final case class Group(action: String, status: String, isSpecial: Boolean, count: Long, bytes: Long)

  val LeftBefore = "left by an earlier run"
}
