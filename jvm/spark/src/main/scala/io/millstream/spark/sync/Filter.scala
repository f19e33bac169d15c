package io.millstream.spark.sync

import java.io.{ByteArrayOutputStream, IOException, InputStream}
import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.util.concurrent.ConcurrentHashMap

import io.millstream.hadoop.tree.NativeFilter

/**
 * The filter of a synchronization, serialised to the tasks, each of which parses it.
 *
 * @param rules in the form of [[FilterText.flat]]
 * @param deletes whether entries of the destination may be deleted
 * @param counts whether deletions are counted, because there is a limit
 * @param deletesExcluded whether entries excluded by rules that name no side are deleted
 * @param prefix prefix of the transfer's paths: the name of the source, or nothing if its contents are copied
 * @param source absolute path of the root of the transfer, for rules with absolute paths
 * @param destination the same for the destination
 */
private[sync] final case class FilterRules(
    rules: Seq[String],
    deletes: Boolean,
    counts: Boolean,
    deletesExcluded: Boolean,
    prefix: String,
    source: String,
    destination: String) {

  /** Whether the source itself is excluded, in which case nothing takes part. */
  def excludesAll: Boolean =
    scala.util.Using.resource(open())(filter => prefix.nonEmpty && filter.hides("", isDirectory = true))

  /** @param files the only paths that take part; None for all */
  def open(files: Option[FileList] = None): Filter = {
    val roots = Seq(source, destination).map(root => Names.bytes(root.stripPrefix("/").stripSuffix("/")))
    new Filter(
      NativeFilter.of(rules.map(FilterText.decode).toArray, deletesExcluded, roots.head, roots.last),
      prefix,
      deletes,
      counts,
      files)
  }
}

/** Decides about paths below source and destination. */
private[sync] final class Filter(
    rules: NativeFilter,
    prefix: String,
    deletes: Boolean,
    val counts: Boolean,
    files: Option[FileList])
    extends AutoCloseable {
  private val leading = new ConcurrentHashMap[String, Boolean]

  /** Whether an entry of the source is excluded, regardless of its parent directories. */
  def hides(path: String, isDirectory: Boolean): Boolean = !rules.isCopied(named(path), isDirectory)

  /** Whether an entry of the source is excluded. Nothing below a hidden start of a listing takes part. */
  def hidesWithin(path: String, isDirectory: Boolean): Boolean =
    hides(path, isDirectory) || !isBeginning(path) && {
      val (within, from) = Paths.ancestors(path).filter(_.nonEmpty).span(!isBeginning(_))
      (within ++ from.take(1)).exists(hides(_, isDirectory = true))
    }

  /** Whether what is above a path is not filtered: it is listed, or leads to a listed path that may take part. */
  private def isBeginning(path: String): Boolean = files.exists { files =>
    files.names(path) || files.leads(path) && leading.computeIfAbsent(path, files.below(_).exists(mayTakePart))
  }

  private def mayTakePart(path: String): Boolean = Seq(true, false).exists(!hides(path, _))

  /** Whether an entry of the destination and its contents are protected from deletion. */
  def protects(path: String, isDirectory: Boolean, isInDeleted: Boolean): Boolean =
    !rules.isDeletable(named(path), isDirectory, isInDeleted)

  /** Whether the contents of a directory of the destination are neither compared nor deleted. */
  def leavesAlone(directory: String): Boolean =
    directory.nonEmpty && hides(
      directory,
      isDirectory = true) && (!deletes || Seq(true, false).forall(protects(directory, isDirectory = true, _)))

  private def named(path: String) = Names.bytes(Paths.within(prefix, path))

  override def close(): Unit = rules.close()
}

/** Rules as text in settings: `%` and bytes that are not printable ASCII become `%` and two hexadecimal digits. */
private[sync] object FilterText {

  /** Combines patterns and rules into one list, like [[NativeFilter.rules]]. */
  def flat(given: Seq[String]): Seq[String] =
    if (given.isEmpty) Nil
    else
      try NativeFilter.rules(given.map(decode).toArray).toSeq.map(encode)
      catch {
        case e: IllegalArgumentException => throw new SyncFailure(e.getMessage)
      }

  def encode(bytes: Array[Byte]): String =
    bytes.map(_ & 0xff).map(byte =>
      if (byte < ' ' || byte > '~' || byte == '%') f"%%$byte%02X" else byte.toChar.toString).mkString

  def decode(text: String): Array[Byte] = {
    val out = new ByteArrayOutputStream
    val bytes = text.getBytes(UTF_8)
    var at = 0
    while (at < bytes.length) {
      val digits = if (bytes(at) == '%') new String(bytes.slice(at + 1, at + 3), ISO_8859_1) else ""
      if (digits.matches("[0-9A-Fa-f]{2}")) {
        out.write(Integer.parseInt(digits, 16))
        at += 3
      } else {
        out.write(bytes(at))
        at += 1
      }
    }
    out.toByteArray
  }
}

/** Forwards all calls to a tree; subclasses change some of them. */
private[sync] abstract class TreeView(tree: Tree) extends Tree {
  override def whole: Tree = tree.whole
  override def expressible(entry: Entry): Entry = tree.expressible(entry)
  override def capabilities: Capabilities = tree.capabilities
  override def list(directory: String)(take: Entry => Unit): Unit = tree.list(directory)(take)
  override def status(path: String): Option[Entry] = tree.status(path)
  override def lookUp(path: String): Option[Entry] = tree.lookUp(path)
  override def withOwnTime(entry: Entry): Entry = tree.withOwnTime(entry)
  override def open(path: String, size: Long): InputStream = tree.open(path, size)
  override def stage(path: String, attributes: Attributes, checksum: Option[String], source: Tree): Staged =
    tree.stage(path, attributes, checksum, source)
  override def makeDirectory(path: String): Unit = tree.makeDirectory(path)
  override def makeSpecial(like: Entry, source: Tree, attributes: Attributes): Option[String] =
    tree.makeSpecial(like, source, attributes)
  override def makeHardLink(path: String, other: String): Unit = tree.makeHardLink(path, other)
  override def setAttributes(path: String, attributes: Attributes, source: Option[Tree]): Unit =
    tree.setAttributes(path, attributes, source)
  override def delete(path: String): Deleted = tree.delete(path)
  override def deleteTree(path: String): Unit = tree.deleteTree(path)
  override def copyByServer(source: Tree, version: Entry, attributes: Attributes): Boolean =
    tree.copyByServer(source, version, attributes)
  override def mayGiveAway(path: String): Boolean = tree.mayGiveAway(path)
  override def seemsToGiveAway: Boolean = tree.seemsToGiveAway
  override def keepsAttributes(path: String): Boolean = tree.keepsAttributes(path)
}

/** A source without the entries that a filter excludes. */
private[sync] final class FilteredSource(tree: Tree, filter: Filter) extends TreeView(tree) {
  override def list(directory: String)(take: Entry => Unit): Unit =
    super.list(directory) { entry =>
      // The destination's mark must stay visible, and the destination itself is a directory.
      val isTemporary = TemporaryNames.named(Paths.name(entry.path)).nonEmpty
      val isOfDirectory = entry.isDirectory || entry.kind == Kind.OtherFileSystem || Listings.isOther(entry)
      if (isTemporary || !filter.hides(entry.path, isOfDirectory)) take(entry)
    }

  override def status(path: String): Option[Entry] =
    super.status(path).filter(entry => path.isEmpty || !filter.hidesWithin(path, entry.isDirectory))
}

/** A destination: directories that a filter leaves alone appear empty, and protected entries are not deleted. */
private[sync] final class FilteredDestination(tree: Tree, filter: Filter) extends TreeView(tree) {
  override def list(directory: String)(take: Entry => Unit): Unit =
    if (!filter.leavesAlone(directory)) super.list(directory)(take)

  override def deleteTree(path: String): Unit =
    if (TemporaryNames.makerOf(Paths.name(path)).nonEmpty) super.deleteTree(path)
    else if (filter.counts && filter.leavesAlone(path)) {
      if (!isGone(tree.delete(path))) {
        throw new IOException("a directory is in the way whose contents were not counted, because it is excluded; without --max-delete, it is removed")
      }
    } else if (!empties(path)) throw new IOException("a directory with contents that the filter protects is in the way")

  /**
   * Deletes a directory, whatever the filter says about it, and the contents that the filter does not protect; returns
   * whether the directory is gone.
   */
  private def empties(directory: String): Boolean = {
    val entries = Seq.newBuilder[Entry]
    tree.list(directory)(entries += _)
    val left = entries.result().filterNot { entry =>
      !filter.protects(entry.path, entry.isDirectory, isInDeleted = true) && (if (entry.isDirectory) empties(entry.path)
                                                                              else isGone(tree.delete(entry.path)))
    }
    left.isEmpty && isGone(tree.delete(directory))
  }

  private def isGone(deleted: Deleted) = deleted == Deleted.Done || deleted == Deleted.Gone
}
