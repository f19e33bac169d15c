package io.millstream.spark.sync

import java.io.{IOException, InputStream, OutputStream}
import java.util.zip.CRC32C

import scala.util.{Try, Using}

import io.millstream.hadoop.tree.NativeTree

/**
 * Copies the contents of files: with the engine between local trees, and between those and S3; otherwise through the
 * JVM.
 *
 * The source is examined again after it has been read. If it changed meanwhile, it is read once more. After that, the
 * copy of a file that has only grown is installed: it is a beginning of the source, and its time makes the next run
 * copy it again. Any other copy may be a mixture of two versions, so the destination is not changed.
 *
 * @param revalidates whether a copy from an earlier run or attempt may exist
 * @param verify whether to read copies again
 * @param empties whether a file may replace a directory that is not empty
 * @param pace the rate limit, if any, of copies except those between local trees, which the destination limits
 * @param copied receives the size of each copy
 */
private[sync] final class Transfer(
    source: Tree,
    destination: Tree,
    preserved: Preserved,
    revalidates: Boolean,
    verify: Boolean,
    empties: Boolean,
    pace: Option[Pace],
    copied: Long => Unit) {
  import Transfer._

  def run(step: Step): Outcome = {
    var operation = "examine the source of"
    try {
      val listed = step.source.get
      kept(step).getOrElse {
        operation = "copy"
        withObjects(step, listed).getOrElse(first(step, source.withOwnTime(listed), listed))
      }
    } catch {
      // The source's size, not that of the directory in the destination.
      case _: java.io.FileNotFoundException if Try(source.status(step.path)).toOption.contains(None) =>
        Outcome.of(step, Status.Vanished)
      case e if Tree.isOfEntry(e) => Outcome.failed(step, operation, e)
    }
  }

  /**
   * The outcome of a step whose copy an earlier attempt has installed, perhaps without attributes; None if it has not.
   */
  private def kept(step: Step): Option[Outcome] =
    for {
      now <- if (revalidates) source.status(step.path).filter(_.isFile) else None
      found <- destination.status(step.path).filter(found =>
        found.isFile && found.size == now.size && !step.destination.exists(_.isSameVersionAs(found)))
      own = source.withOwnTime(destination.expressible(now))
      change = Decision.file(own, destination.withOwnTime(found), Rules(preserved))
      if change.forall(_.action == Action.Amend)
    } yield {
      val lacking = change.flatMap { _ =>
        try {
          destination.setAttributes(step.path, Decision.attributes(own, Some(found), preserved), Some(source))
          None
        } catch {
          case e if Tree.isOfEntry(e) => Some(Tree.oneLine(e))
        }
      }
      complete(step, lacking)(Outcome.of(step, Status.Kept))
    }

  /**
   * Copies between a local tree and objects by native requests, without the data passing through the JVM, if the source
   * is the listed version. An object is read by its version, and a file is examined again before it is sent.
   */
  private def withObjects(step: Step, listed: Entry): Option[Outcome] = (source.whole, destination.whole) match {
    case _ if pace.nonEmpty || verify => None
    case (from: ObjectTree, to: LocalTree) => from.fetch(listed, to, replaced(step), preserved).map { fetched =>
        val lacking =
          try {
            makeRoom(destination, step, empties)
            fetched.file.install()
          } finally fetched.file.close()
        complete(step, Option(lacking))(done(step, listed.size, fetched.mtime, fetched.checksum))
      }
    case (from: LocalTree, to: ObjectTree) if !step.makesWay && listed.size <= SmallBytes =>
      val sent =
        try to.send(from, listed, Decision.attributes(listed, None, preserved))
        catch {
          // It may be another kind of entry now.
          case _: IOException if !source.status(step.path).exists(listed.isSameVersionAs) => None
        }
      sent.map(done(step, listed.size, listed.mtime, _))
    case _ => None
  }

  /** The entry that a copy replaces; its current state if the copy keeps its mode. */
  private def replaced(step: Step): Option[Entry] =
    if (preserved.newModes != 0 && step.destination.nonEmpty) destination.status(step.path) else step.destination

  private def done(step: Step, bytes: Long, mtime: Option[Long], checksum: String): Outcome = {
    copied(bytes)
    Outcome.of(step, Status.Done).copy(size = bytes, mtime = mtime, checksum = Some(checksum))
  }

  private def first(step: Step, entry: Entry, listed: Entry): Outcome =
    attempt(step, entry, listed, isLast = false).getOrElse {
      source.status(step.path) match {
        case Some(now) if now.isFile => attempt(step, source.withOwnTime(now), now, isLast = true).get
        case Some(now) => Outcome.of(step, Status.Changed).copy(message = Some(s"it is now a ${now.kind}"))
        case None => Outcome.of(step, Status.Vanished)
      }
    }

  /** Copies a version; None if it is no longer current. */
  private def attempt(step: Step, entry: Entry, version: Entry, isLast: Boolean): Option[Outcome] =
    try copy(step, entry, version, isLast)
    catch {
      // S3A fails to read an object that has been replaced.
      case _: IOException if source.status(step.path).exists(!version.isSameVersionAs(_)) =>
        Option.when(isLast)(Outcome.of(step, Status.Changed))
    }

  private def copy(step: Step, entry: Entry, version: Entry, isLast: Boolean): Option[Outcome] =
    (source.whole, destination.whole) match {
      case (from: LocalTree, to: LocalTree) => copyNatively(from, to, step, entry, version, isLast)
      case _ => copyBytes(step, entry, version, isLast)
    }

  private def copyNatively(
      from: LocalTree,
      to: LocalTree,
      step: Step,
      entry: Entry,
      version: Entry,
      isLast: Boolean): Option[Outcome] = {
    val copy = to.copyFrom(from, version, Decision.attributes(entry, replaced(step), preserved), verify)
    try {
      val isGrown = isLast && copy.change == NativeTree.Change.GROWN
      if (copy.change == NativeTree.Change.NONE || isGrown) {
        makeRoom(destination, step, empties)
        val lacking = Option(copy.staged.install())
        copied(copy.bytes)
        Some(complete(step, lacking) {
          Outcome.of(step, if (isGrown) Status.Grown else Status.Done).copy(
            size = copy.bytes,
            mtime = entry.mtime,
            checksum = Option(copy.checksum))
        })
      } else if (!isLast) {
        None
      } else {
        Some(Outcome.of(step, if (from.status(step.path).isEmpty) Status.Vanished else Status.Changed))
      }
    } finally {
      Option(copy.staged).foreach(_.close())
    }
  }

  private def copyBytes(step: Step, entry: Entry, version: Entry, isLast: Boolean): Option[Outcome] = {
    val attributes = Decision.attributes(entry, replaced(step), preserved)
    // Only contents that have passed through this process can be verified.
    if (!verify && !step.makesWay && destination.copyByServer(source.whole, version, attributes)) {
      copied(entry.size)
      Some(Outcome.of(step, Status.Done).copy(size = entry.size, mtime = entry.mtime))
    } else if (entry.size <= SmallBytes) {
      val content = Using.resource(source.open(step.path, entry.size))(_.readNBytes(entry.size.toInt))
      pace.foreach(_.take(content.length))
      val sum = new CRC32C
      sum.update(content)
      settle(step, entry, version, content.length, isLast) { () =>
        val staged = destination.stage(step.path, attributes, Some(text(sum)), source)
        try {
          staged.out.write(content)
          install(step, staged, sum)
        } finally staged.discard()
      }(text(sum))
    } else {
      val staged = destination.stage(step.path, attributes, None, source)
      try {
        val sum = new CRC32C
        val bytes = Using.resource(source.open(step.path, entry.size))(pass(_, staged.out, entry.size, sum, pace))
        settle(step, entry, version, bytes, isLast)(() => install(step, staged, sum))(text(sum))
      } finally staged.discard()
    }
  }

  /** Installs a copy if its source is unchanged or has only grown. */
  private def settle(
      step: Step,
      entry: Entry,
      version: Entry,
      bytes: Long,
      isLast: Boolean)(install: () => Option[String])(checksum: => String): Option[Outcome] = {
    val now = source.status(step.path)
    val isSame = bytes == entry.size && now.exists(version.isSameVersionAs)
    val isGrown = isLast && bytes == entry.size && now.exists(now => now.isFile && now.size > entry.size)
    if (isSame || isGrown) {
      val lacking = install()
      copied(bytes)
      Some(complete(step, lacking) {
        Outcome.of(
          step,
          if (isSame) Status.Done else Status.Grown).copy(size = bytes, mtime = entry.mtime, checksum = Some(checksum))
      })
    } else if (!isLast) {
      None
    } else {
      Some(Outcome.of(step, if (now.isEmpty) Status.Vanished else Status.Changed))
    }
  }

  private def install(step: Step, staged: Staged, sum: CRC32C): Option[String] = {
    makeRoom(destination, step, empties)
    staged.install(Option.when(verify) { (in: InputStream) =>
      val stored = new CRC32C
      pass(in, OutputStream.nullOutputStream(), Long.MaxValue, stored)
      if (stored.getValue != sum.getValue) throw new IOException("the copy differs from what was written")
    })
  }
}

private[sync] object Transfer {

  /** Files of up to so many bytes are read before anything is written, so that objects can state their checksums. */
  val SmallBytes = 4 << 20
  private val BufferBytes = 1 << 20

  private val IsInTheWay =
    "a directory with contents is in the way; --delete or --force (delete=True, force=True) removes it, if nothing failed and --max-delete allows it"
  val IsMounted = "a mount in the destination is in the way"

  private def text(sum: CRC32C): String = text(sum.getValue.toInt)

  /** The outcome of a step whose copy is installed; a missing attribute is an error. */
  def complete(step: Step, lacking: Option[String])(outcome: Outcome): Outcome =
    lacking.fold(outcome)(Outcome.failed(step, "set attributes of", _).copy(action = Action.Amend))

  /** A CRC-32C, prefixed with its name. */
  def text(sum: Int): String = f"crc32c:$sum%08x"

  /** Copies up to this number of bytes; returns the number copied. */
  private def pass(in: InputStream, out: OutputStream, limit: Long, sum: CRC32C, pace: Option[Pace] = None): Long = {
    val buffer = new Array[Byte](BufferBytes)
    var bytes = 0L
    var read = 0
    while ({
      read = if (bytes == limit) -1 else in.read(buffer, 0, math.min(buffer.length, limit - bytes).toInt)
      read >= 0
    }) {
      pace.foreach(_.take(read))
      sum.update(buffer, 0, read)
      out.write(buffer, 0, read)
      bytes += read
    }
    bytes
  }

  /** Removes a directory that is in the way. */
  def makeRoom(destination: Tree, step: Step, empties: Boolean): Unit =
    if (step.makesWay && step.destination.exists(_.isDirectory)) {
      if (step.destination.exists(_.mount.nonEmpty)) throw new IOException(IsMounted)
      if (empties) destination.deleteTree(step.path)
      else if (destination.delete(step.path) == Deleted.NotEmpty) throw new IOException(IsInTheWay)
    }

  /** The checksum of an existing file. */
  def checksum(tree: Tree, path: String, size: Long): Long = {
    val sum = new CRC32C
    Using.resource(tree.open(path, size))(pass(_, OutputStream.nullOutputStream(), Long.MaxValue, sum))
    sum.getValue
  }

  /** Whether the contents of two files of the same size are the same. */
  def areSame(source: Tree, destination: Tree, path: String, size: Long): Boolean =
    checksum(source, path, size) == checksum(destination, path, size)
}
