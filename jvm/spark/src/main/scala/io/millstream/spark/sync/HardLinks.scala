package io.millstream.spark.sync

import org.apache.spark.sql.{Dataset, Encoder, Encoders}
import org.apache.spark.sql.functions.{col, count, lit}

import WorkingDirectory._

/**
 * One of possibly several hard links to a file.
 *
 * @param step its step, regardless of the other links
 * @param isShared whether the destination's file is also the copy of another file
 */
final case class LinkCandidate(entry: Entry, found: Option[Entry], step: Option[Step], isShared: Boolean)

/** The source of a destination file that has several hard links. */
final case class CopyOf(inode: String, file: String, path: String)

/** Makes hard links to one file of the source hard links to one copy. */
private[sync] object HardLinks {
  private implicit def encodesNames: Encoder[LinkCandidate] = Encoders.product[LinkCandidate]
  private implicit def encodesCopies: Encoder[CopyOf] = Encoders.product[CopyOf]

  /**
   * The steps for files of the source with several hard links.
   *
   * @param planned their steps, regardless of the other links
   */
  def steps(
      source: Dataset[Entry],
      destination: Dataset[Entry],
      planned: Dataset[Step],
      rules: Rules): Dataset[Step] = {
    val names = source.filter(col("inode").isNotNull)
    val both = names.joinWith(destination, names("path") === destination("path"), "left_outer")
    val named = both.joinWith(planned, both("_1.path") === planned("path"), "left_outer")
    val shared = sharedCopies(source, destination)
    named.joinWith(shared, named("_1._1.path") === shared("path"), "left_outer")
      .map { case (((entry, found), step), other) =>
        LinkCandidate(entry, Option(found), Option(step), isShared = other != null)
      }
      .groupByKey(_.entry.inode.get).flatMapGroups((_, names) => of(names.toSeq, rules))
  }

  /** The destination's links to files that are copies of several files of the source. */
  private def sharedCopies(source: Dataset[Entry], destination: Dataset[Entry]): Dataset[CopyOf] = {
    val several = destination.filter(col("inode").isNotNull)
    val copies = source.joinWith(several, source("path") === several("path"))
      .map { case (entry, found) => CopyOf(found.inode.get, entry.inode.getOrElse(s"/${entry.path}"), entry.path) }
    val inodes =
      copies.select("inode", "file").distinct().groupBy("inode").agg(count(lit(1)).as("files")).filter(col("files") > 1)
    copies.join(inodes.select("inode"), Seq("inode"), "left_semi").as[CopyOf]
  }

  /**
   * The steps for the links to one file: the others become links to the one that needs no copy, or else to the first.
   * If several need no copy, the file with most links is chosen.
   */
  def of(names: Seq[LinkCandidate], rules: Rules): Seq[Step] = {
    val (apart, together) = names.partition(isApart(_, rules))
    val counts = together.flatMap(inodeOf).groupBy(identity).map { case (inode, names) => inode -> names.length }
    val ordered = together.map(name => if (name.isShared) replacing(name, rules) else name)
      .sortBy(name => (isMade(name), -inodeOf(name).fold(0)(counts), name.entry.path))
    val steps = ordered.headOption.toSeq.flatMap { first =>
      val ofFirst = first.step.orElse(Decision.staying(first.entry, first.found, rules))
      ofFirst ++ ordered.tail.flatMap(name => linkOf(name, first, rules).orElse(stayingLink(name, rules)))
    }
    apart.flatMap(_.step) ++ steps
  }

  /** Whether a link does not take part. */
  private def isApart(name: LinkCandidate, rules: Rules): Boolean = name.step match {
    case Some(step) => !Set(Action.Copy, Action.Link, Action.Amend)(step.action)
    case None => name.found.forall(Decision.leaves(name.entry, _, rules))
  }

  private def inodeOf(name: LinkCandidate): Option[String] = name.found.flatMap(_.inode)

  private def replacing(name: LinkCandidate, rules: Rules): LinkCandidate = if (isMade(name)) name
  else {
    val changes = name.step.fold(Decision.lettersOfCopy(name.entry, name.found.get, rules))(_.changes)
    name.copy(step = Some(Step(
      name.entry.path,
      if (name.entry.isFile) Action.Copy else Action.Link,
      "it is also the copy of another file",
      Some(name.entry),
      name.found,
      changes = changes)))
  }

  private def isMade(name: LinkCandidate): Boolean =
    name.step.exists(step => Set(Action.Copy, Action.Link)(step.action))

  private def stayingLink(name: LinkCandidate, rules: Rules): Option[Step] =
    Decision.staying(name.entry, name.found, rules).map(_.copy(changes =
      Decision.lettersOfLink(name.entry, name.found, rules)))

  private def linkOf(name: LinkCandidate, first: LinkCandidate, rules: Rules): Option[Step] = {
    val (entry, found) = (name.entry, name.found)
    val isAlready = !isMade(first) && inodeOf(name).nonEmpty && inodeOf(name) == inodeOf(first)
    Option.when(!isAlready) {
      Step(
        entry.path,
        Action.HardLink,
        found.fold("new")(_ => "a hard link"),
        Some(entry),
        found,
        makesWay = found.exists(_.isDirectory),
        changes = Decision.lettersOfLink(entry, found, rules),
        other = Some(first.entry.path))
    }
  }
}
