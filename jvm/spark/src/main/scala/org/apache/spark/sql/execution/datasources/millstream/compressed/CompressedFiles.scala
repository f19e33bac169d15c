package org.apache.spark.sql.execution.datasources.millstream.compressed

import java.io.IOException
import java.util.{Collections, LinkedHashMap, Map => JavaMap, Set => JavaSet}

import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag
import scala.util.control.NonFatal

import io.millstream.hadoop.natives.NativeLibrary
import io.millstream.hadoop.reading.{FileRanges, ListedFileSystem, NativeIndex}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.{SparkContext, SparkException, TaskContext}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.datasources.millstream.settings.IndexSettings
import org.apache.spark.util.{SerializableConfiguration, ThreadUtils}

/**
 * The indexes of the large compressed files that are to be read.
 *
 * The driver reads existing indexes, and tasks get the parts that they need from it. A Spark job builds missing
 * indexes, with a task for each file that decodes the file once.
 */
private[millstream] object CompressedFiles extends Logging {

  /** Decoded bytes for each compressed byte, as long as nothing else is known: the ratio of common lines. */
  val Ratio = 8L

  private val Loaders = 16

  /** Files that the log names for one reason. */
  private val MostNamed = 10

  /** Bytes of indexes that the driver keeps: enough for about 100 GB of text. */
  private val MostBytes = 64L << 20
  private val Cancelled = "SPARK_JOB_CANCELLED"

  private val MostRemembered = 10_000

  private val Indivisible =
    "it has no point at which decoding could start; rewrite it with `millstream recompress`, or as several files"

  /** Files known not to be splittable. */
  private val notSplittable = rememberedFiles()

  /** Files whose indexes the tasks of counting queries were to build. */
  private val counted = rememberedFiles()

  /** Files whose indexes are in the store, but cannot be read from there. */
  private val unreadable = rememberedFiles()

  private def rememberedFiles(): JavaSet[CompressedFile] = Collections.synchronizedSet(Collections.newSetFromMap(
    new LinkedHashMap[CompressedFile, java.lang.Boolean](16, 0.75f, true) {
      override def removeEldestEntry(eldest: JavaMap.Entry[CompressedFile, java.lang.Boolean]): Boolean =
        size > MostRemembered
    }))

  private val recent: JavaMap[(IndexStore, CompressedFile), Recent] =
    Collections.synchronizedMap(new RecentIndexes(MostBytes))

  /**
   * The bytes of the indexes of files, except files that are not splittable or not readable. A Spark job builds missing
   * ones.
   *
   * @param onlyCounts whether the query only counts lines. Then the Spark job leaves a file to the task that reads it,
   *     which builds the index meanwhile. If a later query finds no index, the task could not keep it: the driver gets
   *     it from the Spark job, or learns that the file is not splittable. The same holds for an index that cannot be read
   *     from the store.
   */
  def indexes(
      files: Seq[CompressedFile],
      settings: IndexSettings,
      conf: Configuration,
      context: SparkContext,
      onlyCounts: Boolean): Map[CompressedFile, Array[Byte]] =
    if (settings.isEnabled) {
      val store = IndexStore(settings.directory)
      val (divisible, others) = files.partition(mayHaveIndex)
      report(others.map(_.path), Indivisible)
      val found = load(divisible, store, conf)
      counted.removeAll(found.keySet.asJava)
      val missing = divisible.filterNot(found.contains)
      val made = make(if (onlyCounts) missing.filterNot(counted.add) else missing, store, conf, context)
      val all = found ++ made
      all.foreach { case (file, index) => recent.put((store, file), index) }
      all.map { case (file, index) => file -> index.bytes }
    } else {
      withoutIndexes(files, s"${IndexSettings.Enabled.key} is false")
    }

  /** Returns no indexes, and logs why. */
  def withoutIndexes(files: Seq[CompressedFile], why: String): Map[CompressedFile, Array[Byte]] = {
    report(files.map(_.path), why)
    Map.empty
  }

  /**
   * The current versions of files, which may have been listed long ago: Spark's readers return a file's contents at the
   * time of reading.
   */
  def current(files: Seq[CompressedFile], conf: Configuration): Seq[CompressedFile] = {
    def one(file: CompressedFile) =
      try {
        val status = file.path.getFileSystem(conf).getFileStatus(file.path)
        val now = CompressedFile.of(status, file.codec)
        // An object store reports the time of the same version less exactly here than in a listing.
        if (file.isTagged && now.tag == file.tag) file else now.copy(path = file.path)
      } catch {
        // Its reader will report it.
        case _: IOException => file
      }
    if (files.length < 2) files.map(one) else ThreadUtils.parmap(files, "millstream-versions", Loaders)(one)
  }

  /** Whether a file has an index or may get one, as far as known. */
  def mayHaveIndex(file: CompressedFile): Boolean = file.codec.hasIndex && !notSplittable.contains(file)

  private def report(files: Seq[Path], why: String): Unit = {
    files.take(MostNamed).foreach(file => logInfo(s"One task reads all of $file: $why"))
    if (files.length > MostNamed) logInfo(s"The same applies to ${files.length - MostNamed} more files")
  }

  /** Keeps an index that a task has made. If that fails, the task's rows are correct anyway. */
  def save(file: CompressedFile, index: Array[Byte], store: IndexStore, conf: Configuration): Unit =
    keep(file, index, store, conf).report(file)

  /** Whether a path has a version other than the planned one. Reads by ETag have failed in that case. */
  private def hasChanged(file: CompressedFile, conf: Configuration): Boolean = !file.isTagged && {
    val now = CompressedFile.of(file.path.getFileSystem(conf).getFileStatus(file.path), file.codec)
    now.tag != file.tag
  }

  /** @param made the digests of indexes that have just been built */
  private def load(
      files: Seq[CompressedFile],
      store: IndexStore,
      conf: Configuration,
      made: Map[CompressedFile, String] = Map.empty)
      : Map[CompressedFile, Recent] = {
    // A removed index, perhaps removed because it is another file's, is not used again. ETags distinguish files, so no
    // request is needed with them.
    def isRemoved(file: CompressedFile) =
      Option(recent.get((store, file))).exists(_.isKept) && !file.isTagged && !store.contains(file, conf)
    def one(file: CompressedFile) = {
      if (isRemoved(file)) recent.remove((store, file))
      Option(recent.get((store, file))).orElse(store.load(file, conf, made.get(file)).map(Recent(
        _,
        isKept = true))).map(file -> _)
    }
    if (files.length < 2) files.flatMap(one).toMap
    else ThreadUtils.parmap(files, "millstream-indexes", Loaders)(one).flatten.toMap
  }

  private def make(
      files: Seq[CompressedFile],
      store: IndexStore,
      conf: Configuration,
      context: SparkContext): Map[CompressedFile, Recent] =
    if (files.isEmpty) {
      Map.empty
    } else {
      // Otherwise each query would build them again.
      val returned = files.filter(unreadable.contains).toSet
      val made =
        try inTasks(context, files, conf) { (file, conf, task) =>
            if (returned(file)) makeOne(file, store, conf, task) else makeAndKeep(file, store, conf, task)
          }
        catch {
          case e: SparkException if e.getCondition != Cancelled =>
            logWarning("Not all indexes of compressed files could be made; one task reads each file without one", e)
            // The indexes just built are in the store.
            files.map(_ => Kept(None))
        }
      val results = files.zip(made)
      results.foreach { case (file, result) => result.report(file) }
      notSplittable.addAll(results.collect { case (file, Undivided) => file }.asJava)
      val digests = results.collect { case (file, Kept(Some(digest))) => file -> digest }.toMap
      val kept = load(results.collect { case (file, Kept(_)) => file }, store, conf, digests)
      // After a failed job, nobody knows which indexes are stored.
      unreadable.addAll(digests.keySet.filterNot(kept.contains).asJava)
      kept ++ results.collect { case (file, Made(index, _)) => file -> Recent(index, isKept = false) }
    }

  /** Runs a Spark job that builds indexes, with a task for each file. */
  def inTasks[T: ClassTag](context: SparkContext, files: Seq[CompressedFile], conf: Configuration)(
      one: (CompressedFile, Configuration, TaskContext) => T): Seq[T] = {
    val shared = context.broadcast(new SerializableConfiguration(conf))
    val description = s"Millstream: make the indexes of ${files.length} compressed files, such as ${files.head.path}"
    val task = (task: TaskContext, file: Iterator[CompressedFile]) => one(file.next(), shared.value.value, task)
    try describing(context, description)(context.runJob(context.parallelize(files, files.length), task).toSeq)
    finally shared.destroy()
  }

  /**
   * Like [[makeOne]], but does not return an index that is in the store: together they may be too large for the
   * driver.
   */
  private def makeAndKeep(file: CompressedFile, store: IndexStore, conf: Configuration, task: TaskContext): Result =
    makeOne(file, store, conf, task) match {
      case Made(index, None) => Kept(Some(IndexStore.digest(index)))
      case other => other
    }

  /** Builds the index of a file in a task, and stores it. */
  def makeOne(file: CompressedFile, store: IndexStore, conf: Configuration, task: TaskContext): Result = {
    val range = new FileRanges.Builder(file.path.getFileSystem(conf).getUri)
    range.addCompressed(
      file.path.toUri.getPath,
      0,
      file.size,
      file.version,
      file.codec,
      Array.emptyByteArray)
    val ranges = range.build()
    if (!NativeLibrary.isLoaded) Unreadable("Millstream's native library does not load in an executor (see its log)")
    else
      try {
        Option(NativeIndex.build(
          ranges,
          ListedFileSystem.files(ranges, conf),
          () => task.isInterrupted())).fold[Result](Undivided) { index =>
          val usable = Option(NativeIndex.of(index))
          usable.foreach(_.close())
          if (usable.isEmpty) Unreadable("its index would be one that no reader accepts")
          else keep(file, index, store, conf)
        }
      } catch {
        case e: IOException =>
          task.killTaskIfInterrupted()
          // The reader of the file fails in the same way, and knows whether it matters.
          Unreadable(e.toString)
      }
  }

  private def keep(file: CompressedFile, index: Array[Byte], store: IndexStore, conf: Configuration): Result =
    try {
      if (hasChanged(file, conf)) {
        Unreadable("it changed while it was being read")
      } else {
        store.save(file, index, conf)
        Made(index, None)
      }
    } catch {
      case NonFatal(e) => Made(index, Some(e.toString))
    }

  /** Runs Spark jobs with a separate description in Spark's UI. */
  private def describing[T](context: SparkContext, description: String)(body: => T): T = {
    val before = context.getLocalProperty(SparkContext.SPARK_JOB_DESCRIPTION)
    context.setJobDescription(description)
    try body
    finally context.setJobDescription(before)
  }

  sealed trait Result {
    def report(file: CompressedFile): Unit
  }

  /** @param failure why the index is not stored */
  final case class Made(index: Array[Byte], failure: Option[String]) extends Result {
    override def report(file: CompressedFile): Unit = failure.foreach { why =>
      logWarning(
        s"The index of ${file.path} is not kept, so the next application makes it again: $why; set ${IndexSettings.Directory.key} " +
          "to a writable directory")
    }
  }

  /** The index is in the store. */
  private final case class Kept(digest: Option[String]) extends Result {
    override def report(file: CompressedFile): Unit = ()
  }

  case object Undivided extends Result {
    override def report(file: CompressedFile): Unit = logWarning(s"One task reads all of ${file.path}: $Indivisible")
  }

  final case class Unreadable(failure: String) extends Result {
    override def report(file: CompressedFile): Unit = logWarning(s"No index of ${file.path} can be made: $failure")
  }

  /** @param isKept whether it was in the store */
  private final case class Recent(bytes: Array[Byte], isKept: Boolean)

  /** The indexes used last, up to this number of bytes. */
  private final class RecentIndexes(most: Long)
      extends LinkedHashMap[(IndexStore, CompressedFile), Recent](16, 0.75f, true) {
    override def removeEldestEntry(eldest: JavaMap.Entry[(IndexStore, CompressedFile), Recent]): Boolean = {
      var bytes = values.asScala.iterator.map(_.bytes.length.toLong).sum
      val oldest = entrySet.iterator
      while (bytes > most && size > 1) {
        bytes -= oldest.next().getValue.bytes.length
        oldest.remove()
      }
      false
    }
  }
}
