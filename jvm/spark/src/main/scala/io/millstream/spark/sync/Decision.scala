package io.millstream.spark.sync

/**
 * What the two sides allow, and what the user wants of attributes.
 *
 * @param modes the bits of modes that both sides have; 0 if they are not preserved
 * @param newModes the bits of modes that new entries get from their sources where modes are not preserved; 0 for none
 * @param owner whether owners are preserved
 * @param group whether groups are
 * @param times whether times are, apart from those of directories and links
 * @param links whether symbolic links are copied
 * @param devices whether devices are made
 * @param specials whether pipes and sockets are made
 * @param hardLinks whether names of the same file become names of the same copy
 * @param extended whether access control lists or other extended attributes are preserved, of which entries tell
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
 * Which entries count as changed, and what happens to them.
 *
 * @param examinesDeletions whether not all that only the destination has may be deleted
 * @param keepsTimes whether files of the destination have the times of their sources, and not those at which they were
 *     written
 * @param notesAll whether the plan also has what stays as it is
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

/** What happens to a path. */
private[sync] object Action {
  val Directory = "create directory"
  val Copy = "copy"

  /** Contents have to be compared first. */
  val Compare = "compare"
  val Link = "create"

  /** It becomes a hard link to what another path has. */
  val HardLink = "link"
  val Amend = "set attributes"

  /** Something goes that is no directory and has the place of one, which is no deletion of its own. */
  val MakeWay = "make way"
  val Delete = "delete"

  /** Only the destination has it; whether it is deleted depends on what is above and below it. */
  val Surplus = "examine for deletion"

  /** A directory that cannot be deleted because of what is in it. */
  val Keep = "keep"

  /** Nothing: a directory keeps the place of something that is not copied, and what is in it. */
  val Leave = "leave"

  /** Nothing, because both sides are alike. */
  val Stay = "stay"

  /** Nothing, and it is reported. */
  val Skip = "skip"

  /** Nothing, and it is an error. */
  val Fail = "fail"
}

/**
 * What happens to a path, and why.
 *
 * @param makesWay whether something of another kind has to go first
 * @param changes what changes, as of [[Itemized]]
 * @param other the path that it becomes a hard link to
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

/** Compares the two sides of a path, as rsync does it. */
private[sync] object Decision {

  /** Why something stays that the source does not have. */
  val Mounted = "it is mounted"

  /** Why a directory is not made, and nothing of what is in it is copied. */
  val Blocked = "directory not created, because something else has its name"

  /** None if nothing happens. */
  def of(source: Option[Entry], destination: Option[Entry], rules: Rules): Option[Step] = (source, destination) match {
    case (None, Some(found)) => Option.when(rules.delete)(deletion(found, rules))
    case (Some(entry), None) => if (rules.existing) None else creation(entry, None, "new", rules)
    case (Some(entry), Some(found)) =>
      between(entry, found, rules).orElse(if (leaves(entry, found, rules)) None else staying(entry, Some(found), rules))
    case (None, None) => None
  }

  /** What stays as it is, if that is noted. */
  def staying(entry: Entry, found: Option[Entry], rules: Rules): Option[Step] =
    Option.when(rules.notesAll)(Step(
      entry.path,
      Action.Stay,
      "up to date",
      Some(entry),
      found,
      changes = Itemized.amended(entry, Nil)))

  private def deletion(found: Entry, rules: Rules): Step =
    if (found.mount.isEmpty) Step(
      found.path,
      if (rules.examinesDeletions) Action.Surplus else Action.Delete,
      "not in the source",
      None,
      Some(found))
    else Step(found.path, Action.Skip, Mounted, None, Some(found))

  private def creation(entry: Entry, found: Option[Entry], reason: String, rules: Rules): Option[Step] = {
    def step(action: String, reason: String = reason) = {
      // Files and links are replaced by a rename, which only directories cannot be.
      val makesWay = found.exists(found => found.kind != entry.kind && (found.isDirectory || entry.isDirectory))
      val changes =
        found.filter(Special.areOfOneType(entry, _)).fold(Itemized.created(entry))(Itemized.replaced(entry, _, rules))
      Some(Step(entry.path, action, reason, Some(entry), found, makesWay, changes))
    }
    entry.kind match {
      case Kind.Directory => step(Action.Directory)
      case Kind.File => step(Action.Copy)
      case _ if isWanted(entry, rules.preserved) => step(Action.Link)
      case Kind.Link => step(Action.Skip, "a symbolic link")
      case _ => step(Action.Skip, s"a ${entry.special.getOrElse("special file")}")
    }
  }

  private def isWanted(entry: Entry, preserved: Preserved): Boolean =
    if (entry.isLink) preserved.links
    else if (entry.special.exists(Special.isDevice)) preserved.devices
    else if (entry.special.nonEmpty) preserved.specials
    else entry.isFile || entry.isDirectory

  /** Whether something of the destination is left alone, whatever the source has. */
  def leaves(entry: Entry, found: Entry, rules: Rules): Boolean = {
    def isNewerFile = entry.isFile && found.isFile && keepsNewer(entry, found, rules)
    !isWanted(entry, rules.preserved) || rules.ignoreExisting && !entry.isDirectory || isNewerFile
  }

  private def between(entry: Entry, found: Entry, rules: Rules): Option[Step] =
    if (rules.ignoreExisting && !entry.isDirectory) {
      Option.when(found.isDirectory && rules.delete)(Step(
        entry.path,
        Action.Leave,
        "it exists",
        Some(entry),
        Some(found)))
    } else if (rules.ignoreExisting && !found.isDirectory) {
      Some(Step(entry.path, Action.Fail, Blocked, Some(entry), Some(found)))
    } else if (entry.kind != found.kind) {
      creation(entry, Some(found), s"a ${found.kind} is in its place", rules)
    } else {
      entry.kind match {
        case Kind.File => file(entry, found, rules)
        case Kind.Link if !rules.preserved.links => None
        case Kind.Link if entry.target == found.target => amendment(entry, found, rules)
        case Kind.Directory => amendment(entry, found, rules)
        case Kind.Other
            if isWanted(entry, rules.preserved) && entry.special.nonEmpty && entry.special == found.special =>
          amendment(entry, found, rules)
        case _ => creation(
            entry,
            Some(found),
            if (entry.isLink) "target" else s"a ${found.special.getOrElse(found.kind)} is in its place",
            rules)
      }
    }

  /** What happens to a file that both sides have. */
  def file(entry: Entry, found: Entry, rules: Rules): Option[Step] = {
    def step(action: String, reason: String) =
      Some(Step(entry.path, action, reason, Some(entry), Some(found), changes = Itemized.replaced(entry, found, rules)))
    lazy val isSameTime = if (rules.keepsTimes) sameTime(entry, found, rules) else !isNewer(entry, found)
    if (keepsNewer(entry, found, rules)) None
    else if (entry.size != found.size) step(Action.Copy, "size")
    else if (rules.checksum) step(Action.Compare, "contents")
    else if (rules.ignoreTimes && !rules.sizeOnly) step(Action.Copy, "all files are wanted")
    else if (rules.sizeOnly || isSameTime || isSameObject(entry, found)) amendment(entry, found, rules)
    else step(Action.Copy, "time")
  }

  /** Whether the decision needs the times that belong to the contents, which may cost a request. */
  def needsTimes(source: Entry, destination: Entry, rules: Rules): Boolean =
    source.isFile && destination.isFile && (rules.update || source.size == destination.size && !rules.sizeOnly && !isSameObject(
      source,
      destination))

  /** Simple ETags of two objects are checksums of what is in them. Those of multipart uploads have a dash. */
  private def isSameObject(one: Entry, other: Entry): Boolean =
    one.etag.exists(tag => other.etag.contains(tag) && !tag.contains('-') && one.size == other.size)

  /** What of the attributes differs, the contents being the same. */
  def amendment(entry: Entry, found: Entry, rules: Rules): Option[Step] = {
    val differing = differingAttributes(entry, found, rules)
    // Other names of what is there belong to other entries of the source.
    val isShared = !entry.isDirectory && found.inode.nonEmpty && entry.inode.isEmpty
    Option.when(rules.preserved.amends && differing.nonEmpty) {
      val action = if (!isShared) Action.Amend else if (entry.isFile) Action.Copy else Action.Link
      Step(
        entry.path,
        action,
        differing.mkString(", "),
        Some(entry),
        Some(found),
        changes = Itemized.amended(entry, differing))
    }
  }

  /** Which of the attributes that are preserved differ. */
  def differingAttributes(entry: Entry, found: Entry, rules: Rules): Seq[String] = {
    val wanted = rules.preserved
    def differ(is: Boolean, one: Option[Any], other: Option[Any]) = is && one.nonEmpty && one != other
    Seq(
      "time" -> (wanted.timeOf(entry) && rules.keepsTimes && !sameTime(entry, found, rules)),
      "mode" -> differ(
        wanted.modes != 0 && !entry.isLink,
        entry.mode.map(_ & wanted.modes),
        found.mode.map(_ & wanted.modes)),
      "owner" -> differ(wanted.owner, entry.owner, found.owner),
      "group" -> differ(wanted.group, entry.group, found.group),
      "access control list" -> (wanted.extended && entry.acls != found.acls),
      "extended attributes" -> (wanted.extended && entry.xattrs != found.xattrs)).collect { case (name, true) => name }
  }

  /**
   * Whether a file stays because it is newer than its source; as by rsync, a source that is newer by less than a window
   * is not newer.
   */
  private def keepsNewer(entry: Entry, found: Entry, rules: Rules): Boolean =
    rules.update && (rules.modifyWindow match {
      case Some(seconds) if seconds > 0 =>
        entry.mtime.exists(time =>
          found.mtime.exists(other => Math.floorDiv(time, Second) - Math.floorDiv(other, Second) < seconds))
      case _ => isNewer(found, entry) && !(rules.keepsTimes && sameTime(entry, found, rules))
    })

  private def isNewer(one: Entry, other: Entry): Boolean = one.mtime.exists(time => other.mtime.exists(_ < time))

  def sameTime(one: Entry, other: Entry, rules: Rules): Boolean = (one.mtime, other.mtime) match {
    case (Some(a), Some(b)) => rules.modifyWindow match {
        case None => sameAsStored(a, b)
        case Some(seconds) if seconds < 0 => a == b
        case Some(seconds) => math.abs(Math.floorDiv(a, Second) - Math.floorDiv(b, Second)) <= seconds
      }
    case _ => true
  }

  /** Whether two times are the same as far as the coarser of the two is stored. */
  def sameAsStored(a: Long, b: Long): Boolean = {
    val unit = math.max(unitOf(a), unitOf(b))
    Math.floorDiv(a, unit) == Math.floorDiv(b, unit)
  }

  private val Second = 1000000000L
  private val Units = Seq(Second, 100000000L, 10000000L, 1000000L, 100000L, 10000L, 1000L, 100L, 1L)

  /** The unit that a time may have been cut to: file systems store 1 ns, 100 ns, 1 µs, and so on. */
  private def unitOf(time: Long): Long = Units.find(Math.floorMod(time, _) == 0).get

  /**
   * The attributes that a copy gets.
   *
   * @param found what has been in its place
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
