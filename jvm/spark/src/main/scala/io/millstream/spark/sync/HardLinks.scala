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
final case class LinkName(entry: Entry, found: Option[Entry], step: Option[Step], isShared: Boolean)

/**
 * A link and the rules' answers about it, of which its step will be one.
 *
 * @param isLeft whether nothing is done there, whatever becomes of the other links
 * @param staying the step if it is unchanged, if that is noted
 * @param lettersOfCopy the letters if it is copied
 * @param lettersOfLink the letters if it becomes a link to another one
 */
final case class LinkCandidate(
    name: LinkName,
    isLeft: Boolean,
    staying: Option[Step],
    lettersOfCopy: String,
    lettersOfLink: String) {
  def entry: Entry = name.entry
  def found: Option[Entry] = name.found
  def step: Option[Step] = name.step
}

/** The source of a destination file that has several hard links. */
final case class CopyOf(inode: String, file: String, path: String)

/** Makes hard links to one file of the source hard links to one copy. */
private[sync] object HardLinks {
  private implicit def encodesCandidates: Encoder[LinkCandidate] = Encoders.product[LinkCandidate]
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
      .mapPartitions(_.map { case (((entry, found), step), other) =>
        LinkName(entry, Option(found), Option(step), isShared = other != null)
      }.grouped(Decision.Batch).flatMap(candidates(_, rules)))
      .groupByKey(_.entry.inode.get).flatMapGroups((_, names) => of(names.toSeq))
  }

  /** Asks the rules about all of some names, so that [[of]] need not ask about each. */
  def candidates(names: Seq[LinkName], rules: Rules): Seq[LinkCandidate] = {
    val paths = names.map(name => Option(name.entry) -> name.found)
    val letters = Decision.lettersOfCopies(paths, rules).zip(Decision.lettersOfLinks(paths, rules))
    names.zip(Decision.leave(paths, rules)).zip(Decision.stayingAll(paths, rules)).zip(letters).map {
      case (((name, leaves), staying), (ofCopy, ofLink)) =>
        LinkCandidate(name, name.found.isEmpty || leaves, staying, ofCopy, ofLink)
    }
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
  def of(names: Seq[LinkCandidate]): Seq[Step] = {
    val (apart, together) = names.partition(isApart)
    val counts = together.flatMap(inodeOf).groupBy(identity).map { case (inode, names) => inode -> names.length }
    val ordered = together.map(name => if (name.name.isShared) replacing(name) else name)
      .sortBy(name => (isMade(name), -inodeOf(name).fold(0)(counts), name.entry.path))
    val steps = ordered.headOption.toSeq.flatMap { first =>
      first.step.orElse(first.staying) ++ ordered.tail.flatMap(name => linkOf(name, first).orElse(stayingLink(name)))
    }
    apart.flatMap(_.step) ++ steps
  }

  /** Whether a link does not take part. */
  private def isApart(name: LinkCandidate): Boolean =
    name.step.fold(name.isLeft)(step => !Set(Action.Copy, Action.Link, Action.Amend)(step.action))

  private def inodeOf(name: LinkCandidate): Option[String] = name.found.flatMap(_.inode)

  private def replacing(name: LinkCandidate): LinkCandidate = if (isMade(name)) name
  else {
    val changes = name.step.fold(name.lettersOfCopy)(_.changes)
    name.copy(name = name.name.copy(step = Some(Step(
      name.entry.path,
      if (name.entry.isFile) Action.Copy else Action.Link,
      "it is also the copy of another file",
      Some(name.entry),
      name.found,
      changes = changes))))
  }

  private def isMade(name: LinkCandidate): Boolean =
    name.step.exists(step => Set(Action.Copy, Action.Link)(step.action))

  private def stayingLink(name: LinkCandidate): Option[Step] = name.staying.map(_.copy(changes = name.lettersOfLink))

  private def linkOf(name: LinkCandidate, first: LinkCandidate): Option[Step] = {
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
        changes = name.lettersOfLink,
        other = Some(first.entry.path))
    }
  }
}
