package io.millstream.spark.sync

import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}

import io.millstream.hadoop.natives.{WireReader, WireWriter}
import io.millstream.hadoop.tree.NativeSyncRules

/**
 * The attributes that both sides support and the user wants preserved.
 *
 * @param modes the bits of modes that both sides have; 0 if they are not preserved
 * @param newModes the mode bits that new entries get from their sources if modes are not preserved; 0 for none
 * @param owner whether owners are preserved
 * @param group whether groups are preserved
 * @param times whether times are preserved, except those of directories and links
 * @param links whether symbolic links are copied
 * @param devices whether devices are created
 * @param specials whether pipes and sockets are created
 * @param hardLinks whether hard links to one file become hard links to one copy
 * @param extended whether access control lists or other extended attributes, listed in entries, are preserved
 */
private[sync] final case class Preserved(
    modes: Int,
    owner: Boolean,
    group: Boolean,
    times: Boolean,
    directoryTimes: Boolean,
    linkTimes: Boolean,
    links: Boolean,
    amends: Boolean,
    newModes: Int = 0,
    devices: Boolean = false,
    specials: Boolean = false,
    hardLinks: Boolean = false,
    extended: Boolean = false) {

  /** Whether entries of all kinds are copied. */
  def copiesAll: Boolean = links && devices && specials

  def timeOf(entry: Entry): Boolean = if (entry.isDirectory) directoryTimes else if (entry.isLink) linkTimes else times
}

/**
 * The rules by which entries count as changed, and what happens to them.
 *
 * @param examinesDeletions whether some entries that only the destination has may have to stay
 * @param keepsTimes whether files of the destination have the times of their sources, not of their writing
 * @param notesAll whether the plan includes unchanged entries
 */
private[sync] final case class Rules(
    preserved: Preserved,
    checksum: Boolean = false,
    sizeOnly: Boolean = false,
    ignoreTimes: Boolean = false,
    update: Boolean = false,
    existing: Boolean = false,
    ignoreExisting: Boolean = false,
    delete: Boolean = false,
    examinesDeletions: Boolean = false,
    modifyWindow: Option[Long] = None,
    keepsTimes: Boolean = true,
    notesAll: Boolean = false)

/** The actions for a path. */
private[sync] object Action {
  val Directory = "create directory"
  val Copy = "copy"

  /** Contents have to be compared first. */
  val Compare = "compare"
  val Link = "create"

  /** It becomes a hard link to another path. */
  val HardLink = "link"
  val Amend = "set attributes"

  /** Removes an entry that is in the way of a directory, which does not count as a separate deletion. */
  val MakeWay = "make way"
  val Delete = "delete"

  /** Only the destination has it; whether it is deleted depends on its parents and its contents. */
  val Surplus = "examine for deletion"

  /** A directory that cannot be deleted because of its contents. */
  val Keep = "keep"

  /** Nothing: a directory and its contents stay, because the source's entry of that name is not copied. */
  val Leave = "leave"

  /** Nothing, because both sides are the same. */
  val Stay = "stay"

  /** Nothing, and it is reported. */
  val Skip = "skip"

  /** Nothing, and it is an error. */
  val Fail = "fail"
}

/**
 * The action for a path, and its reason.
 *
 * @param makesWay whether an entry of another kind has to be removed first
 * @param changes the changes, in the letters of [[Itemized]]
 * @param other the target of a new hard link
 */
final case class Step(
    path: String,
    action: String,
    reason: String,
    source: Option[Entry],
    destination: Option[Entry],
    makesWay: Boolean = false,
    changes: String = "",
    other: Option[String] = None)

/**
 * Compares the two sides of a path, as rsync does it: `millstream_rsync_rules::decision` has the rules, and is asked about
 * many paths at once.
 */
private[sync] object Decision {

  /** What the source and the destination have at a path. */
  type Sides = (Option[Entry], Option[Entry])

  /** How many paths a task asks about at once. */
  val Batch = 1024

  /** Why something stays that the source does not have. */
  val Mounted = "it is mounted"

  /** Why a directory is not created, and nothing in it copied. */
  val Blocked = "directory not created, because something else has its name"

  /** What happens at each of some paths; None if nothing does. */
  def ofAll(paths: Seq[Sides], rules: Rules): Seq[Option[Step]] = asked(Question.Step, paths, rules)(step)

  /** None if nothing happens. */
  def of(source: Option[Entry], destination: Option[Entry], rules: Rules): Option[Step] =
    ofAll(Seq(source -> destination), rules).head

  /** What happens to a file that both sides have. */
  def file(entry: Entry, found: Entry, rules: Rules): Option[Step] =
    asked(Question.File, Seq(Some(entry) -> Some(found)), rules)(step).head

  /** What of the attributes differs, the contents being the same. */
  def amendment(entry: Entry, found: Entry, rules: Rules): Option[Step] =
    asked(Question.Amendment, Seq(Some(entry) -> Some(found)), rules)(step).head

  /** The steps for unchanged entries of the source, if these are noted. */
  def stayingAll(paths: Seq[Sides], rules: Rules): Seq[Option[Step]] = asked(Question.Staying, paths, rules)(step)

  /** The step for an unchanged entry, if these are noted. */
  def staying(entry: Entry, found: Option[Entry], rules: Rules): Option[Step] =
    stayingAll(Seq(Some(entry) -> found), rules).head

  /** Whether each decision needs the times that belong to the contents, which may cost a request. */
  def needTimes(paths: Seq[Sides], rules: Rules): Seq[Boolean] = flags(Question.NeedsTimes, paths, rules)

  /** Whether something of the destination is left alone at each of some paths, whatever the source has. */
  def leave(paths: Seq[Sides], rules: Rules): Seq[Boolean] = flags(Question.Leaves, paths, rules)

  /** The answers to a question about what both sides have; false where one of them has nothing. */
  private def flags(question: Int, paths: Seq[Sides], rules: Rules): Seq[Boolean] = {
    def isBoth(sides: Sides) = sides._1.nonEmpty && sides._2.nonEmpty
    val answers = asked(question, paths.filter(isBoth), rules)((in, _) => in.u8() != 0).iterator
    paths.map(sides => isBoth(sides) && answers.next())
  }

  /** The letters of `--itemize-changes` for files and links that are copied, often over something that was found. */
  def lettersOfCopies(paths: Seq[Sides], rules: Rules): Seq[String] =
    asked(Question.LettersOfCopy, paths, rules)((in, _) => letters(in))

  /** The letters for entries that become hard links to others. */
  def lettersOfLinks(paths: Seq[Sides], rules: Rules): Seq[String] =
    asked(Question.LettersOfLink, paths, rules)((in, _) => letters(in))

  /** As `sync_rules.rs` reads them. */
  object Question {
    val Step = 0
    val File = 1
    val Amendment = 2
    val Staying = 3
    val NeedsTimes = 4
    val Leaves = 5
    val LettersOfCopy = 6
    val LettersOfLink = 7
  }

  private def asked[T](question: Int, paths: Seq[Sides], rules: Rules)(answer: (WireReader, Sides) => T): Seq[T] = {
    val answers = new WireReader(NativeSyncRules.ask(questions(question, paths, rules)))
    paths.map(answer(answers, _))
  }

  def questions(question: Int, paths: Seq[Sides], rules: Rules): Array[Byte] = {
    val out = new WireWriter
    write(rules, out)
    paths.foreach { case (source, found) =>
      out.u8(question).u8(bits(source.nonEmpty, found.nonEmpty))
      (source ++ found).foreach(write(_, out))
    }
    out.toByteArray
  }

  /** Flags as one number, the first of them in the lowest bit. */
  def bits(flags: Boolean*): Int = flags.zipWithIndex.collect { case (true, bit) => 1 << bit }.sum

  private def write(rules: Rules, out: WireWriter): Unit = {
    val preserved = rules.preserved
    out.u8(bits(
      preserved.links,
      preserved.devices,
      preserved.specials,
      rules.update,
      rules.existing,
      rules.ignoreExisting,
      !rules.keepsTimes,
      rules.notesAll))
    out.u8(if (rules.checksum) 2 else if (rules.sizeOnly) 1 else if (rules.ignoreTimes) 3 else 0)
    out.u32(rules.modifyWindow match {
      case None => AsStored
      case Some(seconds) if seconds < 0 => Nanoseconds
      case Some(seconds) => math.min(seconds, Int.MaxValue).toInt
    })
    out.u8(if (!rules.delete) 0 else if (rules.examinesDeletions) 2 else 1).u32(preserved.modes).u8(bits(
      preserved.owner,
      preserved.group,
      preserved.times,
      preserved.directoryTimes,
      preserved.linkTimes,
      preserved.extended,
      preserved.amends))
  }

  private def write(entry: Entry, out: WireWriter): Unit = {
    val special = entry.special.map(Special.parts)
    val texts =
      Seq(entry.owner, entry.group, entry.target, entry.etag, entry.acls, entry.xattrs)
    out.u8(Kinds.getOrElse(special.fold(entry.kind)(_._1), OtherKind)).u64(entry.size).u64(special.fold(0L)(_._2))
    out.u8(bits(entry.mtime.nonEmpty +: entry.mode.nonEmpty +: texts.map(_.nonEmpty): _*))
    out.u8(bits(entry.inode.nonEmpty, entry.mount.nonEmpty))
    entry.mtime.foreach(out.u64)
    entry.mode.foreach(out.u32)
    texts.flatten.foreach(text => out.prefixed(text.getBytes(UTF_8)))
  }

  private val AsStored = -1
  private val Nanoseconds = -2
  private val Kinds =
    Seq(
      Kind.File,
      Kind.Directory,
      Kind.Link,
      Special.Pipe,
      Special.Socket,
      Special.CharacterDevice,
      Special.BlockDevice).zipWithIndex.toMap
  private val OtherKind = 7

  private def letters(in: WireReader): String = new String(in.prefixed(), US_ASCII)

  def step(in: WireReader, sides: Sides): Option[Step] = in.u8() match {
    case 0 => None
    case action =>
      val (source, found) = sides
      val (reason, makesWay, differing) = (in.u8(), in.u8() != 0, in.u32())
      val why = text(reason, differing, source, found)
      Some(Step((source ++ found).head.path, Actions(action - 1), why, source, found, makesWay, letters(in)))
  }

  private val Actions = Seq(
    Action.Directory,
    Action.Copy,
    Action.Compare,
    Action.Link,
    Action.Amend,
    Action.Delete,
    Action.Surplus,
    Action.Leave,
    Action.Stay,
    Action.Skip,
    Action.Fail)

  private def text(reason: Int, differing: Int, source: Option[Entry], found: Option[Entry]): String = reason match {
    case 0 => "new"
    case 1 => "size"
    case 2 => "time"
    case 3 => "contents"
    case 4 => "all files are wanted"
    case 5 => AttributeNames.collect { case (bit, name) if (differing & bit) != 0 => name }.mkString(", ")
    case 6 =>
      val isOtherKind = source.map(_.kind) != found.map(_.kind)
      s"a ${found.flatMap(_.special).filterNot(_ => isOtherKind).orElse(found.map(_.kind)).get} is in its place"
    case 7 => "target"
    case 8 if source.exists(_.isLink) => "a symbolic link"
    case 8 => s"a ${source.flatMap(_.special).getOrElse("special file")}"
    case 9 => "not in the source"
    case 10 => Mounted
    case 11 => "it exists"
    case 12 => Blocked
    case 13 => "up to date"
  }

  /** Names of `millstream_rsync_rules::itemize::Difference`. */
  private val AttributeNames =
    Seq(
      8 -> "time",
      16 -> "mode",
      32 -> "owner",
      64 -> "group",
      128 -> "access control list",
      256 -> "extended attributes")

  /**
   * The attributes that a copy gets.
   *
   * @param found the destination's previous entry
   */
  def attributes(entry: Entry, found: Option[Entry], preserved: Preserved): Attributes = Attributes(
    mtime = entry.mtime.filter(_ => preserved.timeOf(entry)),
    mode = if (entry.isLink) None
    else if (preserved.modes != 0) entry.mode.map(_ & preserved.modes)
    else if (preserved.newModes == 0) None
    else found.filter(_.kind == entry.kind).fold(entry.mode.map(_ & preserved.newModes))(_.mode),
    owner = entry.owner.filter(_ => preserved.owner),
    group = entry.group.filter(_ => preserved.group))
}
