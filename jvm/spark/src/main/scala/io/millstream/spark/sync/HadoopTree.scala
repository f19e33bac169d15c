package io.millstream.spark.sync

import java.io.{FileNotFoundException, InputStream, IOException, OutputStream}
import java.util.concurrent.TimeUnit.{MILLISECONDS, NANOSECONDS}

import scala.util.Using

import org.apache.hadoop.fs.{EtagSource, FileContext, FileStatus, FileSystem, Options, ParentNotDirectoryException, Path}
import org.apache.hadoop.fs.{PathIsNotEmptyDirectoryException, UnsupportedFileSystemException}
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.ipc.RemoteException
import org.apache.hadoop.security.AccessControlException

/** A tree of a file system of Hadoop's that renames atomically, such as HDFS. */
private[sync] class HadoopTree(fs: FileSystem, root: Path, temporary: () => String) extends Tree {
  import HadoopTree._

  /** Only this interface of Hadoop's has a rename that replaces, and not every file system has it. */
  private lazy val renaming: Option[FileContext] =
    try Some(FileContext.getFileContext(root.toUri, fs.getConf)) catch {
      case _: UnsupportedFileSystemException => None
    }

  override def capabilities: Capabilities =
    Capabilities(modes = 0x3ff, hasOwners = true, hasLinks = false, hasTimes = true, amends = true, impliesDirectories = false,
      newModes = 0x1ff & ~FsPermission.getUMask(fs.getConf).toShort)

  protected final def at(path: String): Path =
    if (Names.isUtf8(path)) Tree.below(root, path)
    else throw new IOException(s"its name is not valid UTF-8, which ${fs.getUri.getScheme}: cannot express")

  override def list(directory: String)(take: Entry => Unit): Unit = {
    val place = at(directory)
    val found = fs.listStatusIterator(place)
    while (found.hasNext) {
      val status = found.next()
      if (status.getPath == place) throw new IOException(s"$place is not a directory any more")
      val name = status.getPath.getName
      val path = Paths.child(directory, name)
      // Of a key with `..`, S3A makes a path somewhere else.
      if (!Option(status.getPath.getParent).exists(_.toUri.getPath == place.toUri.getPath)) take(Entry(directory, Kind.Failed, message = Some(HasOthers)))
      else take(if (isExpressible(name)) examined(path, status) else Entry(path, Kind.Failed, message = Some(IsInexpressible)))
    }
  }

  /** Whether a name comes back from Parquet as it was. */
  private def isExpressible(name: String): Boolean = !name.contains('\uFFFD') && Names.isUtf8(name) && Utf8.newEncoder().canEncode(name)

  protected def examined(path: String, status: FileStatus): Entry = Entry(
    path,
    kind = if (status.isSymlink) Kind.Other else if (status.isDirectory) Kind.Directory else Kind.File,
    size = if (status.isFile) status.getLen else 0,
    mtime = Some(MILLISECONDS.toNanos(status.getModificationTime)),
    mode = Some(status.getPermission.toShort & 0x3ff),
    owner = Option(status.getOwner).filter(_.nonEmpty),
    group = Option(status.getGroup).filter(_.nonEmpty),
    etag = etagOf(status))

  protected final def etagOf(status: FileStatus): Option[String] = status match {
    case tagged: EtagSource => Option(tagged.getEtag).map(_.stripPrefix("\"").stripSuffix("\"")).filter(_.nonEmpty)
    case _ => None
  }

  override def status(path: String): Option[Entry] =
    if (!Names.isUtf8(path)) None
    else try Some(examined(path, fs.getFileStatus(at(path)))) catch {
      case _: FileNotFoundException => None
      case e: IOException if isBelowFile(e) => None
    }

  override def open(path: String, size: Long): InputStream = fs.open(at(path))

  override def stage(path: String, attributes: Attributes, checksum: Option[String]): Staged = new Staged {
    private val place = at(path)
    private val hidden = at(Paths.child(Paths.parent(path), temporary()))
    private var isInstalled = false

    override val out: OutputStream = {
      val builder = fs.createFile(hidden).overwrite(true)
      // Who may not read the source must not read its copy meanwhile.
      (if (attributes.mode.isEmpty) builder else builder.permission(Private)).build()
    }

    override def install(check: Option[InputStream => Unit]): Unit = {
      out.close()
      check.foreach(check => Using.resource[InputStream, Unit](fs.open(hidden))(check))
      set(hidden, attributes)
      renaming.fold(replace(hidden, place))(_.rename(hidden, place, Options.Rename.OVERWRITE))
      isInstalled = true
    }

    override def discard(): Unit = if (!isInstalled) {
      try out.close() finally fs.delete(hidden, false)
    }
  }

  /** For a moment there is neither the old nor the new file. */
  private def replace(hidden: Path, place: Path): Unit = {
    val found = try Some(fs.getFileStatus(place)) catch {
      case _: FileNotFoundException => None
    }
    // A rename to a directory may be one into it.
    if (found.exists(_.isDirectory)) throw new IOException("a directory is in its place")
    if (found.nonEmpty) fs.delete(place, false)
    if (!fs.rename(hidden, place)) throw new IOException("the file system did not rename the copy")
  }

  override def makeDirectory(path: String): Unit = if (!fs.mkdirs(at(path))) throw new IOException("the file system made no directory")

  override def makeLink(path: String, target: String, attributes: Attributes): Unit =
    throw new UnsupportedOperationException(s"${fs.getUri.getScheme}: has no symbolic links")

  override def setAttributes(path: String, attributes: Attributes): Unit = set(at(path), attributes)

  private def set(place: Path, attributes: Attributes): Unit = {
    if (attributes.owner.nonEmpty || attributes.group.nonEmpty) fs.setOwner(place, attributes.owner.orNull, attributes.group.orNull)
    attributes.mode.foreach(mode => fs.setPermission(place, new FsPermission((mode & 0x3ff).toShort)))
    attributes.mtime.foreach(mtime => fs.setTimes(place, NANOSECONDS.toMillis(mtime), -1))
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

  /** Those that have no times of files' own do nothing if one is set. */
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
  private val HasOthers = "its listing has an entry that is no path in it"
  private val IsInexpressible = "its name is not valid Unicode, or was not decoded correctly"
  private val Utf8 = java.nio.charset.StandardCharsets.UTF_8
  /** Milliseconds since 1970; whole seconds, because some file systems have no others. */
  private val LongAgo = 1000000000000L
  private val Private = new FsPermission(Integer.parseInt("600", 8).toShort)

  /** Whether there can be nothing at a path, because something above it is no directory. HDFS says so as of a missing permission. */
  private def isBelowFile(e: IOException): Boolean = e match {
    case _: ParentNotDirectoryException => true
    case remote: RemoteException => remote.getClassName == classOf[ParentNotDirectoryException].getName
    case _: AccessControlException => Option(e.getMessage).exists(_.contains("(is not a directory)"))
    case _ => false
  }
}
