package io.millstream.spark.sync

import java.io.IOException
import java.nio.file.{Files, Path => LocalPath}
import java.security.MessageDigest
import java.util.HexFormat

import scala.collection.immutable.TreeSet
import scala.jdk.CollectionConverters._

import io.millstream.hadoop.tree.NativeFileList

/**
 * A list of files: the only paths of the source that take part, with the directories that lead to them.
 *
 * A path that is listed, or leads to one that is, is looked up individually. If its contents take part, a separate
 * listing begins there, which ends at other such paths. Filters apply below it: as in rsync, a listed entry is filtered
 * by its own path only, and a directory that leads to it takes part whatever a filter says.
 *
 * @param contents the paths, and whether a directory's contents take part even without recursion
 * @param isRecursive whether the contents of listed directories take part at any depth
 * @param namesRoot whether the source itself takes part though it is not listed
 */
private[sync] final class FileList(contents: Map[String, Boolean], val isRecursive: Boolean, namesRoot: Boolean = false)
    extends Serializable {
  @transient private lazy val leading: Set[String] = contents.keysIterator.flatMap(Paths.ancestors(_)).toSet

  @transient private lazy val sorted: TreeSet[String] = TreeSet.from(contents.keysIterator)

  /** Whether a path is listed. */
  def names(path: String): Boolean = contents.contains(path)

  /** Whether a path leads to one that is listed. */
  def leads(path: String): Boolean = leading(path)

  /** Whether a path is listed, or leads to one that is. */
  def knows(path: String): Boolean = names(path) || leads(path)

  /** The listed paths below a directory. */
  def below(directory: String): Iterator[String] = {
    val beginning = if (directory.isEmpty) "" else s"$directory/"
    sorted.iteratorFrom(beginning).takeWhile(_.startsWith(beginning))
  }

  /** Whether the root itself takes part. */
  def includesRoot: Boolean = namesRoot || names("")

  /** The paths of the list; the root only if it takes part. */
  def paths: Seq[FileList.Known] = {
    val root = if (namesRoot && !names("")) Seq(FileList.Known("", isListed = false, leads = true)) else Nil
    val others = leading.iterator.filter(path => path.nonEmpty && !names(path))
    contents.keysIterator.map(path => FileList.Known(path, isListed = true, leads = leading(path))).toSeq ++
      root ++ others.map(FileList.Known(_, isListed = false, leads = true))
  }

  /**
   * The paths of the list whose whole contents take part, if they are directories and not hidden by a filter.
   */
  def entered(isHidden: String => Boolean): Seq[String] = {
    val entered = scala.collection.mutable.Set.empty[String]
    for (path <- (contents.keySet ++ leading).toSeq.sortBy(Paths.depth)) {
      // With recursion, a directory that leads from one listed directory to another below it is part of the first.
      def isReached = isRecursive && (names(path) || path.nonEmpty && entered(Paths.parent(path)))
      if ((contents.getOrElse(path, false) || isReached) && !isHidden(path)) entered += path
    }
    entered.toSeq
  }

  /** Distinguishes it from other lists. */
  override def toString: String = {
    val digest = MessageDigest.getInstance("SHA-256")
    contents.toSeq.sorted.foreach { case (path, withContents) =>
      digest.update(Names.bytes(path) :+ (if (withContents) 1 else 0).toByte)
    }
    s"${contents.size} paths $isRecursive $namesRoot ${HexFormat.of().formatHex(digest.digest())}"
  }
}

private[sync] object FileList {

  /** A path that is listed, or leads to such paths, or both. */
  final case class Known(path: String, isListed: Boolean, leads: Boolean)

  private val StandardInput = "-"

  /**
   * Reads a list.
   *
   * @param file its path on this machine; `-` for the standard input
   * @throws SyncFailure if it cannot be read or contains an unusable path
   */
  def read(file: String, isNulSeparated: Boolean, isRecursive: Boolean): FileList =
    try {
      val content = if (file == StandardInput) System.in.readAllBytes() else Files.readAllBytes(LocalPath.of(file))
      val list = NativeFileList.of(content, isNulSeparated)
      val listed = list.paths.asScala.map(listed => Names.text(listed.path) -> listed.withContents)
      new FileList(listed.filterNot { case (path, _) => isTemporary(path) }.toMap, isRecursive, list.namesRoot)
    } catch {
      case e: IOException => throw new SyncFailure(s"$file: the list of files cannot be read: ${Tree.oneLine(e)}")
      case e: IllegalArgumentException => throw new SyncFailure(e.getMessage)
    }

  /** Whether a path belongs to a run's temporary files, which never take part in a synchronization. */
  private def isTemporary(path: String): Boolean = path.split('/').exists(TemporaryNames.makerOf(_).nonEmpty)
}
