package org.apache.spark.sql.execution.datasources.millstream.compressed

import java.io.IOException
import java.nio.file.{Files, LinkOption, Path => LocalPath, Paths}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.security.UserGroupInformation

/**
 * Decides whose indexes are used. Checksums reveal a damaged index or one of another file, but not one that omits a
 * part of the file on purpose, by which anyone could remove rows from a query. So only these users' are used: the owner
 * of the file, who could change the file anyway; the user of this process; and the superuser. Object stores have no
 * owners: there, everybody who may write indexes may replace files.
 */
private object IndexOwners {
  private val WithOwners = Set("hdfs", "viewfs", "webhdfs", "swebhdfs")
  private val Superuser = 0

  /**
   * Whether an index may be used.
   *
   * @param index its qualified path
   * @throws IOException if its owner or the file's cannot be determined
   */
  def mayBeUsed(index: Path, file: Path, conf: Configuration): Boolean =
    if (IndexStore.isLocal(index)) {
      val owner = user(IndexStore.local(index), LinkOption.NOFOLLOW_LINKS)
      owner == Superuser || owner == user(Paths.get("/proc/self")) || IndexStore.isLocal(file) && owner == user(
        IndexStore.local(file))
    } else {
      val fileSystem = index.getFileSystem(conf)
      !WithOwners(fileSystem.getUri.getScheme) || mayBeUsed(
        fileSystem,
        fileSystem.getFileStatus(index).getOwner,
        file,
        conf)
    }

  private def mayBeUsed(fileSystem: FileSystem, owner: String, file: Path, conf: Configuration): Boolean =
    owner == UserGroupInformation.getCurrentUser.getShortUserName ||
      file.getFileSystem(conf).getUri == fileSystem.getUri && owner == fileSystem.getFileStatus(file).getOwner ||
      // The user who formatted HDFS is its superuser, and nobody else may give the root away.
      owner == fileSystem.getFileStatus(new Path("/")).getOwner

  private def user(path: LocalPath, options: LinkOption*): Int =
    Files.getAttribute(path, "unix:uid", options: _*).asInstanceOf[Integer]
}
