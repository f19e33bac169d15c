package io.millstream.spark.sync

/**
 * An entry of a tree, or what a listing says instead of one.
 *
 * @param path relative to the root, without a slash at either end; empty for the root itself. What is not valid UTF-8
 *     is as in [[Names]]
 * @param kind one of [[Kind]]
 * @param size bytes of a file
 * @param mtime nanoseconds since 1970, if the file system has a time that belongs to the contents
 * @param mode the lower twelve bits of POSIX, as far as the file system has them
 * @param target where a symbolic link leads
 * @param etag the version of an object
 * @param message why it could not be listed
 * @param mount path of what is mounted in the tree and has the entry, or is it
 * @param special what a device, a pipe or a socket is, as of [[Special]]
 * @param inode what all names of a file with several ones have in common, if that is of interest
 * @param acls checksum of access control lists, if there are any and they are of interest
 * @param xattrs checksum of other extended attributes, likewise
 */
final case class Entry(
    path: String,
    kind: String,
    size: Long = 0,
    mtime: Option[Long] = None,
    mode: Option[Int] = None,
    owner: Option[String] = None,
    group: Option[String] = None,
    target: Option[String] = None,
    etag: Option[String] = None,
    message: Option[String] = None,
    mount: Option[String] = None,
    special: Option[String] = None,
    inode: Option[String] = None,
    acls: Option[String] = None,
    xattrs: Option[String] = None) {

  def isFile: Boolean = kind == Kind.File
  def isDirectory: Boolean = kind == Kind.Directory
  def isLink: Boolean = kind == Kind.Link

  /** Whether this and a later look at the same path have found the same version. */
  def isSameVersionAs(later: Entry): Boolean = {
    // Listings of objects and looks at one may state the time in other units.
    val isSame = if (etag.nonEmpty && later.etag.nonEmpty) etag == later.etag else mtime == later.mtime
    kind == later.kind && size == later.size && isSame
  }
}

object Kind {
  val File = "file"
  val Directory = "directory"
  val Link = "link"

  /** Devices, pipes and sockets. */
  val Other = "other"

  /** A directory that another task has to list. */
  val Pending = "pending"

  /** Something that could not be listed. */
  val Failed = "error"

  /** A directory that is not listed, because it is in another file system. */
  val OtherFileSystem = "other file system"

  /** A file that a run is about to complete, or that one has left. */
  val Temporary = "temporary"

  /** A directory that a run uses, or that one has left. */
  val WorkingDirectory = "working directory"
}

/** What tells devices, pipes and sockets apart: a type and, for devices, a number. */
private[sync] object Special {
  val Pipe = "pipe"
  val Socket = "socket"
  val CharacterDevice = "character device"
  val BlockDevice = "block device"
  private val Device = s"($CharacterDevice|$BlockDevice) ([0-9]+)".r

  def characterDevice(number: Long): String = s"$CharacterDevice ${java.lang.Long.toUnsignedString(number)}"

  def blockDevice(number: Long): String = s"$BlockDevice ${java.lang.Long.toUnsignedString(number)}"

  def isDevice(special: String): Boolean = Device.matches(special)

  /** The type, and the number of a device. */
  def parts(special: String): (String, Long) = special match {
    case Device(kind, number) => (kind, java.lang.Long.parseUnsignedLong(number))
    case kind => (kind, 0)
  }

  /** Whether two entries differ by no more than the number of a device. */
  def areOfOneType(one: Entry, other: Entry): Boolean =
    one.kind == other.kind && one.special.map(parts(_)._1) == other.special.map(parts(_)._1)
}

private[sync] object Paths {

  /** A path below a directory; empty for the directory itself. */
  def within(directory: String, path: String): String =
    if (directory.isEmpty || path.isEmpty) directory + path else s"$directory/$path"

  def child(directory: String, name: String): String = if (directory.isEmpty) name else s"$directory/$name"

  /** The directory that an entry is in. */
  def parent(path: String): String = path.substring(0, math.max(0, path.lastIndexOf('/')))

  /** The directories above an entry, the nearest first and the root last. */
  def ancestors(path: String): Iterator[String] =
    Iterator.unfold(path)(path => Option.when(path.nonEmpty)(parent(path)).map(above => (above, above)))

  def name(path: String): String = path.substring(path.lastIndexOf('/') + 1)

  /** Number of names in a path. */
  def depth(path: String): Int = if (path.isEmpty) 0 else 1 + path.count(_ == '/')
}
