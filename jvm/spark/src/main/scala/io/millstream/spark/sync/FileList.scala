package io.millstream.spark.sync

import java.io.IOException
import java.nio.file.{Files, Path => LocalPath}
import java.security.MessageDigest
import java.util.HexFormat

import scala.jdk.CollectionConverters._

import io.millstream.hadoop.NativeFileList

/**
 * The only paths of the source that take part, with the directories that lead to them.
 *
 * @param contents the paths, and whether what is in a directory takes part without recursion, too
 * @param isRecursive whether what is in listed directories takes part, however deep it is
 */
private[sync] final class FileList(contents: Map[String, Boolean], val isRecursive: Boolean) {
  /** Whether a path is listed, and does not only lead to others. */
  def names(path: String): Boolean = contents.contains(path)

  /** All paths, and those that lead to them; the root only if it is listed. */
  def paths: Seq[FileList.Named] = {
    val leading = contents.keysIterator.flatMap(Paths.ancestors(_)).filter(path => path.nonEmpty && !names(path)).toSet
    contents.keysIterator.map(FileList.Named(_, isListed = true)).toSeq ++ leading.iterator.map(FileList.Named(_, isListed = false))
  }

  /** The directories to list, as far as they are directories: none is below another one from which it is reached. */
  def entered: Seq[String] =
    if (isRecursive) contents.keysIterator.filterNot(path => Paths.ancestors(path).exists(names)).toSeq
    else contents.collect { case (path, true) => path }.toSeq

  /** Tells it from other lists. */
  override def toString: String = {
    val digest = MessageDigest.getInstance("SHA-256")
    contents.toSeq.sorted.foreach { case (path, withContents) => digest.update(Names.bytes(path) :+ (if (withContents) 1 else 0).toByte) }
    s"${contents.size} paths $isRecursive ${HexFormat.of().formatHex(digest.digest())}"
  }
}

private[sync] object FileList {
  /** A path of a list, or one that only leads to such paths. */
  final case class Named(path: String, isListed: Boolean)

  private val StandardInput = "-"

  /**
   * Reads a list.
   *
   * @param file its path on this machine; `-` for the standard input
   * @throws SyncFailure if it cannot be read, or has a path that cannot be used
   */
  def read(file: String, isNulSeparated: Boolean, isRecursive: Boolean): FileList =
    try {
      val content = if (file == StandardInput) System.in.readAllBytes() else Files.readAllBytes(LocalPath.of(file))
      new FileList(NativeFileList.of(content, isNulSeparated).asScala.map(listed => Names.text(listed.path) -> listed.withContents).toMap, isRecursive)
    } catch {
      case e: IOException => throw new SyncFailure(s"$file: the list of files cannot be read: ${Tree.oneLine(e)}")
      case e: IllegalArgumentException => throw new SyncFailure(e.getMessage)
    }
}
