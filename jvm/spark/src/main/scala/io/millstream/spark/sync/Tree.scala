package io.millstream.spark.sync

import java.io.{IOException, InputStream, OutputStream}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.hadoop.ipc.RemoteException

/**
 * The capabilities of a file system.
 *
 * @param modes the bits of POSIX modes; 0 if it has none
 * @param newModes the bits that the umask leaves to new entries
 * @param hasSpecials whether it has devices, pipes and sockets
 * @param hasTimes whether the times of files can be chosen, at least when they are written
 * @param amends whether attributes of existing entries can be changed
 * @param impliesDirectories whether a directory exists because it has contents
 * @param extended its kind of access control lists and extended attributes; None if it has none
 */
private[sync] final case class Capabilities(
    modes: Int,
    hasOwners: Boolean,
    hasLinks: Boolean,
    hasSpecials: Boolean,
    hasTimes: Boolean,
    amends: Boolean,
    impliesDirectories: Boolean,
    newModes: Int = 0,
    extended: Option[String] = None)

/** Attributes of a copy, without those that are not preserved. */
private[sync] final case class Attributes(
    mtime: Option[Long],
    mode: Option[Int],
    owner: Option[String],
    group: Option[String])

/**
 * Optional features of trees in addition to contents, modes, owners and times. Only local trees have hard links, holes
 * and other file systems.
 *
 * @param hardLinks whether entries identify hard links to the same file
 * @param acls whether entries describe access control lists, and copies preserve them
 * @param xattrs whether entries describe other extended attributes, and copies preserve them
 * @param sparse whether copies have holes wherever there are zeros
 * @param oneFileSystem whether directories of other file systems are listed as [[Kind.OtherFileSystem]]
 * @param bytesPerSecond rate limit of copies from other such trees
 */
private[sync] final case class Extras(
    hardLinks: Boolean = false,
    acls: Boolean = false,
    xattrs: Boolean = false,
    sparse: Boolean = false,
    oneFileSystem: Boolean = false,
    bytesPerSecond: Option[Long] = None)

/** A machine's identity of a directory, independent of its names. */
private[sync] final case class Identity(device: Long, inode: Long)

/** The result of deleting something. */
private[sync] sealed trait Deleted
private[sync] object Deleted {
  case object Done extends Deleted

  /** It does not exist. */
  case object Gone extends Deleted

  /** It is a directory that is not empty. */
  case object NotEmpty extends Deleted

  /** It stays, because it belongs to a mount in the tree. */
  case object Mounted extends Deleted
}

/** A staged copy. */
private[sync] trait Staged {
  def out: OutputStream

  /**
   * Gives the copy its name. The entry that it replaces exists until then, unless it is a directory.
   *
   * @param check receives the stored contents, and throws if they are wrong; None to skip the check. Where copies are
   *     visible as soon as they are complete, the check follows the naming.
   * @return which attribute it could not get; None if it has all of them
   */
  def install(check: Option[InputStream => Unit]): Option[String]

  /** Removes the copy, unless it is installed. */
  def discard(): Unit
}

/**
 * One side of a synchronization. Paths are those of [[Entry]]. Errors are I/O and runtime exceptions.
 */
private[sync] trait Tree {
  def capabilities: Capabilities

  /** Lists a directory. Entries that cannot be examined are of the kind [[Kind.Failed]]. */
  def list(directory: String)(take: Entry => Unit): Unit

  /** The identity of the root, if the file system has one. */
  def identity: Option[Identity] = None

  /** Sets the root of the other side: a directory that is listed as [[Kind.Failed]] for this reason. */
  def exclude(other: Identity, reason: String): Unit = ()

  /** The current entry at a path. Symbolic links are not followed, except at the root. */
  def status(path: String): Option[Entry]

  /** Like [[status]], but with the mount above the entry, as in a listing. */
  def lookUp(path: String): Option[Entry] = status(path)

  /** The entry of a file with the time of its contents, which may need a request. */
  def withOwnTime(entry: Entry): Entry = entry

  /** Reads a file that had this size when it was examined. */
  def open(path: String, size: Long): InputStream

  /**
   * Begins a copy of another tree's entry at the same path.
   *
   * @param checksum the checksum of the contents, if already known
   */
  def stage(path: String, attributes: Attributes, checksum: Option[String], source: Tree): Staged

  /**
   * Copies a file of another tree, if the data need not pass through this process. An existing entry is replaced
   * atomically, except for a directory.
   *
   * @param version what is to be copied
   * @return false if the caller has to copy it, and nothing has changed
   * @throws io.millstream.hadoop.natives.UnfitFileException if the source is of another version
   */
  def copyByServer(source: Tree, version: Entry, attributes: Attributes): Boolean = false

  /**
   * An entry of another tree without an owner or group that this tree does not know and copies cannot have.
   */
  def expressible(entry: Entry): Entry = entry

  /** The tree itself, of which this may be a view. */
  def whole: Tree = this

  /** Creates a directory and its missing parents. */
  def makeDirectory(path: String): Unit

  /**
   * Creates a symbolic link, device, pipe or socket like another tree's, replacing any existing entry except a
   * directory.
   *
   * @return which attribute it could not get; None if it has all of them
   */
  def makeSpecial(like: Entry, source: Tree, attributes: Attributes): Option[String]

  /** Creates a hard link to the entry `other`, replacing any existing entry except a directory. */
  def makeHardLink(path: String, other: String): Unit =
    throw new UnsupportedOperationException("the file system does not support hard links")

  /** Sets attributes and, as far as they are preserved, the extended attributes of the entry in another tree. */
  def setAttributes(path: String, attributes: Attributes, source: Option[Tree] = None): Unit

  def delete(path: String): Deleted

  /** Deletes a directory with all its contents. */
  def deleteTree(path: String): Unit

  /** Whether files can be given to other users; `path` is a directory for a probe. */
  def mayGiveAway(path: String): Boolean

  /** The likely answer, without writing anything. */
  def seemsToGiveAway: Boolean = false

  /** Whether it keeps chosen file times and other attributes; `path` is a directory for a probe. */
  def keepsAttributes(path: String): Boolean = true

  /** Ends running calls and releases resources. */
  def close(): Unit = ()
}

private[sync] object Tree {
  private val MaxMessage = 400

  /**
   * Opens a tree.
   *
   * @param root an absolute URL
   * @param temporary creates a name for a temporary file that is unique to this attempt
   */
  def open(root: String, conf: Configuration, temporary: () => String, extras: Extras): Tree = {
    val path = new HadoopPath(root)
    path.toUri.getScheme match {
      case "file" => new LocalTree(path.toUri.getPath, temporary, extras)
      case "s3a" => new ObjectTree(path.getFileSystem(conf), path, temporary)
      case _ => new HadoopTree(path.getFileSystem(conf), path, temporary, extras)
    }
  }

  /** The path of an entry. Names may have colons. */
  def below(root: HadoopPath, path: String): HadoopPath =
    if (path.isEmpty) root
    else {
      val above = root.toUri.getPath
      new HadoopPath(
        root.toUri.getScheme,
        root.toUri.getAuthority,
        if (above.endsWith("/")) above + path else s"$above/$path")
    }

  /** Whether an error concerns one entry, not the task. */
  def isOfEntry(error: Throwable): Boolean = error match {
    case _: java.io.InterruptedIOException | _: java.nio.channels.ClosedByInterruptException => false
    case _: IOException | _: UnsupportedOperationException | _: IllegalArgumentException => true
    // Hadoop's file systems throw other exceptions for names that they do not allow.
    case e => NonFatal(e) && !e.isInstanceOf[InterruptedException]
  }

  /** An error message on one line. */
  def oneLine(error: Throwable): String = {
    val name = error match {
      case remote: RemoteException => remote.getClassName.split('.').last
      case _ => error.getClass.getSimpleName
    }
    val message = Option(error.getMessage).flatMap(_.linesIterator.map(_.trim).find(_.nonEmpty))
    val words = message.fold(name)(message => s"${name.stripSuffix("Exception")}: $message")
    if (words.length > MaxMessage) s"${words.take(MaxMessage)} ..." else words
  }
}
