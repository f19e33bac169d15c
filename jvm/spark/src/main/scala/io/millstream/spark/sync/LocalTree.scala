package io.millstream.spark.sync

import java.io.{InputStream, OutputStream}
import java.nio.file.{DirectoryIteratorException, DirectoryNotEmptyException, Files, FileSystemException, FileVisitResult, InvalidPathException, NoSuchFileException, Path, SimpleFileVisitor}
import java.nio.file.LinkOption.NOFOLLOW_LINKS
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.nio.file.StandardOpenOption.{CREATE_NEW, WRITE}
import java.nio.file.attribute.{BasicFileAttributes, BasicFileAttributeView, FileTime, PosixFilePermissions}
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.util.Using

/**
 * A tree of the local file system or of a mount.
 *
 * Hadoop's own local file system is not used: it starts a process for the owner of each file, hides names that end with `.crc`, and
 * writes a checksum beside every file. The JVM has names as text: one that is not valid in its encoding is an error of the listing.
 */
private[sync] final class LocalTree(given: Path, temporary: () => String) extends Tree {
  import LocalTree._

  /** Only a link to the root is followed. */
  private val root = if (Files.exists(given)) given.toRealPath() else given

  private val names = root.getFileSystem
  private val owners, groups = new ConcurrentHashMap[Integer, String]

  override def capabilities: Capabilities =
    Capabilities(modes = 0xfff, hasOwners = true, hasLinks = true, hasTimes = true, amends = true, impliesDirectories = false)

  private def at(path: String): Path = if (path.isEmpty) root else root.resolve(path)

  override def list(directory: String)(take: Entry => Unit): Unit =
    try {
      Using.resource(Files.newDirectoryStream(at(directory)))(_.forEach { found =>
        val path = Paths.child(directory, found.getFileName.toString)
        if (!isExpressible(found.getFileName)) {
          take(Entry(path, Kind.Failed, message = Some(Inexpressible)))
        } else {
          try take(examine(path, found)) catch {
            case _: NoSuchFileException => // It was removed meanwhile.
            case e: java.io.IOException => take(Entry(path, Kind.Failed, message = Some(Tree.oneLine(e))))
          }
        }
      })
    } catch {
      case e: DirectoryIteratorException => throw e.getCause
    }

  /** Whether a name comes back from text as it was. */
  private def isExpressible(name: Path): Boolean =
    try names.getPath(name.toString) == name catch {
      case _: InvalidPathException => false
    }

  private def examine(path: String, found: Path): Entry = {
    val options = if (path.isEmpty) Nil else Seq(NOFOLLOW_LINKS)
    val values = Files.readAttributes(found, Examined, options: _*)
    def is(name: String) = values.get(name).asInstanceOf[Boolean]
    def number(name: String) = values.get(name).asInstanceOf[Integer]
    val kind = if (is("isRegularFile")) Kind.File else if (is("isDirectory")) Kind.Directory else if (is("isSymbolicLink")) Kind.Link else Kind.Other
    Entry(
      path,
      kind,
      size = if (kind == Kind.File) values.get("size").asInstanceOf[Long] else 0,
      mtime = Some(values.get("lastModifiedTime").asInstanceOf[FileTime].to(NANOSECONDS)),
      mode = Some(number("mode") & 0xfff),
      owner = Some(owners.computeIfAbsent(number("uid"), _ => Files.getAttribute(found, "unix:owner", options: _*).toString)),
      group = Some(groups.computeIfAbsent(number("gid"), _ => Files.getAttribute(found, "unix:group", options: _*).toString)),
      target = Option.when(kind == Kind.Link)(targetOf(found)))
  }

  private def targetOf(link: Path): String = {
    val target = Files.readSymbolicLink(link)
    if (!isExpressible(target)) throw new java.io.IOException(s"the target of the symbolic link is not valid in the encoding ${System.getProperty("sun.jnu.encoding")}")
    target.toString
  }

  override def status(path: String): Option[Entry] =
    try Some(examine(path, at(path))) catch {
      case _: NoSuchFileException => None
      case e: FileSystemException if isBelowFile(e) => None
    }

  override def open(path: String, size: Long): InputStream = Files.newInputStream(at(path), NOFOLLOW_LINKS)

  override def stage(path: String, attributes: Attributes, checksum: Option[String]): Staged = new Staged {
    private val place = at(path)
    private val hidden = place.resolveSibling(temporary())
    private var isInstalled = false

    override val out: OutputStream =
      // Who may not read the source must not read its copy meanwhile.
      if (attributes.mode.isEmpty) Files.newOutputStream(hidden, CREATE_NEW, WRITE)
      else java.nio.channels.Channels.newOutputStream(Files.newByteChannel(hidden, java.util.Set.of(CREATE_NEW, WRITE), Private))

    override def install(check: Option[InputStream => Unit]): Unit = {
      out.close()
      check.foreach(check => Using.resource(Files.newInputStream(hidden))(check))
      set(hidden, attributes)
      Files.move(hidden, place, ATOMIC_MOVE)
      isInstalled = true
    }

    override def discard(): Unit = if (!isInstalled) {
      try out.close() finally Files.deleteIfExists(hidden)
    }
  }

  override def makeDirectory(path: String): Unit = Files.createDirectories(at(path))

  override def makeLink(path: String, target: String, attributes: Attributes): Unit = {
    val place = at(path)
    val hidden = place.resolveSibling(temporary())
    Files.createSymbolicLink(hidden, names.getPath(target))
    try {
      set(hidden, attributes)
      Files.move(hidden, place, ATOMIC_MOVE)
    } finally {
      Files.deleteIfExists(hidden)
    }
  }

  override def setAttributes(path: String, attributes: Attributes): Unit = set(at(path), attributes)

  /** The time comes first, since a mode may forbid to open the file for it, and the mode last, since a change of owner takes bits away. */
  private def set(place: Path, attributes: Attributes): Unit = {
    attributes.mtime.foreach { mtime =>
      Files.getFileAttributeView(place, classOf[BasicFileAttributeView], NOFOLLOW_LINKS).setTimes(FileTime.from(mtime, NANOSECONDS), null, null)
    }
    setOwners(place, attributes)
    attributes.mode.foreach(mode => Files.setAttribute(place, "unix:mode", mode))
  }

  private def setOwners(place: Path, attributes: Attributes): Unit = {
    val accounts = names.getUserPrincipalLookupService
    attributes.owner.foreach(owner => Files.setAttribute(place, "unix:owner", accounts.lookupPrincipalByName(owner), NOFOLLOW_LINKS))
    attributes.group.foreach(group => Files.setAttribute(place, "unix:group", accounts.lookupPrincipalByGroupName(group), NOFOLLOW_LINKS))
  }

  override def delete(path: String): Deleted =
    try {
      Files.delete(at(path))
      Deleted.Done
    } catch {
      case _: NoSuchFileException => Deleted.Gone
      case _: DirectoryNotEmptyException => Deleted.NotEmpty
      case e: FileSystemException if isBelowFile(e) => Deleted.Gone
    }

  override def deleteTree(path: String): Unit =
    if (Files.exists(at(path), NOFOLLOW_LINKS)) Files.walkFileTree(at(path), new SimpleFileVisitor[Path] {
      override def visitFile(file: Path, attributes: BasicFileAttributes): FileVisitResult = {
        Files.deleteIfExists(file)
        FileVisitResult.CONTINUE
      }
      override def postVisitDirectory(directory: Path, error: java.io.IOException): FileVisitResult = {
        if (error != null) throw error
        Files.deleteIfExists(directory)
        FileVisitResult.CONTINUE
      }
    })

  override def mayGiveAway(path: String): Boolean = {
    val probe = at(path).resolve(temporary())
    Files.createFile(probe)
    try {
      Files.getAttribute(probe, "unix:uid") == 0
    } finally {
      Files.deleteIfExists(probe)
    }
  }
}

private object LocalTree {
  /** Whether there can be nothing at a path, because something above it is no directory. The JVM has no class for that. */
  private def isBelowFile(e: FileSystemException): Boolean = e.getReason == "Not a directory"

  private val Examined = "unix:mode,uid,gid,size,lastModifiedTime,isRegularFile,isDirectory,isSymbolicLink"
  private val Private = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
  private def Inexpressible = s"its name is not valid in the JVM's encoding (${System.getProperty("sun.jnu.encoding")}), so Spark cannot copy it; psync without --spark can"
}
