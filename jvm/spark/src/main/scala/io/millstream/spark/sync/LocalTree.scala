package io.millstream.spark.sync

import java.io.{InputStream, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.HexFormat
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.TaskContext

import io.millstream.hadoop.tree.NativeTree

/**
 * A tree of the local file system or of a mount, accessed by the engine: names may have any bytes, and no symbolic link
 * below the root is ever followed. [[Names]] converts paths to text.
 *
 * Hadoop's own local file system is not used: it starts a process for the owner of each file, hides names that end with
 * `.crc`, and writes a checksum file next to every file.
 */
private[sync] final class LocalTree(root: String, temporary: () => String, extras: Extras) extends Tree {
  import LocalTree._

  private[sync] val native = new NativeTree(root.getBytes(UTF_8), carried(extras), extras.bytesPerSecond.getOrElse(0))
  private val users, groups = new ConcurrentHashMap[Int, String]
  private val mounts = new ConcurrentHashMap[String, Option[String]]
  private val userIds, groupIds = new ConcurrentHashMap[String, Int]

  // This ends running copies.
  Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => native.close()))

  /** The root of the other side, and why it does not take part. */
  @volatile private var excluded: Option[(Identity, String)] = None

  override def identity: Option[Identity] = Option(native.status(Names.bytes(""))).map(identityOf)

  override def exclude(other: Identity, reason: String): Unit = excluded = Some(other -> reason)

  private def identityOf(found: NativeTree.Entry) = Identity(found.device, found.inode)

  /** This machine's number for the root's file system. */
  private lazy val device: Option[Long] = identity.map(_.device)

  override def close(): Unit = native.close()

  override def capabilities: Capabilities =
    Capabilities(
      modes = 0xfff,
      hasOwners = true,
      hasLinks = true,
      hasSpecials = true,
      hasTimes = true,
      amends = true,
      impliesDirectories = false,
      newModes = 0x1ff & ~Umask,
      extended = Some("POSIX"))

  override def list(directory: String)(take: Entry => Unit): Unit =
    if (extras.oneFileSystem && isOfOtherFileSystem(directory)) take(Entry(directory, Kind.OtherFileSystem))
    else native.list(
      Names.bytes(directory),
      { entries =>
        val mount = Option.when(entries.mount.nonEmpty)(Names.text(entries.mount))
        Iterator.continually(entries.next()).takeWhile(_ != null).foreach { found =>
          take(entry(Paths.child(directory, Names.text(found.name)), found, mount))
        }
      })

  private def isOfOtherFileSystem(directory: String): Boolean =
    Option(native.status(Names.bytes(directory))).exists(found => !device.contains(found.device))

  /** @param mount the mount at or above the directory */
  private def entry(path: String, found: NativeTree.Entry, mount: Option[String]): Entry = {
    val kind = Kinds.getOrElse(found.kind, Kind.Other)
    val isExcluded = kind == Kind.Directory && path.nonEmpty && excluded.exists(_._1 == identityOf(found))
    if (kind == Kind.Failed) Entry(path, kind, message = Some(Names.text(found.target)))
    else if (isExcluded) Entry(path, Kind.Failed, message = excluded.map(_._2))
    else Entry(
      path,
      kind,
      size = if (kind == Kind.File) found.size else 0,
      mtime = Some(found.mtime),
      mode = Some(found.mode),
      owner = Some(users.computeIfAbsent(found.uid, NativeTree.userName(_))),
      group = Some(groups.computeIfAbsent(found.gid, NativeTree.groupName(_))),
      target = Option.when(kind == Kind.Link)(Names.text(found.target)),
      mount = mount.orElse(Option.when(found.isMounted && path.nonEmpty)(path)),
      special = special(found),
      inode = Option.when(extras.hardLinks && kind != Kind.Directory && found.links > 1)(inode(found, mount)),
      acls = checksum(found.acls),
      xattrs = checksum(found.xattrs))
  }

  private def special(found: NativeTree.Entry): Option[String] = found.kind match {
    case NativeTree.Kind.PIPE => Some(Special.Pipe)
    case NativeTree.Kind.SOCKET => Some(Special.Socket)
    case NativeTree.Kind.CHARACTER_DEVICE => Some(Special.characterDevice(found.number))
    case NativeTree.Kind.BLOCK_DEVICE => Some(Special.blockDevice(found.number))
    case _ => None
  }

  /**
   * Every machine may use a different number for a file system, but its mount point in the tree is the same. Subvolumes
   * have separate numbers, but are not mounted.
   */
  private def inode(found: NativeTree.Entry, mount: Option[String]): String = {
    val fileSystem = if (device.contains(found.device)) ""
    else s"${mount.getOrElse("")}:${java.lang.Long.toUnsignedString(found.device)}"
    s"${java.lang.Long.toUnsignedString(found.inode)}:$fileSystem"
  }

  override def status(path: String): Option[Entry] = Option(native.status(Names.bytes(path))).map(entry(path, _, None))

  override def lookUp(path: String): Option[Entry] =
    Option(native.status(Names.bytes(path))).map(entry(path, _, mountOf(Paths.parent(path))))

  /** The mount point in the tree at or above a directory. */
  private def mountOf(directory: String): Option[String] =
    if (directory.isEmpty) None
    else Option(mounts.get(directory)).getOrElse {
      val isMounted = Option(native.status(Names.bytes(directory))).exists(_.isMounted)
      val mount = mountOf(Paths.parent(directory)).orElse(Option.when(isMounted)(directory))
      mounts.put(directory, mount)
      mount
    }

  override def open(path: String, size: Long): InputStream = native.open(Names.bytes(path))

  /** [[copyFrom]] copies what only other local trees have. */
  override def stage(path: String, attributes: Attributes, checksum: Option[String], source: Tree): Staged =
    new Staged {
      private val file = stageNatively(path, attributes)

      override def out: OutputStream = file

      override def install(check: Option[InputStream => Unit]): Option[String] = {
        check.foreach(check => Using.resource(file.read())(check))
        Option(file.install())
      }

      override def discard(): Unit = file.close()
    }

  def stageNatively(path: String, attributes: Attributes): NativeTree.Staged =
    native.stage(Names.bytes(path), hidden(), wanted(attributes))

  /** Stages a copy of a file, if it is the expected version. No data passes through the JVM. */
  def copyFrom(source: LocalTree, version: Entry, attributes: Attributes, verify: Boolean): NativeTree.Copy =
    native.copy(
      source.native,
      Names.bytes(version.path),
      version.size,
      version.mtime.get,
      hidden(),
      wanted(attributes),
      verify)

  private def userId(name: String): Int = userIds.computeIfAbsent(name, idOf(_, NativeTree.userId))

  private def groupId(name: String): Int = groupIds.computeIfAbsent(name, idOf(_, NativeTree.groupId))

  override def expressible(entry: Entry): Entry =
    entry.copy(
      owner = entry.owner.filter(userId(_) != NativeTree.NONE),
      group = entry.group.filter(groupId(_) != NativeTree.NONE))

  private def hidden(): Array[Byte] = temporary().getBytes(UTF_8)

  private def localOf(tree: Tree): NativeTree = tree.whole match {
    case local: LocalTree => local.native
    case _ => null
  }

  private def wanted(attributes: Attributes) = new NativeTree.Attributes(
    attributes.owner.fold(NativeTree.NONE)(userId),
    attributes.group.fold(NativeTree.NONE)(groupId),
    attributes.mode.getOrElse(NativeTree.NONE),
    attributes.mtime.getOrElse(NativeTree.NO_TIME))

  override def makeDirectory(path: String): Unit = native.makeDirectory(Names.bytes(path))

  override def makeSpecial(like: Entry, source: Tree, attributes: Attributes): Option[String] = {
    val (kind, number) = like.special.fold((NativeTree.Kind.LINK, 0L))(kindOf)
    val target = Names.bytes(like.target.getOrElse(""))
    Option(native.makeSpecial(
      Names.bytes(like.path),
      kind,
      target,
      number,
      hidden(),
      localOf(source),
      wanted(attributes)))
  }

  override def makeHardLink(path: String, other: String): Unit =
    native.makeHardLink(Names.bytes(path), Names.bytes(other), hidden())

  override def setAttributes(path: String, attributes: Attributes, source: Option[Tree]): Unit =
    native.setAttributes(Names.bytes(path), source.map(localOf).orNull, wanted(attributes))

  override def delete(path: String): Deleted = native.remove(Names.bytes(path)) match {
    case NativeTree.Removal.DONE => Deleted.Done
    case NativeTree.Removal.GONE => Deleted.Gone
    case NativeTree.Removal.NOT_EMPTY => Deleted.NotEmpty
    case NativeTree.Removal.MOUNTED => Deleted.Mounted
  }

  override def deleteTree(path: String): Unit = native.removeTree(Names.bytes(path))

  override def mayGiveAway(path: String): Boolean = {
    val name = temporary()
    val probe = Names.bytes(Paths.child(path, name))
    Using.resource(native.stage(probe, name.getBytes(UTF_8), NativeTree.Attributes.NOTHING))(_ =>
      native.status(probe).uid == Superuser)
  }

  override def seemsToGiveAway: Boolean = Uid.contains(Superuser)
}

private object LocalTree {
  private def carried(extras: Extras): Int =
    Seq(
      extras.xattrs -> NativeTree.XATTRS,
      extras.acls -> NativeTree.ACLS,
      extras.sparse -> NativeTree.SPARSE).collect { case (true, bit) => bit }.sum

  private def checksum(bytes: Array[Byte]): Option[String] =
    Option.when(bytes.nonEmpty)(HexFormat.of().formatHex(bytes))

  /** The kind, and the number of a device. */
  private def kindOf(special: String): (NativeTree.Kind, Long) = Special.parts(special) match {
    case (Special.Pipe, _) => (NativeTree.Kind.PIPE, 0)
    case (Special.Socket, _) => (NativeTree.Kind.SOCKET, 0)
    case (Special.CharacterDevice, number) => (NativeTree.Kind.CHARACTER_DEVICE, number)
    case (Special.BlockDevice, number) => (NativeTree.Kind.BLOCK_DEVICE, number)
    case (other, _) => throw new IllegalArgumentException(s"no special file: $other")
  }

  private val Superuser = 0

  /** The number of an account; none if this machine does not know it, like many HDFS accounts. */
  private def idOf(name: String, lookUp: String => Int): Int =
    try lookUp(name)
    catch {
      case _: java.io.IOException => NativeTree.NONE
    }

  /** Linux's description of this process. */
  private lazy val OfProcess = Files.readAllLines(Path.of("/proc/self/status")).asScala
  private lazy val Umask: Int = OfProcess.collectFirst { case UmaskLine(octal) =>
    Integer.parseInt(octal, 8)
  }.getOrElse(UsualUmask)
  private lazy val Uid: Option[Int] = OfProcess.collectFirst { case UidLine(effective) =>
    Integer.parseUnsignedInt(effective)
  }
  private val UmaskLine = """Umask:\s*([0-7]+)""".r
  private val UidLine = """Uid:\s*[0-9]+\s+([0-9]+).*""".r
  private val UsualUmask = Integer.parseInt("022", 8)

  private val Kinds = Map(
    NativeTree.Kind.FILE -> Kind.File,
    NativeTree.Kind.DIRECTORY -> Kind.Directory,
    NativeTree.Kind.LINK -> Kind.Link,
    NativeTree.Kind.FAILED -> Kind.Failed)
}
