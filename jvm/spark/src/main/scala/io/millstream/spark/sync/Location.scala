package io.millstream.spark.sync

import java.net.URI
import java.nio.file.{Files, Path => LocalPath, Paths => LocalPaths}

import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

/** The real location of a directory, with links, Hadoop's mount tables and the like resolved. */
private[sync] final case class Location(uri: URI) {
  import Location._

  /** Whether this is the other directory or below it. */
  def isWithin(other: Location): Boolean = {
    val above = other.uri.getPath
    isSameStore(uri, other.uri) && (uri.getPath == above || uri.getPath.startsWith(if (above.endsWith("/")) above
    else s"$above/"))
  }
}

private[sync] object Location {

  /** HDFS serves several protocols, each at a separate port. */
  private val Hdfs = Set("hdfs", "webhdfs", "swebhdfs")

  private val IsOfHost =
    "other hosts are not supported; mount the remote directory, or use rsync. Write a local path with a colon as ./PATH"

  /** The location of an absolute URL, whose directory need not exist. */
  def of(url: String, conf: Configuration): Location = {
    val path = new Path(url)
    if (path.toUri.getScheme == "file")
      Location(new URI("file", null, real(LocalPaths.get(path.toUri.getPath)).toString, null))
    else {
      val fs = path.getFileSystem(conf)
      // A view of several file systems resolves this to one of them, but perhaps not if it does not exist.
      Location(Try(fs.resolvePath(path)).getOrElse(path).toUri)
    }
  }

  /** The file system's own absolute URL of an operand, which may be a path without a scheme. */
  def absolute(given: String, conf: Configuration): String = {
    val hasScheme = given.matches("(?s)[A-Za-z][A-Za-z0-9+.-]*:/.*")
    if (!hasScheme && given.takeWhile(_ != '/').contains(':')) throw new SyncFailure(s"$given: $IsOfHost")
    val isLocal = if (hasScheme) given.startsWith("file:") else FileSystem.getDefaultUri(conf).getScheme == "file"
    if (isLocal) {
      val local = LocalPaths.get(if (hasScheme) new Path(given).toUri.getPath else given).toAbsolutePath
      // Other machines may have other links, so links stay, except where `..` depends on their targets.
      val hasParents = (0 until local.getNameCount).exists(local.getName(_).toString == "..")
      new Path("file", null, (if (hasParents) real(local) else local.normalize).toString).toString
    } else {
      val path = new Path(given)
      path.getFileSystem(conf).makeQualified(path).toString
    }
  }

  private def real(path: LocalPath): LocalPath =
    if (Files.exists(path)) path.toRealPath()
    else Option(path.getParent).fold(path.normalize)(above => real(above).resolve(path.getFileName).normalize)

  private def isSameStore(one: URI, other: URI): Boolean =
    if (one.getScheme == other.getScheme) one.getAuthority == other.getAuthority
    else Hdfs(one.getScheme) && Hdfs(other.getScheme) && one.getHost == other.getHost
}
