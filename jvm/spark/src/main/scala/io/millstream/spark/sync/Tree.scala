package io.millstream.spark.sync

import java.io.{IOException, InputStream, OutputStream}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.hadoop.ipc.RemoteException

/**
 * What a file system can store.
 *
 * @param modes the bits of POSIX modes; 0 if it has none
 * @param newModes the bits that the umask leaves to new entries
 * @param hasSpecials whether it has devices, pipes and sockets
 * @param hasTimes whether the times of files can be chosen, when they are written at least
 * @param amends whether attributes of entries that exist can be changed
 * @param impliesDirectories whether a directory exists because something is in it
 * @param extended what kind of access control lists and extended attributes it has; None if it has none
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

/** Attributes to give to a copy; those that are not preserved are absent. */
private[sync] final case class Attributes(
    mtime: Option[Long],
    mode: Option[Int],
    owner: Option[String],
    group: Option[String])

/**
 * What is wanted of trees besides contents, modes, owners and times. Only local ones have hard links, holes and other
 * file systems.
 *
 * @param hardLinks whether entries tell which names belong to the same file
 * @param acls whether entries tell of access control lists, and copies have them
 * @param xattrs whether entries tell of other extended attributes, and copies have them
 * @param sparse whether copies have holes wherever there are zeros
 * @param oneFileSystem whether directories of other file systems are listed as [[Kind.OtherFileSystem]]
 * @param bytesPerSecond how much is copied from other such trees at most
 */
private[sync] final case class Extras(
    hardLinks: Boolean = false,
    acls: Boolean = false,
    xattrs: Boolean = false,
    sparse: Boolean = false,
    oneFileSystem: Boolean = false,
    bytesPerSecond: Option[Long] = None)

/** A directory, under whatever names it can be reached, as a machine knows it. */
private[sync] final case class Identity(device: Long, inode: Long)

/** The result of deleting something. */
private[sync] sealed trait Deleted
private[sync] object Deleted {
  case object Done extends Deleted

  /** It does not exist. */
  case object Gone extends Deleted

  /** It is a directory with something in it. */
  case object NotEmpty extends Deleted

  /** It stays, because it belongs to something that is mounted in the tree. */
  case object Mounted extends Deleted
}

/** A copy that nobody sees yet. */
private[sync] trait Staged {
  def out: OutputStream

  /**
   * Gives the copy its name. What it replaces is there until then, except for a directory.
   *
   * @param check gets the contents as they are stored, and throws if they are wrong; None if nobody wants to know.
   *     Where copies are visible as soon as they are complete, this is after it got its name.
   * @return which attribute it could not get; None if it has all of them
   */
  def install(check: Option[InputStream => Unit]): Option[String]

  /** Removes the copy, unless it has its name. */
  def discard(): Unit
}

/**
 * One side of a synchronization. Paths are those of [[Entry]]. Errors are exceptions of Java's input and output, and
 * runtime ones.
 */
private[sync] trait Tree {
  def capabilities: Capabilities

  /** Passes the entries of a directory on. Those that cannot be examined become entries of the kind [[Kind.Failed]]. */
  def list(directory: String)(take: Entry => Unit): Unit

  /** What tells the root from every other directory, if the file system knows such a thing. */
  def identity: Option[Identity] = None

  /** Says what the root of the other side is: a directory that is listed as [[Kind.Failed]], for this reason. */
  def exclude(other: Identity, reason: String): Unit = ()

  /** What is at a path now. Symbolic links are not followed, except by the root. */
  def status(path: String): Option[Entry]

  /** As [[status]], but the entry is as a listing has it, which tells what is mounted above it. */
  def lookUp(path: String): Option[Entry] = status(path)

  /** The entry of a file with the time that belongs to its contents, which may need a request. */
  def withOwnTime(entry: Entry): Entry = entry

  /** Reads a file that was so large when it was looked at. */
  def open(path: String, size: Long): InputStream

  /**
   * Begins a copy of what another tree has at the same path.
   *
   * @param checksum the checksum of what will be written, if it is known already
   */
  def stage(path: String, attributes: Attributes, checksum: Option[String], source: Tree): Staged

  /**
   * Copies a file of another tree, if that does not need this process to see its contents. What is there is replaced at
   * once, except for a directory.
   *
   * @param version what is to be copied
   * @return false if the caller has to copy it, and nothing has changed
   * @throws io.millstream.hadoop.natives.UnfitFileException if the source is of another version
   */
  def copyByServer(source: Tree, version: Entry, attributes: Attributes): Boolean = false

  /**
   * An entry of another tree without the owner and the group that this one does not know, which its copies cannot have.
   */
  def expressible(entry: Entry): Entry = entry

  /** The tree itself, of which this may be a view. */
  def whole: Tree = this

  /** Makes a directory, and those that it is in, if they do not exist. */
  def makeDirectory(path: String): Unit

  /**
   * Makes a symbolic link, a device, a pipe or a socket like that of another tree, in the place of whatever is there,
   * except for a directory.
   *
   * @return which attribute it could not get; None if it has all of them
   */
  def makeSpecial(like: Entry, source: Tree, attributes: Attributes): Option[String]

  /** Makes a hard link to the entry `other`, in the place of whatever is there, except for a directory. */
  def makeHardLink(path: String, other: String): Unit =
    throw new UnsupportedOperationException("the file system does not support hard links")

  /** Sets attributes, and, as far as they are wanted, the extended attributes that the entry has in another tree. */
  def setAttributes(path: String, attributes: Attributes, source: Option[Tree] = None): Unit

  def delete(path: String): Deleted

  /** Deletes a directory with all that is in it. */
  def deleteTree(path: String): Unit

  /** Whether files can be given to other users; `path` is a directory for a probe. */
  def mayGiveAway(path: String): Boolean

  /** Whether that seems so, where nothing may be written. */
  def seemsToGiveAway: Boolean = false

  /** Whether it keeps the times that are chosen for files, and other attributes; `path` is a directory for a probe. */
  def keepsAttributes(path: String): Boolean = true

  /** Ends what is under way, and gives back what it holds. */
  def close(): Unit = ()
}

private[sync] object Tree {
  private val MaxMessage = 400

  /**
   * Opens a tree.
   *
   * @param root an absolute URL
   * @param temporary makes a name for a temporary file that no other attempt has
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

  /** Whether an error is about one entry, and not about the task. */
  def isOfEntry(error: Throwable): Boolean = error match {
    case _: java.io.InterruptedIOException | _: java.nio.channels.ClosedByInterruptException => false
    case _: IOException | _: UnsupportedOperationException | _: IllegalArgumentException => true
    // Hadoop's file systems throw others for names that they do not allow.
    case e => NonFatal(e) && !e.isInstanceOf[InterruptedException]
  }

  /** An error on one line. */
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
