package io.millstream.spark.sync

import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}

import io.millstream.hadoop.natives.WireWriter
import io.millstream.hadoop.tree.NativeSyncRules

/**
 * Lines about changes, in the form of rsync's `--itemize-changes`: `millstream_rsync_rules::itemize` formats them, many
 * at once.
 *
 * @param prefix prefix of the transfer's names
 * @param isItemized whether lines show the changes, as with `-i`, or only names, as with `-v`
 * @param isAscii whether all non-ASCII characters are escaped
 */
private[sync] final case class Itemized(prefix: String, isItemized: Boolean, isAscii: Boolean = false) {

  /** The lines, in the order of the outcomes; some outcomes have none. */
  def lines(outcomes: Iterator[Outcome]): Iterator[String] =
    outcomes.filter(outcome => outcome.changes.nonEmpty || outcome.action == Action.Delete).grouped(Itemized.Batch)
      .flatMap(some => new String(NativeSyncRules.lines(changes(some)), UTF_8).linesIterator)

  /** As `sync_rules.rs` reads them. */
  def changes(outcomes: Seq[Outcome]): Array[Byte] = {
    val out = new WireWriter
    out.u8(Decision.bits(isItemized, isAscii))
    outcomes.foreach { outcome =>
      val isName = outcome.action == Action.HardLink
      val target = outcome.target.map(target => if (isName) Paths.within(prefix, target) else target)
      out.u8(Decision.bits(
        outcome.action == Action.Delete,
        outcome.kind == Kind.Directory,
        target.nonEmpty,
        isName))
      out.prefixed(outcome.changes.getBytes(US_ASCII))
      (Paths.within(prefix, outcome.path) +: target.toSeq).foreach(name => out.prefixed(Names.bytes(name)))
    }
    out.toByteArray
  }
}

private object Itemized {

  /** How many lines are formatted at once. */
  private val Batch = 1024
}
