package io.millstream.spark.sync

import java.io.{InputStream, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.TaskContext

import io.millstream.hadoop.NativeTree

/**
 * A tree of the local file system or of a mount, by the engine: names may have any bytes, and no symbolic link below the root is
 * ever followed. [[Names]] has paths as text.
 *
 * Hadoop's own local file system is not used: it starts a process for the owner of each file, hides names that end with `.crc`, and
 * writes a checksum beside every file.
 */
private[sync] final class LocalTree(root: String, temporary: () => String) extends Tree {
  import LocalTree._

  private[sync] val native = new NativeTree(root.getBytes(UTF_8), Nothing)
  private val users, groups = new ConcurrentHashMap[Int, String]
  private val userIds, groupIds = new ConcurrentHashMap[String, Int]

  // It ends copies that still run then.
  Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => native.close()))

  /** The root of the other side, and why it takes no part. */
  @volatile private var excluded: Option[(Identity, String)] = None

  override def identity: Option[Identity] = Option(native.status(Names.bytes(""))).map(identityOf)

  override def exclude(other: Identity, reason: String): Unit = excluded = Some(other -> reason)

  private def identityOf(found: NativeTree.Entry) = Identity(found.device, found.inode)

  override def close(): Unit = native.close()

  override def capabilities: Capabilities =
    Capabilities(modes = 0xfff, hasOwners = true, hasLinks = true, hasTimes = true, amends = true, impliesDirectories = false, newModes = 0x1ff & ~Umask)

  override def list(directory: String)(take: Entry => Unit): Unit =
    native.list(Names.bytes(directory), { entries =>
      val mount = Option.when(entries.mount.nonEmpty)(Names.text(entries.mount))
      Iterator.continually(entries.next()).takeWhile(_ != null).foreach { found =>
        take(entry(Paths.child(directory, Names.text(found.name)), found, mount))
      }
    })

  /** @param mount what is mounted there, or above */
  private def entry(path: String, found: NativeTree.Entry, mount: Option[String]): Entry = {
    val kind = Kinds(found.kind.ordinal)
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
      mount = mount.orElse(Option.when(found.isMounted && path.nonEmpty)(path)))
  }

  override def status(path: String): Option[Entry] = Option(native.status(Names.bytes(path))).map(entry(path, _, None))

  override def open(path: String, size: Long): InputStream = native.open(Names.bytes(path))

  override def stage(path: String, attributes: Attributes, checksum: Option[String]): Staged = new Staged {
    private val file = stageNatively(path, attributes)

    override def out: OutputStream = file

    override def install(check: Option[InputStream => Unit]): Unit = {
      check.foreach(check => Using.resource(file.read())(check))
      file.install()
    }

    override def discard(): Unit = file.close()
  }

  def stageNatively(path: String, attributes: Attributes): NativeTree.Staged = native.stage(Names.bytes(path), hidden(), wanted(attributes))

  /** Stages a copy of a file, if it is the version that is expected. None of its data passes through the JVM. */
  def copyFrom(source: LocalTree, version: Entry, attributes: Attributes, verify: Boolean): NativeTree.Copy =
    native.copy(source.native, Names.bytes(version.path), version.size, version.mtime.get, hidden(), wanted(attributes), verify)

  private def userId(name: String): Int = userIds.computeIfAbsent(name, idOf(_, NativeTree.userId))

  private def groupId(name: String): Int = groupIds.computeIfAbsent(name, idOf(_, NativeTree.groupId))

  override def expressible(entry: Entry): Entry =
    entry.copy(owner = entry.owner.filter(userId(_) != NativeTree.NONE), group = entry.group.filter(groupId(_) != NativeTree.NONE))

  private def hidden(): Array[Byte] = temporary().getBytes(UTF_8)

  private def wanted(attributes: Attributes) = new NativeTree.Attributes(
    attributes.owner.fold(NativeTree.NONE)(userId),
    attributes.group.fold(NativeTree.NONE)(groupId),
    attributes.mode.getOrElse(NativeTree.NONE),
    attributes.mtime.getOrElse(NativeTree.NO_TIME))

  override def makeDirectory(path: String): Unit = native.makeDirectory(Names.bytes(path))

  override def makeLink(path: String, target: String, attributes: Attributes): Unit =
    native.makeLink(Names.bytes(path), Names.bytes(target), hidden(), wanted(attributes))

  override def setAttributes(path: String, attributes: Attributes): Unit = native.setAttributes(Names.bytes(path), wanted(attributes))

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
    Using.resource(native.stage(probe, name.getBytes(UTF_8), NativeTree.Attributes.NOTHING))(_ => native.status(probe).uid == Superuser)
  }
}

private object LocalTree {
  /** Copies carry what their attributes say, and nothing else. */
  private val Nothing = 0
  private val Superuser = 0

  /** The number of an account; none if this machine does not know it, as for many of HDFS. */
  private def idOf(name: String, lookUp: String => Int): Int =
    try lookUp(name) catch {
      case _: java.io.IOException => NativeTree.NONE
    }

  /** That of this process, as Linux states it. */
  private lazy val Umask: Int = {
    val lines = Files.readAllLines(Path.of("/proc/self/status")).asScala
    lines.collectFirst { case UmaskLine(octal) => Integer.parseInt(octal, 8) }.getOrElse(UsualUmask)
  }
  private val UmaskLine = """Umask:\s*([0-7]+)""".r
  private val UsualUmask = Integer.parseInt("022", 8)

  /** In the order of NativeTree.Kind. */
  private val Kinds = Array(Kind.File, Kind.Directory, Kind.Link, Kind.Other, Kind.Failed)
}
