package io.millstream.spark.sync

import org.apache.spark.sql.{Dataset, Encoder, Encoders}
import org.apache.spark.sql.functions.col

import WorkingDirectory._

/**
 * A name of a file that may have others.
 *
 * @param step what happens to it as long as these do not count
 */
final case class FileName(entry: Entry, found: Option[Entry], step: Option[Step])

/** Lets the names of a file of the source become names of one copy. */
private[sync] object HardLinks {
  private implicit def encodesNames: Encoder[FileName] = Encoders.product[FileName]

  /**
   * What happens to each file of the source that has several names.
   *
   * @param planned what happens to them as long as the others do not count
   */
  def steps(source: Dataset[Entry], destination: Dataset[Entry], planned: Dataset[Step], rules: Rules): Dataset[Step] = {
    val names = source.filter(col("inode").isNotNull)
    val both = names.joinWith(destination, names("path") === destination("path"), "left_outer")
    both.joinWith(planned, both("_1.path") === planned("path"), "left_outer")
      .map { case ((entry, found), step) => FileName(entry, Option(found), Option(step)) }
      .groupByKey(_.entry.inode.get).flatMapGroups((_, names) => of(names.toSeq, rules))
  }

  /** What happens to the names of one file: the one that needs no copy, or the first one, is what the others become names of. */
  def of(names: Seq[FileName], rules: Rules): Seq[Step] = {
    val (apart, together) = names.partition(isApart(_, rules))
    val counts = together.flatMap(inodeOf).groupBy(identity).map { case (inode, names) => inode -> names.length }
    // What has other names, too, stays theirs.
    def isTheirs(name: FileName) = inodeOf(name).exists(inode => name.found.exists(_.links > counts(inode)))
    val ordered = together.map(name => if (isTheirs(name)) anew(name, rules) else name).sortBy(name => (isMade(name), name.entry.path))
    val steps = ordered.headOption.toSeq.flatMap(first => first.step ++ ordered.tail.flatMap(further(_, first, rules)))
    apart.flatMap(_.step) ++ steps
  }

  /** Whether a name takes no part. */
  private def isApart(name: FileName, rules: Rules): Boolean = name.step match {
    case Some(step) => !Set(Action.Copy, Action.Link, Action.Amend)(step.action)
    case None => name.found.forall(Decision.leaves(name.entry, _, rules))
  }

  private def inodeOf(name: FileName): Option[String] = name.found.flatMap(_.inode)

  private def anew(name: FileName, rules: Rules): FileName = if (isMade(name)) name else {
    val changes = name.step.fold(Itemized.replaced(name.entry, name.found.get, rules))(_.changes)
    name.copy(step = Some(Step(name.entry.path, if (name.entry.isFile) Action.Copy else Action.Link, "its copy has other names", Some(name.entry), name.found,
      changes = changes)))
  }

  private def isMade(name: FileName): Boolean = name.step.exists(step => Set(Action.Copy, Action.Link)(step.action))

  private def further(name: FileName, first: FileName, rules: Rules): Option[Step] = {
    val FileName(entry, found, _) = name
    val isAlready = !isMade(first) && inodeOf(name).nonEmpty && inodeOf(name) == inodeOf(first)
    Option.when(!isAlready) {
      Step(entry.path, Action.HardLink, found.fold("new")(_ => "a further name"), Some(entry), found, makesWay = found.exists(_.isDirectory),
        changes = Itemized.linked(entry, found, rules), other = Some(first.entry.path))
    }
  }
}
