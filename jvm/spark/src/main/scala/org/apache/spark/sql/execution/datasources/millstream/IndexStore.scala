package org.apache.spark.sql.execution.datasources.millstream

import java.io.IOException
import java.nio.charset.StandardCharsets
import java.util.UUID

import scala.util.Using

import io.millstream.hadoop.{NativeIndex, TextCodec, Versions}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{EtagSource, FileStatus, Path}

/** A version of a compressed file. */
private[millstream] final case class CompressedFile(path: Path, size: Long, modificationTime: Long, version: Option[String], codec: TextCodec) {
  /** Tells this version from all others of the path. */
  def tag: String = {
    val known = version.map(_.filter(c => c < 128 && c.isLetterOrDigit || c == '-')).filter(_.nonEmpty)
    s"${known.getOrElse(modificationTime.toString)}-$size"
  }
}

private[millstream] object CompressedFile {
  /** The version that a status is of. */
  def of(status: FileStatus, codec: TextCodec): CompressedFile = {
    val version = status match {
      case tagged: EtagSource => Option(tagged.getEtag).map(Versions.plain)
      case _ => None
    }
    CompressedFile(status.getPath, status.getLen, status.getModificationTime, version, codec)
  }
}

/**
 * Where indexes are kept: in files whose names say which version of which file they are of, so that another version is never read by
 * them.
 *
 * @param directory None for a directory beside each file, whose name Spark and Hadoop ignore
 */
private[millstream] final case class IndexStore(directory: Option[String]) {
  def path(file: CompressedFile): Path = directory match {
    case None => new Path(new Path(file.path.getParent, IndexStore.Beside), s"${file.path.getName}.${file.tag}${IndexStore.Extension}")
    case Some(place) =>
      new Path(place, s"${IndexStore.prefix(file.path.getParent)}${file.path.getName}.${file.tag}${IndexStore.Extension}")
  }

  /** The bytes of a file's index, if there is one. One that is damaged, or of another file, is as none. */
  def load(file: CompressedFile, conf: Configuration): Option[Array[Byte]] =
    try {
      val place = path(file)
      val bytes = Using.resource(place.getFileSystem(conf).open(place))(_.readAllBytes())
      Option(NativeIndex.of(bytes)).filter(index => Using.resource(index)(_.size == file.size)).map(_ => bytes)
    } catch {
      case _: IOException => None
    }

  /**
   * Keeps an index. No reader sees a part of it, and nobody may read it who may not read the file: it contains some of its text.
   *
   * @throws IOException if it cannot be written
   */
  def save(file: CompressedFile, index: Array[Byte], conf: Configuration): Unit = {
    val place = path(file)
    val fileSystem = place.getFileSystem(conf)
    // An object is there once it is complete.
    val isWhole = fileSystem.getScheme == "s3a"
    val first = if (isWhole) place else new Path(place.getParent, s".${UUID.randomUUID()}")
    try {
      Using.resource(fileSystem.create(first, true)) { out =>
        if (!isWhole) fileSystem.setPermission(first, file.path.getFileSystem(conf).getFileStatus(file.path).getPermission)
        out.write(index)
      }
      if (!isWhole && !fileSystem.rename(first, place) && !fileSystem.exists(place)) throw new IOException(s"cannot be renamed to $place")
    } finally {
      if (!isWhole) fileSystem.delete(first, false)
    }
  }
}

private[millstream] object IndexStore {
  val Beside = "_millstream"
  val Extension = ".gzidx"
  /** Characters of a [[prefix]]. */
  val PrefixLength = 37

  /** What names of indexes in one directory begin with: files of the same name may be in several directories. */
  def prefix(directory: Path): String = s"${UUID.nameUUIDFromBytes(directory.toString.getBytes(StandardCharsets.UTF_8))}-"

  /** The name of the file whose index has a name, which is without a prefix. A tag has no dot. */
  def fileOf(name: String): Option[String] = {
    val tagged = name.stripSuffix(Extension)
    Option.when(tagged != name && tagged.lastIndexOf('.') > 0)(tagged.take(tagged.lastIndexOf('.')))
  }
}
