package org.apache.spark.sql.execution.datasources.millstream.compressed

import java.io.IOException
import java.nio.charset.StandardCharsets
import java.nio.file.{Files, LinkOption, Paths}
import java.security.MessageDigest
import java.util.{HexFormat, UUID}

import scala.util.Using

import io.millstream.hadoop.codec.TextCodec
import io.millstream.hadoop.listing.Version
import io.millstream.hadoop.reading.NativeIndex
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.hadoop.fs.permission.{FsAction, FsPermission}
import org.apache.hadoop.util.Shell

import org.apache.spark.internal.Logging

/** A version of a compressed file. */
private[millstream] final case class CompressedFile(
    path: Path,
    version: Version,
    codec: TextCodec) {

  def size: Long = version.size

  /** Whether the version is known by an object store's name for it, not by its time. */
  def isTagged: Boolean = version.tag != null

  /** Names this version in the name of its index, unlike all others of the path. */
  def tag: String = {
    val known = Option(version.tag).map(_.filter(c => c < 128 && c.isLetterOrDigit || c == '-')).filter(_.nonEmpty)
    s"${known.getOrElse(version.modificationTime.toString)}-$size"
  }
}

private[millstream] object CompressedFile {

  /** The version of a status. */
  def of(status: FileStatus, codec: TextCodec): CompressedFile =
    CompressedFile(status.getPath, Version.of(status), codec)
}

/**
 * The store of compressed-file indexes: files whose names identify the version of the indexed file, so that an index is
 * never used for another version.
 *
 * @param directory None for a directory next to each file, whose name Spark and Hadoop ignore
 */
private[millstream] final case class IndexStore(directory: Option[String]) {
  def path(file: CompressedFile): Path = {
    directory match {
      case None => new Path(new Path(file.path.getParent, IndexStore.Beside), IndexStore.name("", file))
      case Some(shared) => new Path(shared, IndexStore.name(IndexStore.prefix(file.path.getParent), file))
    }
  }

  /** Whether there is an index of a file, which may be damaged. */
  def contains(file: CompressedFile, conf: Configuration): Boolean = {
    val indexPath = path(file)
    try indexPath.getFileSystem(conf).exists(indexPath)
    catch {
      case _: IOException => false
    }
  }

  /**
   * The bytes of a file's index; None if there is no usable one, or it is damaged or another file's.
   *
   * @param made the digest of the index that this application has just stored: its tasks and its driver may have
   *     different users
   */
  def load(file: CompressedFile, conf: Configuration, made: Option[String] = None): Option[Array[Byte]] =
    try {
      val fileSystem = path(file).getFileSystem(conf)
      val indexPath = fileSystem.makeQualified(path(file))
      requireNoLink(indexPath)
      val isTrusted = IndexOwners.mayBeUsed(indexPath, file.path, conf)
      if (isTrusted || made.nonEmpty) {
        IndexStore.read(fileSystem, indexPath).filter { bytes =>
          (isTrusted || made.contains(IndexStore.digest(bytes))) &&
          Option(NativeIndex.of(bytes)).exists(index => Using.resource(index)(_.size == file.size))
        }
      } else {
        IndexStore.warn(s"The index $indexPath is not used: it belongs to neither the owner of ${file.path}, nor the user of this application, " +
          "nor the superuser")
        None
      }
    } catch {
      case _: IOException => None
    }

  /**
   * The owner of the data could let other users' indexes be written elsewhere, or be taken from there. A configured
   * directory may be a link.
   */
  private def requireNoLink(indexPath: Path): Unit =
    if (directory.isEmpty && IndexStore.isLocal(indexPath) && Files.isSymbolicLink(
        IndexStore.local(indexPath.getParent)))
      throw new IOException(s"${indexPath.getParent} is a symbolic link")

  /**
   * Stores an index. Readers never see a part of it, and only users who may read the file may read it, because it
   * contains some of the file's text.
   *
   * @throws IOException if it cannot be written
   */
  def save(file: CompressedFile, index: Array[Byte], conf: Configuration): Unit = {
    val fileSystem = path(file).getFileSystem(conf)
    val indexPath = fileSystem.makeQualified(path(file))
    requireNoLink(indexPath)
    // An object exists only when it is complete.
    val isWhole = fileSystem.getScheme == "s3a"
    val first = if (isWhole) indexPath else new Path(indexPath.getParent, s".${UUID.randomUUID()}")
    try {
      Using.resource(fileSystem.create(first, true)) { out =>
        if (!isWhole) IndexStore.protect(fileSystem, first, file.path.getFileSystem(conf).getFileStatus(file.path))
        out.write(index)
      }
      if (!isWhole) {
        if (IndexStore.isLocal(indexPath)) removeOfOthers(fileSystem, indexPath, file, conf)
        replace(fileSystem, first, indexPath)
      }
    } finally {
      if (!isWhole) fileSystem.delete(first, false)
    }
  }

  /**
   * Hadoop writes into a local file that it cannot replace, and in a shared directory another user may have created
   * that file to read the data.
   */
  private def removeOfOthers(
      fileSystem: FileSystem,
      indexPath: Path,
      file: CompressedFile,
      conf: Configuration): Unit = {
    def isThere = Files.exists(IndexStore.local(indexPath), LinkOption.NOFOLLOW_LINKS)
    if (isThere && !IndexOwners.mayBeUsed(indexPath, file.path, conf) && !fileSystem.delete(
        indexPath,
        false) && isThere)
      throw new IOException(s"$indexPath belongs to another user and cannot be removed")
  }

  /** Renames a file, to a name that a damaged index may have. On HDFS, a rename does not replace a file. */
  private def replace(fileSystem: FileSystem, from: Path, to: Path): Unit = {
    def renamed = fileSystem.rename(from, to)
    def renamedAfterRemoval = {
      fileSystem.delete(to, false)
      // Another application may do the same.
      renamed || fileSystem.exists(to)
    }
    if (!renamed && !renamedAfterRemoval) throw new IOException(s"cannot be renamed to $to")
  }
}

private[millstream] object IndexStore extends Logging {
  val Beside = "_millstream"
  val Extension = ".gzidx"

  /**
   * The prefix of index names: Spark reads the visible files of a hidden directory that a pattern matches. Earlier
   * versions had no prefix.
   */
  private val Hidden = "."

  /** Maximum bytes of an index that the driver reads: enough for 500 GB of text. */
  private val MostBytes = 256 << 20

  /**
   * Maximum bytes of an index's name: file systems allow 255, and the name of Hadoop's checksum file is five bytes
   * longer.
   */
  private val LongestName = 250

  /** Characters of a [[prefix]]. */
  val PrefixLength = 37

  /**
   * Gives a copy of some of a file's text to no more readers than the file has. Its group may read the copy only if the
   * copy has the same group. Only the owner may read the copy of a file with an access control list, which would have
   * to be copied as well: the group's permissions then apply to others, too, and the list may deny rights that others
   * have.
   */
  private def protect(fileSystem: FileSystem, copy: Path, file: FileStatus): Unit = {
    // Inherited from the directory's default list.
    if (fileSystem.getFileStatus(copy).hasAcl) fileSystem.removeAcl(copy)
    def isOfGroup = fileSystem.getFileStatus(copy).getGroup == file.getGroup
    val hasGroup = isOfGroup || (try {
      fileSystem.setOwner(copy, null, file.getGroup)
      isOfGroup
    } catch {
      // Only members may give a file to a group.
      case _: IOException => false
    })
    val mode = file.getPermission
    val ofGroup = if (hasGroup) mode.getGroupAction else FsAction.NONE
    val permission =
      if (file.hasAcl || hasLocalAcl(copy) || hasLocalAcl(file.getPath))
        new FsPermission(mode.getUserAction, FsAction.NONE, FsAction.NONE)
      else new FsPermission(mode.getUserAction, ofGroup, mode.getOtherAction)
    fileSystem.setPermission(copy, permission)
  }

  /**
   * Whether a file has an access control list, if it is local: neither Hadoop nor Java shows those, but `ls` does,
   * which Hadoop also runs.
   */
  private def hasLocalAcl(path: Path): Boolean =
    isLocal(path) && Shell.execCommand(
      Shell.getGetPermissionCommand :+ local(path).toString: _*).takeWhile(_ != ' ').endsWith("+")

  private def read(fileSystem: FileSystem, indexPath: Path): Option[Array[Byte]] = {
    val bytes = Using.resource(fileSystem.open(indexPath))(_.readNBytes(MostBytes + 1))
    if (bytes.length > MostBytes) warn(s"The index $indexPath is not used: an index has at most ${MostBytes >> 20} MiB")
    Option.when(bytes.length <= MostBytes)(bytes)
  }

  private def warn(text: String): Unit = logWarning(text)

  /** The digest of an index. */
  def digest(index: Array[Byte]): String = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(index))

  /** Whether a path that a file system has qualified is local. */
  def isLocal(path: Path): Boolean = path.toUri.getScheme == "file"

  def local(path: Path): java.nio.file.Path = Paths.get(path.toUri.getPath)

  /** The prefix of index names in a shared directory: several directories may have files of the same name. */
  def prefix(directory: Path): String = s"${uuid(directory.toString)}-"

  private def uuid(text: String): UUID = UUID.nameUUIDFromBytes(text.getBytes(StandardCharsets.UTF_8))

  private def name(prefix: String, file: CompressedFile): String = {
    def of(name: String) = s"$Hidden$prefix$name.${file.tag}$Extension"
    val whole = of(escaped(file.path.getName))
    if (whole.getBytes(StandardCharsets.UTF_8).length <= LongestName) whole else of(short(file.path.getName))
  }

  /** The replacement for a file name that would make the index's name too long. It differs from every escaped name. */
  private def short(name: String): String = s"%~${uuid(name)}"

  /** Whether an index's name, as split by [[fileAndTag]], names this file. */
  def isOf(file: String, name: String): Boolean = file == name || file == short(name)

  def isShort(file: String): Boolean = file.startsWith("%~")

  def isHidden(name: String): Boolean = name.startsWith(Hidden)

  /** The name of an index without the hiding prefix. */
  def shown(name: String): String = name.stripPrefix(Hidden)

  /**
   * Splits the name of an index, without its prefixes, into the name of its file and the tag, which has no dot.
   */
  def fileAndTag(name: String): Option[(String, String)] = {
    val tagged = name.stripSuffix(Extension)
    val dot = tagged.lastIndexOf('.')
    Option.when(tagged != name && dot > 0)((unescaped(tagged.take(dot)), tagged.drop(dot + 1)))
  }

  /** A name without colons: Hadoop cannot keep checksums of a local file that has one in its name. */
  private def escaped(name: String): String = name.replace("%", "%25").replace(":", "%3A")

  private def unescaped(name: String): String = name.replace("%3A", ":").replace("%25", "%")

  /** Whether a tag has the form for files of unknown version. */
  def isOfTime(tag: String): Boolean = OfTime.matches(tag)

  private val OfTime = "[0-9]+-[0-9]+".r
}
