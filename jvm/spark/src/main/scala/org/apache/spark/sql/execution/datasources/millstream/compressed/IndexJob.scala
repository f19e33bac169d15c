package org.apache.spark.sql.execution.datasources.millstream.compressed

import java.io.{FileNotFoundException, IOException}
import java.nio.file.Files
import java.util.concurrent.TimeUnit.DAYS

import scala.collection.mutable
import scala.util.Using

import io.millstream.hadoop.codec.{FileCodec, TextCodec}
import io.millstream.hadoop.listing.DatasetNames
import io.millstream.hadoop.reading.NativeIndex
import io.millstream.write.store.Names
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import org.apache.spark.TaskContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.millstream.hadoop.FileCodecs
import org.apache.spark.sql.execution.datasources.millstream.settings.IndexSettings
import org.apache.spark.util.ThreadUtils

/**
 * The action of [[IndexJob]] on a file, done or planned.
 *
 * @param action in the words of `millstream index`
 * @param numbers the index's numbers
 * @param problem why it failed, and how to fix it; `action` is then what failed
 */
final case class IndexOutcome(
    path: String,
    action: String,
    reason: Option[String] = None,
    numbers: Seq[(String, Long)] = Nil,
    problem: Option[String] = None)

/**
 * Builds or removes indexes of compressed files before Spark reads them: `millstream index --spark`. The driver lists
 * files; a task for each file decodes it once, and no index is sent to the driver.
 *
 * @param directory where indexes are kept; None for the session's setting
 * @param minSize bytes of the smallest file that is taken from a directory; None for the session's setting
 */
final class IndexJob(spark: SparkSession, directory: Option[String], minSize: Option[Long], dryRun: Boolean) {
  private val context = spark.sparkContext
  private val conf = context.hadoopConfiguration
  private val settings = IndexSettings.of(spark.sessionState.conf)
  private val store = IndexStore(directory.orElse(settings.directory))
  private val smallest = minSize.getOrElse(settings.minSize)
  private val codecs = FileCodecs.ofSpark(conf)

  /** Builds the indexes of files that have none. */
  def make(paths: Seq[String]): Seq[IndexOutcome] = {
    val (listed, failed) = list(paths, IndexJob.Index)
    val (right, others) = listed.partition(tree => !tree.isFile || isDivisible(tree.root.getName))
    val refused = others.map(tree =>
      IndexOutcome(
        tree.root.toString,
        IndexJob.Index,
        problem =
          Some("only .gz, .zst, .lz4 and .snappy files have indexes; tasks share a .bz2 file without an index, and a single task reads a file of any other format")))
    val files =
      right.flatMap(tree => tree.data.filter(file => file.codec.hasIndex && (tree.isFile || file.size >= smallest)))
    val named = right.filter(_.isFile).map(_.root.toString).toSet
    // The largest first, so that the Spark job does not end with one of them.
    failed ++ refused ++ run(files.distinct.sortBy(-_.size)).map {
      case IndexOutcome(path, IndexJob.Skip, why, _, _) if named(path) =>
        IndexOutcome(path, IndexJob.Index, problem = why)
      case outcome => outcome
    }
  }

  private def run(files: Seq[CompressedFile]): Seq[IndexOutcome] =
    if (files.isEmpty) {
      Nil
    } else {
      val (kept, isDryRun) = (store, dryRun)
      CompressedFiles.inTasks(context, files, conf)(IndexJob.one(_, kept, isDryRun, _, _))
    }

  /** Removes indexes of file versions that are gone, and leftovers of interrupted applications. */
  def prune(paths: Seq[String]): Seq[IndexOutcome] = {
    val (all, unlisted) = list(paths, IndexJob.Prune)
    val (files, listed) = all.partition(_.isFile)
    val failed = unlisted ++ files.map(file =>
      IndexOutcome(
        file.root.toString,
        IndexJob.Prune,
        problem = Some("not a directory; name the directory that contains the file")))
    val current = listed.flatMap(_.data).map(store.path(_).toString).toSet
    val kept = store.directory match {
      case None => listed.flatMap(_.indexes)
      case Some(place) =>
        val prefixes = listed.flatMap(_.directories).map(IndexStore.prefix).toSet
        val root = new Path(place)
        val fileSystem = root.getFileSystem(conf)
        val all = if (fileSystem.exists(root)) fileSystem.listStatus(fileSystem.makeQualified(root)).toSeq else Nil
        all.filter(status =>
          IndexJob.isIncomplete(status.getPath.getName) || prefixes(
            IndexStore.shown(status.getPath.getName).take(IndexStore.PrefixLength)))
    }
    val directories = listed.flatMap(_.directories).map(directory => IndexStore.prefix(directory) -> directory).toMap
    val stale = kept.filterNot(status => current(status.getPath.toString)).distinct
    failed ++ ThreadUtils.parmap(stale, "millstream-prune", IndexJob.Removers)(prune(_, directories)).flatten
  }

  private def prune(index: FileStatus, directories: Map[String, Path]): Option[IndexOutcome] = {
    val path = index.getPath
    try {
      reasonToRemove(index, directories).map { reason =>
        if (!dryRun) path.getFileSystem(conf).delete(path, false)
        IndexOutcome(path.toString, if (dryRun) "would remove" else "remove", Some(reason))
      }
    } catch {
      case e: IOException => Some(IndexOutcome(path.toString, IndexJob.Prune, problem = Some(IndexJob.oneLine(e))))
    }
  }

  /** Requests the file's status again: it may have changed since it was listed. */
  private def reasonToRemove(index: FileStatus, directories: Map[String, Path]): Option[String] = {
    val name = index.getPath.getName
    if (IndexJob.isIncomplete(name)) {
      Option.when(System.currentTimeMillis - index.getModificationTime > DAYS.toMillis(1))("it was never completed")
    } else {
      val shown = IndexStore.shown(name)
      val (directory, own) = store.directory.fold((index.getPath.getParent.getParent, shown)) { _ =>
        (directories(shown.take(IndexStore.PrefixLength)), shown.drop(IndexStore.PrefixLength))
      }
      IndexStore.fileAndTag(own).flatMap { case (file, tag) =>
        val path = if (IndexStore.isShort(file)) named(directory, file) else Names.path(directory, file)
        try {
          val now = versionOf(path.getFileSystem(conf).getFileStatus(path))
          // On a local path, an index with an ETag may belong to an object store that keeps its data there.
          val isComparable = now.exists(_.isTagged) || IndexStore.isOfTime(tag)
          now.map(store.path(_).getName).filter(_ != name && isComparable).map { current =>
            if (!IndexStore.isHidden(name) && IndexStore.shown(current) == name)
              "it has the visible name that an earlier version gave it"
            else "the file has changed"
          }
        } catch {
          case _: FileNotFoundException if IndexJob.isCertainlyGone(path) => Some("the file is gone")
        }
      }
    }
  }

  /** The file in a directory for a shortened name; a missing file if there is none. */
  private def named(directory: Path, short: String): Path =
    directory.getFileSystem(conf).listStatus(directory).map(_.getPath).find(path =>
      IndexStore.isOf(short, path.getName))
      .getOrElse(Names.path(directory, short))

  private def isDivisible(name: String): Boolean = codecOf(name).exists(_.hasIndex)

  private def codecOf(name: String): Option[TextCodec] =
    codecs.of(name).flatMap(codec => Option(FileCodec.textCodec(codec)))

  /** None if it is not compressed. */
  private def versionOf(status: FileStatus): Option[CompressedFile] =
    codecOf(status.getPath.getName).map(CompressedFile.of(status, _))

  /** The trees at some paths, and the paths that could not be listed. */
  private def list(paths: Seq[String], action: String): (Seq[Tree], Seq[IndexOutcome]) = {
    val (failed, listed) = paths.partitionMap { given =>
      try {
        val path = new Path(given)
        val fileSystem = path.getFileSystem(conf)
        val root = fileSystem.getFileStatus(fileSystem.makeQualified(path))
        Right(if (root.isFile) fileTree(root) else directoryTree(fileSystem, root, action))
      } catch {
        case e @ (_: IOException | _: IllegalArgumentException) => Left(unlisted(given, action, e))
      }
    }
    val (trees, below) = listed.unzip
    (trees, failed ++ below.flatten)
  }

  private def unlisted(path: String, action: String, why: Throwable) =
    IndexOutcome(path, action, problem = Some(IndexJob.oneLine(why)))

  private def fileTree(file: FileStatus): (Tree, Seq[IndexOutcome]) = {
    val tree = new Tree(file.getPath, isFile = true, versionOf)
    tree.add(file)
    (tree, Nil)
  }

  /**
   * The tree of a directory, if that can be listed, and the directories below it that cannot.
   */
  private def directoryTree(fileSystem: FileSystem, root: FileStatus, action: String): (Tree, Seq[IndexOutcome]) =
    try {
      val tree = new Tree(root.getPath, isFile = false, versionOf)
      // A single listing, where the file system has a faster recursive one.
      val found = fileSystem.listFiles(root.getPath, true)
      while (found.hasNext) tree.add(found.next())
      (tree, Nil)
    } catch {
      // It ends at a directory that cannot be listed, without naming it.
      case _: IOException => walk(fileSystem, root, action)
    }

  private def walk(fileSystem: FileSystem, root: FileStatus, action: String): (Tree, Seq[IndexOutcome]) = {
    val tree = new Tree(root.getPath, isFile = false, versionOf)
    val failed = mutable.ArrayBuffer.empty[IndexOutcome]
    val left = mutable.Stack.empty[(Path, Set[Any])]
    def isEntered(name: String) = !DatasetNames.isHidden(name) || action == IndexJob.Prune && name == IndexStore.Beside

    /** A local directory may be a link to one of its parents. */
    def enter(directory: Path, above: Set[Any]): Unit = {
      val real = if (IndexStore.isLocal(directory)) IndexStore.local(directory).toRealPath() else directory
      if (!above.contains(real)) {
        val (directories, files) = fileSystem.listStatus(directory).partition(_.isDirectory)
        files.foreach(tree.add)
        left ++= directories.map(_.getPath).filter(path => isEntered(path.getName)).map(_ -> (above + real))
      }
    }
    enter(root.getPath, Set.empty)
    while (left.nonEmpty) {
      val (directory, above) = left.pop()
      try enter(directory, above)
      catch {
        case e: IOException => failed += unlisted(directory.toString, action, e)
      }
    }
    (tree, failed.toSeq)
  }
}

/** The files at and below a path. */
private final class Tree(val root: Path, val isFile: Boolean, versionOf: FileStatus => Option[CompressedFile]) {

  /** The compressed files. */
  val data = mutable.ArrayBuffer.empty[CompressedFile]
  private val holders = mutable.LinkedHashSet.empty[Path]

  /** Indexes next to files, including incomplete ones. */
  val indexes = mutable.ArrayBuffer.empty[FileStatus]
  private val below = if (root.isRoot) root.toString.length else root.toString.length + 1

  def add(status: FileStatus): Unit = {
    val names = if (isFile) Array.empty[String] else status.getPath.toString.drop(below).split('/')
    if (!names.exists(DatasetNames.isHidden)) {
      holders += status.getPath.getParent
      data ++= versionOf(status)
    } else if (names.length > 1 && names(names.length - 2) == IndexStore.Beside && !names.dropRight(2).exists(
        DatasetNames.isHidden)) indexes += status
  }

  def directories: Seq[Path] = (holders ++ Option.unless(isFile)(root)).toSeq
}

object IndexJob {
  private val Index = "index"
  private val Prune = "prune"

  /** The file is not splittable. */
  val Skip = "skip"
  private val WhyUndivided =
    "it cannot be split, because it is a single frame or has a frame with more than 64 MiB of text; a single task reads it (see millstream recompress)"
  private val Removers = 16
  private val Incomplete = "\\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}".r

  def isIncomplete(name: String): Boolean = Incomplete.matches(name)

  /** Hadoop treats a local file as missing if the user may not enter its directory or, for a link, its target's. */
  private def isCertainlyGone(path: Path): Boolean =
    !IndexStore.isLocal(path) || Files.notExists(IndexStore.local(path))

  private def one(
      file: CompressedFile,
      store: IndexStore,
      dryRun: Boolean,
      conf: Configuration,
      task: TaskContext): IndexOutcome = {
    val path = file.path.toString
    def failed(why: String) = IndexOutcome(path, Index, problem = Some(why))
    store.load(file, conf).map(index => IndexOutcome(path, "keep index", numbers = numbers(index))).getOrElse {
      if (dryRun) IndexOutcome(path, "would make index")
      else CompressedFiles.makeOne(file, store, conf, task) match {
        case CompressedFiles.Made(index, None) => IndexOutcome(path, "make index", numbers = numbers(index))
        case CompressedFiles.Made(_, Some(why)) =>
          failed(
            s"the index cannot be kept: $why; choose a directory for indexes with --directory and with ${IndexSettings.Directory.key}")
        case CompressedFiles.Undivided => IndexOutcome(path, Skip, Some(WhyUndivided))
        case CompressedFiles.Unreadable(why) => failed(why)
      }
    }
  }

  private def numbers(bytes: Array[Byte]): Seq[(String, Long)] =
    Using.resource(NativeIndex.of(bytes))(index =>
      Seq("bytes" -> index.size, "decoded_bytes" -> index.length, "index_bytes" -> bytes.length.toLong))

  private def oneLine(e: Throwable): String = e match {
    case _: FileNotFoundException => "there is no such file or directory"
    case _ => s"${e.getClass.getSimpleName}: ${e.getMessage}".linesIterator.next()
  }
}
