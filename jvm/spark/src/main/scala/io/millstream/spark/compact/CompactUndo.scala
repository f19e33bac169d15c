package io.millstream.spark.compact

import java.nio.file.Path
import java.util.OptionalLong

import io.millstream.hadoop.compact.NativeCompaction

/** Keeps, puts back and removes the files that compactions in place replaced. */
private[spark] object CompactUndo {

  /** When the files that a compaction replaces may be removed. */
  def keepUntil(options: CompactOptions): OptionalLong =
    if (options.keepSeconds == 0) OptionalLong.empty else OptionalLong.of(nowSeconds + options.keepSeconds)

  def nowSeconds: Long = System.currentTimeMillis / 1000

  /**
   * Puts back the files that the latest compaction of a tree replaced.
   *
   * @param places its possible staging directories; committed compactions there are finished
   * @param open opens one of them
   * @param check refuses to undo the compaction with this staging directory
   */
  def undo(
      options: CompactOptions,
      source: Path,
      places: Seq[Path],
      open: Path => NativeCompaction,
      check: Path => Unit): CompactSummary = {
    def undone(place: Path) = {
      check(place)
      if (options.dryRun) NativeCompaction.predictUndo(place.toString) else withOpened(place, open)(_.undo())
    }
    val done = places.find(place => NativeCompaction.hasKept(place.toString)).map(undone)
      .getOrElse(throw new CompactFailure(s"$source: no files replaced by an earlier compaction have been kept"))
    of(options, source).copy(removed = done.outputs, restored = done.replaced, left = CompactResult.asScala(done.left))
  }

  /** Removes the files that earlier compactions of a tree replaced. */
  def purge(
      options: CompactOptions,
      source: Path,
      places: Seq[Path],
      open: Path => NativeCompaction): CompactSummary = {
    val counts = places.map { place =>
      if (options.dryRun) NativeCompaction.predictPurge(place.toString) else withOpened(place, open)(_.purgeAll())
    }
    of(options, source).copy(purged = counts.sum)
  }

  private def withOpened[T](place: Path, open: Path => NativeCompaction)(action: NativeCompaction => T): T = {
    val staging = open(place)
    try action(staging)
    finally staging.remove()
  }

  private def of(options: CompactOptions, source: Path): CompactSummary =
    CompactResult.of(options, source.toString, source.toString, CompactPlan(0, 0, 0, Vector.empty, 0, Nil), Nil, 0)
}
