package io.millstream.spark.sync

/**
 * An entry of a tree, or another finding of a listing.
 *
 * @param path relative to the root, without a slash at either end; empty for the root itself. Invalid UTF-8 is encoded
 *     as in [[Names]]
 * @param kind one of [[Kind]]
 * @param size bytes of a file
 * @param mtime nanoseconds since 1970, if the file system keeps a time for the contents
 * @param mode the lower twelve POSIX bits, as far as the file system has them
 * @param target the target of a symbolic link
 * @param etag the version of an object
 * @param message why it could not be listed
 * @param mount path of the mount in the tree that contains or is the entry
 * @param special the kind of a device, pipe or socket, encoded by [[Special]]
 * @param inode identifies a file with several hard links, if these are preserved
 * @param acls checksum of access control lists, if there are any and they are preserved
 * @param xattrs checksum of other extended attributes, if there are any and they are preserved
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

  /** Whether this and a later entry of the same path show the same version. */
  def isSameVersionAs(later: Entry): Boolean = {
    // A listing and a status of an object may report the time in different units.
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

  /** An entry that could not be listed. */
  val Failed = "error"

  /** A directory that is not listed, because it is in another file system. */
  val OtherFileSystem = "other file system"

  /** A temporary file of a running or interrupted run. */
  val Temporary = "temporary"

  /** A working directory of a running or interrupted run. */
  val WorkingDirectory = "working directory"
}

/** Distinguishes devices, pipes and sockets: a type and, for devices, a number. */
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

  /** Whether two entries differ at most in the number of a device. */
  def areOfOneType(one: Entry, other: Entry): Boolean =
    one.kind == other.kind && one.special.map(parts(_)._1) == other.special.map(parts(_)._1)
}

private[sync] object Paths {

  /** A path below a directory; empty for the directory itself. */
  def within(directory: String, path: String): String =
    if (directory.isEmpty || path.isEmpty) directory + path else s"$directory/$path"

  def child(directory: String, name: String): String = if (directory.isEmpty) name else s"$directory/$name"

  /** The parent directory of an entry. */
  def parent(path: String): String = path.substring(0, math.max(0, path.lastIndexOf('/')))

  /** The directories above an entry, the nearest first and the root last. */
  def ancestors(path: String): Iterator[String] =
    Iterator.unfold(path)(path => Option.when(path.nonEmpty)(parent(path)).map(above => (above, above)))

  def name(path: String): String = path.substring(path.lastIndexOf('/') + 1)

  /** Number of names in a path. */
  def depth(path: String): Int = if (path.isEmpty) 0 else 1 + path.count(_ == '/')
}
