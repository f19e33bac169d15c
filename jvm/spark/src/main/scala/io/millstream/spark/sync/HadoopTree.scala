package io.millstream.spark.sync

import java.io.{FileNotFoundException, InputStream, IOException, OutputStream}
import java.security.MessageDigest
import java.util.HexFormat
import java.util.concurrent.TimeUnit.{MILLISECONDS, NANOSECONDS}

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.millstream.hadoop.listing.Version
import org.apache.hadoop.fs.{
  CommonPathCapabilities,
  FileContext,
  FileStatus,
  FileSystem,
  Options,
  ParentNotDirectoryException,
  Path
}
import org.apache.hadoop.fs.{PathIsNotEmptyDirectoryException, UnsupportedFileSystemException}
import org.apache.hadoop.fs.permission.{AclEntry, AclUtil, FsPermission}
import org.apache.hadoop.hdfs.protocol.AclException
import org.apache.hadoop.ipc.RemoteException
import org.apache.hadoop.security.AccessControlException

/** A tree on a Hadoop file system with atomic renames, such as HDFS. */
private[sync] class HadoopTree(private val fs: FileSystem, root: Path, temporary: () => String, extras: Extras)
    extends Tree {
  import HadoopTree._

  /** Only this Hadoop interface has a rename that replaces, and not every file system supports it. */
  private lazy val renaming: Option[FileContext] =
    try Some(FileContext.getFileContext(root.toUri, fs.getConf))
    catch {
      case _: UnsupportedFileSystemException => None
    }

  override def capabilities: Capabilities =
    Capabilities(
      modes = 0x3ff,
      hasOwners = true,
      hasLinks = false,
      hasSpecials = false,
      hasTimes = true,
      amends = true,
      impliesDirectories = false,
      newModes = 0x1ff & ~FsPermission.getUMask(fs.getConf).toShort,
      extended = Option.when(hasExtended)("Hadoop"))

  /** Whether the file system has them and its server allows them, which only a request shows. */
  private lazy val hasExtended = {
    val top = new Path("/")
    def has(capability: String, ask: => Unit) = fs.hasPathCapability(root, capability) && (try { ask; true }
    catch {
      case _: RemoteException | _: AclException | _: UnsupportedOperationException => false
    })
    (!extras.acls || has(CommonPathCapabilities.FS_ACLS, fs.getAclStatus(top))) && (!extras.xattrs || has(
      CommonPathCapabilities.FS_XATTRS,
      fs.getXAttrs(top)))
  }

  protected final def at(path: String): Path =
    if (Names.isUtf8(path)) Tree.below(root, path)
    else throw new IOException(s"its name is not valid UTF-8, which ${fs.getUri.getScheme}: cannot represent")

  override def list(directory: String)(take: Entry => Unit): Unit = {
    val hadoopPath = at(directory)
    val found = fs.listStatusIterator(hadoopPath)
    while (found.hasNext) {
      val status = found.next()
      if (status.getPath == hadoopPath) throw new IOException(s"$hadoopPath is no longer a directory")
      val name = status.getPath.getName
      val path = Paths.child(directory, name)
      // S3A turns a key with `..` into a path elsewhere.
      if (!Option(status.getPath.getParent).exists(_.toUri.getPath == hadoopPath.toUri.getPath))
        take(Entry(directory, Kind.Failed, message = Some(HasOthers)))
      else if (isExpressible(name)) listed(path, status).foreach(take)
      else take(Entry(path, Kind.Failed, message = Some(IsInexpressible)))
    }
  }

  /** An entry of a listing; None if it has vanished since. */
  private def listed(path: String, status: FileStatus): Option[Entry] =
    try Some(examined(path, status))
    catch {
      case _: FileNotFoundException => None
      case e if Tree.isOfEntry(e) => Some(Entry(path, Kind.Failed, message = Some(Tree.oneLine(e))))
    }

  /** Whether Parquet preserves a name. */
  private def isExpressible(name: String): Boolean =
    !name.contains('\uFFFD') && Names.isUtf8(name) && Utf8.newEncoder().canEncode(name)

  protected def examined(path: String, status: FileStatus): Entry = Entry(
    path,
    kind = if (status.isSymlink) Kind.Other else if (status.isDirectory) Kind.Directory else Kind.File,
    size = if (status.isFile) status.getLen else 0,
    mtime = Some(MILLISECONDS.toNanos(status.getModificationTime)),
    mode = Some(status.getPermission.toShort & 0x3ff),
    owner = Option(status.getOwner).filter(_.nonEmpty),
    group = Option(status.getGroup).filter(_.nonEmpty),
    etag = etagOf(status),
    acls = Option.when(extras.acls && status.hasAcl)(checksum(listAt(at(path)).map(_.toString).sorted.mkString(","))),
    xattrs = Option.when(extras.xattrs)(xattrsAt(at(path))).filter(_.nonEmpty).map(found => checksum(textOf(found))))

  private def checksum(text: String): String =
    HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(Utf8)))

  private def listAt(hadoopPath: Path): Seq[AclEntry] = fs.getAclStatus(hadoopPath).getEntries.asScala.toSeq

  /** The extended attributes that can be set; others follow from an entry's location. */
  private def xattrsAt(hadoopPath: Path): Map[String, Array[Byte]] =
    fs.getXAttrs(hadoopPath).asScala.toMap.filter { case (name, _) =>
      name.startsWith("user.") || name.startsWith("trusted.")
    }
      .map { case (name, value) => name -> Option(value).getOrElse(Array.emptyByteArray) }

  private def textOf(xattrs: Map[String, Array[Byte]]): String =
    xattrs.toSeq.sortBy(_._1).map { case (name, value) => s"$name=${HexFormat.of().formatHex(value)}" }.mkString(",")

  /**
   * Gives an entry the access control list and the extended attributes of another, as far as they are preserved.
   */
  private def copyExtended(hadoopPath: Path, path: String, source: Tree): Unit = source.whole match {
    case from: HadoopTree =>
      lazy val original = from.fs.getFileStatus(from.at(path))
      if (extras.acls && original.hasAcl) {
        fs.setAcl(
          hadoopPath,
          AclUtil.getAclFromPermAndEntries(original.getPermission, from.listAt(from.at(path)).asJava))
      } else if (extras.acls && fs.getFileStatus(hadoopPath).hasAcl) {
        fs.removeAcl(hadoopPath)
        fs.setPermission(hadoopPath, original.getPermission)
      }
      if (extras.xattrs) {
        val (wanted, found) = (from.xattrsAt(from.at(path)), xattrsAt(hadoopPath))
        wanted.foreach { case (name, value) =>
          if (!found.get(name).exists(_.sameElements(value))) fs.setXAttr(hadoopPath, name, value)
        }
        found.keys.filterNot(wanted.contains).foreach(fs.removeXAttr(hadoopPath, _))
      }
    case _ =>
  }

  protected final def etagOf(status: FileStatus): Option[String] = Option(Version.tagOf(status))

  override def status(path: String): Option[Entry] =
    if (!Names.isUtf8(path)) None
    else
      try Some(examined(path, fs.getFileStatus(at(path))))
      catch {
        case _: FileNotFoundException => None
        case e: IOException if isBelowFile(e) => None
      }

  override def open(path: String, size: Long): InputStream = fs.open(at(path))

  override def stage(path: String, attributes: Attributes, checksum: Option[String], source: Tree): Staged =
    new Staged {
      private val hadoopPath = at(path)
      private val hidden = at(Paths.child(Paths.parent(path), temporary()))
      private var isInstalled = false

      override val out: OutputStream = {
        val builder = fs.createFile(hidden).overwrite(true)
        // Users without access to the source must not read its unfinished copy.
        (if (attributes.mode.isEmpty) builder else builder.permission(Private)).build()
      }

      override def install(check: Option[InputStream => Unit]): Option[String] = {
        out.close()
        check.foreach(check => Using.resource[InputStream, Unit](fs.open(hidden))(check))
        set(hidden, attributes)
        copyExtended(hidden, path, source)
        renaming.fold(replace(hidden, hadoopPath))(_.rename(hidden, hadoopPath, Options.Rename.OVERWRITE))
        isInstalled = true
        None
      }

      override def discard(): Unit = if (!isInstalled) {
        try out.close()
        finally fs.delete(hidden, false)
      }
    }

  /** For a moment neither the old nor the new file exists. */
  private def replace(hidden: Path, hadoopPath: Path): Unit = {
    val found =
      try Some(fs.getFileStatus(hadoopPath))
      catch {
        case _: FileNotFoundException => None
      }
    // A rename to a directory may move the file into it.
    if (found.exists(_.isDirectory)) throw new IOException("a directory is in its place")
    if (found.nonEmpty) fs.delete(hadoopPath, false)
    if (!fs.rename(hidden, hadoopPath)) throw new IOException("the file system did not rename the copy")
  }

  override def makeDirectory(path: String): Unit =
    if (!fs.mkdirs(at(path))) throw new IOException("the file system did not create the directory")

  override def makeSpecial(like: Entry, source: Tree, attributes: Attributes): Option[String] =
    throw new UnsupportedOperationException(s"${fs.getUri.getScheme}: does not support symbolic links")

  override def setAttributes(path: String, attributes: Attributes, source: Option[Tree]): Unit = {
    set(at(path), attributes)
    source.foreach(copyExtended(at(path), path, _))
  }

  private def set(hadoopPath: Path, attributes: Attributes): Unit = {
    if (attributes.owner.nonEmpty || attributes.group.nonEmpty)
      fs.setOwner(hadoopPath, attributes.owner.orNull, attributes.group.orNull)
    attributes.mode.foreach(mode => fs.setPermission(hadoopPath, new FsPermission((mode & 0x3ff).toShort)))
    attributes.mtime.foreach(mtime => fs.setTimes(hadoopPath, NANOSECONDS.toMillis(mtime), -1))
  }

  override def delete(path: String): Deleted =
    try {
      if (fs.delete(at(path), false)) Deleted.Done else Deleted.Gone
    } catch {
      case _: PathIsNotEmptyDirectoryException => Deleted.NotEmpty
      case e: RemoteException if e.getClassName == classOf[PathIsNotEmptyDirectoryException].getName => Deleted.NotEmpty
      case e: IOException if isBelowFile(e) => Deleted.Gone
    }

  override def deleteTree(path: String): Unit = fs.delete(at(path), true)

  /** File systems that do not keep chosen times ignore one that is set. */
  override def keepsAttributes(path: String): Boolean = {
    val probe = at(Paths.child(path, temporary()))
    fs.create(probe).close()
    try {
      fs.setTimes(probe, LongAgo, -1)
      fs.getFileStatus(probe).getModificationTime == LongAgo
    } catch {
      case _: IOException | _: UnsupportedOperationException => false
    } finally {
      fs.delete(probe, false)
    }
  }

  override def mayGiveAway(path: String): Boolean = {
    val probe = at(Paths.child(path, temporary()))
    fs.create(probe).close()
    try {
      fs.setOwner(probe, "nobody", null)
      true
    } catch {
      case _: IOException | _: UnsupportedOperationException => false
    } finally {
      fs.delete(probe, false)
    }
  }
}

private object HadoopTree {
  private val HasOthers = "its listing has an entry that is outside it"
  private val IsInexpressible = "its name is not valid Unicode, or was not decoded correctly"
  private val Utf8 = java.nio.charset.StandardCharsets.UTF_8

  /** Milliseconds since 1970, in whole seconds, because some file systems store nothing finer. */
  private val LongAgo = 1000000000000L
  private val Private = new FsPermission(Integer.parseInt("600", 8).toShort)

  /**
   * Whether a path cannot exist because one of its parents is not a directory. HDFS reports this as a missing
   * permission.
   */
  private def isBelowFile(e: IOException): Boolean = e match {
    case _: ParentNotDirectoryException => true
    case remote: RemoteException => remote.getClassName == classOf[ParentNotDirectoryException].getName
    case _: AccessControlException => Option(e.getMessage).exists(_.contains("(is not a directory)"))
    case _ => false
  }
}
