package io.millstream.spark.compact

import java.io.IOException
import java.net.URI
import java.nio.file.{Files, Path, Paths}
import java.util.UUID

import scala.jdk.CollectionConverters._

import io.millstream.hadoop.MillstreamLocalFileSystem
import io.millstream.hadoop.compact.NativeCompaction
import io.millstream.spark.console.Failures
import org.apache.hadoop.fs.FileSystem
import org.slf4j.LoggerFactory

import org.apache.spark.SparkException
import org.apache.spark.sql.SparkSession

/**
 * Merges small files into few, directory by directory.
 *
 * {{{
 * listing (SourceTree) ─► CompactPlanner: outputs ─► LocalTasks: Spark writes them to a hidden staging directory
 *                                               │        └─► NativeCompaction: commits, then moves them into place
 *                                               └──► StagedTasks, if S3 or HDFS is concerned (CompactRemote): files of a direct write
 * }}}
 */
private[spark] object Compaction {
  val Log = LoggerFactory.getLogger("io.millstream.spark.Compact")
  val StagingName = ".millstream-compact"
  private val MaxName = 255

  /** Threads that move outputs into place. */
  private val ApplyThreads = 16

  /**
   * @param tell receives warnings before the work starts: files that a new destination will lack or contain unmerged,
   *     and headers that would become lines
   */
  def run(spark: SparkSession, given: CompactOptions, tell: String => Unit = Log.warn): CompactSummary = {
    val start = System.nanoTime()
    val options = CompactTables.resolved(spark, given)
    val summary =
      if (CompactRemote.concerns(options)) CompactRemote.run(spark, options, tell) else runLocally(spark, options, tell)
    val timed = summary.copy(milliseconds = (System.nanoTime() - start) / 1000000)
    Log.info(s"Millstream compacted ${timed.source}: ${timed.text}")
    timed
  }

  private def runLocally(spark: SparkSession, options: CompactOptions, tell: String => Unit): CompactSummary = {
    val source = realDirectory(options.source)
    val target = options.destination.fold(source)(destination(_, source, options.dryRun))
    try {
      options.action match {
        case CompactAction.Merge if options.dryRun => look(spark, options, source, target, tell)
        case action =>
          try action match {
              case CompactAction.Merge => compact(spark, options, source, target, tell)
              case CompactAction.Undo =>
                afterRecovery(spark, options, target)(CompactUndo.undo(
                  options,
                  target,
                  _,
                  opening(_, target),
                  checkEarlier(spark, options, target, "undone")))
              case CompactAction.Purge =>
                afterRecovery(spark, options, target)(CompactUndo.purge(options, target, _, opening(_, target)))
            }
          finally forgetListings(spark, target)
      }
    } catch {
      case e: IOException => throw new CompactFailure(s"${e.getMessage}; run the same command again once that is fixed")
      case e: SparkException =>
        throw new CompactFailure(s"Spark could not run the job, and $target is unchanged: ${Failures.oneLine(e)}")
    }
  }

  /** Invalidates Spark's and Hadoop's cached information about the tree. */
  private def forgetListings(spark: SparkSession, target: Path): Unit = {
    FileSystem.get(URI.create("file:///"), spark.sparkContext.hadoopConfiguration) match {
      case fileSystem: MillstreamLocalFileSystem => fileSystem.treeChanged()
      case _ =>
    }
    spark.catalog.refreshByPath(s"file://$target")
    // Relations of tables also have listings, and which tables have files here is unknown.
    spark.sessionState.catalog.invalidateAllCachedTables()
  }

  private def planner(spark: SparkSession, options: CompactOptions, source: Path): CompactPlanner = {
    val conf = spark.sparkContext.hadoopConfiguration
    new CompactPlanner(options, tree(spark, options, source), conf, UUID.randomUUID().toString.take(8))
  }

  private def tree(spark: SparkSession, options: CompactOptions, source: Path): SourceTree =
    new LocalTree(source, local(options.source).normalize, spark.sparkContext.hadoopConfiguration)

  /** Undoes or removes earlier compactions of a tree, once they are finished. */
  private def afterRecovery(
      spark: SparkSession,
      options: CompactOptions,
      target: Path)(action: Seq[Path] => CompactSummary): CompactSummary = {
    val directories = stagingDirectories(options, target)
    if (options.dryRun) refuseUnfinished(directories) else recover(spark, options, target)
    action(directories.filter(directory => Files.isWritable(directory.getParent)))
  }

  /** A dry run cannot tell what can be undone or removed before the earlier compaction is complete. */
  private def refuseUnfinished(directories: Seq[Path]): Unit =
    directories.find(directory => NativeCompaction.hasJournal(directory.toString)).foreach { directory =>
      throw new CompactFailure(s"the earlier compaction with the staging directory $directory was stopped while it replaced files; without --dry-run, " +
        "this command finishes it first")
    }

  /** Refuses to change the results of an earlier in-place compaction, unless the tree still consists of plain files. */
  private def checkEarlier(
      spark: SparkSession,
      options: CompactOptions,
      target: Path,
      whatIsNot: String)(directory: Path): Unit =
    CompactTables.checkEarlier(tree(spark, options, target), directory, whatIsNot)

  /** Predicts the result from names, sizes, beginnings of files, and schemas. */
  private def look(
      spark: SparkSession,
      options: CompactOptions,
      source: Path,
      target: Path,
      tell: String => Unit): CompactSummary = {
    val tasks = new CompactTasks(
      spark,
      Site(options.header, options.codec),
      spark.sparkContext.hadoopConfiguration,
      s"Millstream compact --dry-run $source")
    val planned = planner(spark, options, source).plan()
    CompactResult.warnings(options, planned, spark.sparkContext.hadoopConfiguration).foreach(tell)
    val (plan, made) = CompactResult.withCopies(options, planned, tasks.check)
    val obstacles = if (options.inPlace) CompactInPlace.obstacles(source, plan.outputs) else Map.empty[Int, String]
    val wouldBeMade = made.map(one => obstacles.get(one.output).fold(one)(reason => Made(one.output, Left(reason), 0)))
    result(options, source, target, plan, wouldBeMade, None, 0)
  }

  private def compact(
      spark: SparkSession,
      options: CompactOptions,
      source: Path,
      target: Path,
      tell: String => Unit): CompactSummary = {
    val recovered = recover(spark, options, target)
    if (recovered.nonEmpty && !options.inPlace) {
      val plan = CompactPlan(0, 0, 0, Vector.empty, 0, recovered.flatMap(_.left))
      return result(options, source, target, plan, Nil, None, recovered.map(_.outputs).sum)
    }
    val directory = usableDirectory(stagingDirectories(options, target))
    val staging = opening(directory, target)
    var finished = false
    try {
      if (!options.inPlace && holdsOthers(target)) throw notEmpty(target)
      staging.clear()
      staging.purgeExpired(CompactUndo.nowSeconds)
      val planned = planner(spark, options, source).plan()
      CompactResult.warnings(options, planned, spark.sparkContext.hadoopConfiguration).foreach(tell)
      if (!options.inPlace) CompactResult.foretell(planned, source.toString, target.toString).foreach(tell)
      val out = directory.resolve(NativeCompaction.OUT)
      val site = Site(options.header, options.codec)
      val tasks =
        new LocalTasks(spark, site, out.toString, spark.sparkContext.hadoopConfiguration, s"Millstream compact $source")
      val (plan, made) = CompactResult.withCopies(options, planned, tasks.make)
      if (!options.inPlace) CompactLeft.write(out, plan.left ++ CompactResult.failures(source.toString, plan, made))
      // The tree may have become a table meanwhile, or another compaction may have moved files while they were listed.
      CompactTables.check(tree(spark, options, source), options)
      val applied = put(staging, options, target, plan, made)
      staging.remove()
      finished = true
      result(options, source, target, plan, made, Some(applied), recovered.map(_.outputs).sum)
    } finally {
      if (!finished) abandon(staging)
    }
  }

  /** Removes the staging directory, unless it is committed: then the next compaction finishes it. */
  private def abandon(staging: NativeCompaction): Unit =
    try {
      if (staging.isCommitted) staging.close() else staging.remove()
    } catch {
      case e: IOException => Log.warn(s"A staging directory is left for the next compaction to remove: ${e.getMessage}")
    }

  private def put(
      staging: NativeCompaction,
      options: CompactOptions,
      target: Path,
      plan: CompactPlan,
      made: Seq[Made[String]]): NativeCompaction.Applied = {
    val root = target.toString
    val journal = if (options.inPlace) NativeCompaction.Journal.inPlace(root, CompactUndo.keepUntil(options))
    else NativeCompaction.Journal.ofNewTree(root)
    val staged = made.flatMap(one => one.staged.toOption.map(plan.outputs(one.output) -> _))
      .sortBy { case (output, _) => (output.directory, output.id) }
    staged.foreach { case (output, name) => journal.add(name, output.directory, output.name) }
    staging.commit(journal)
    finishing(staging, target)
  }

  private def finishing(staging: NativeCompaction, target: Path): NativeCompaction.Applied =
    try {
      staging.apply(ApplyThreads)
    } catch {
      case e: IOException =>
        throw new CompactFailure(s"${e.getMessage}; no line is lost, but $target is partly old and partly new: " +
          "run the same command again once that is fixed, and it will finish the work")
    }

  private def result(
      options: CompactOptions,
      source: Path,
      target: Path,
      plan: CompactPlan,
      made: Seq[Made[_]],
      applied: Option[NativeCompaction.Applied],
      recovered: Long): CompactSummary = {
    val summary = CompactResult.of(options, source.toString, target.toString, plan, made, recovered)
    applied.fold(summary) { applied =>
      val left = applied.left.asScala.toSeq
      summary.copy(
        outputs = applied.outputs,
        merged = summary.merged - CompactSummary.filesOf(left),
        left = summary.left ++ left,
        keepSeconds = if (applied.outputs > 0) summary.keepSeconds else 0)
    }
  }

  def local(path: String): Path =
    if (path.startsWith("file:")) Paths.get(new org.apache.hadoop.fs.Path(path).toUri.getPath)
    else Paths.get(path).toAbsolutePath

  def realDirectory(path: String): Path = {
    val given = local(path)
    if (!Files.exists(given)) throw new CompactFailure(s"$given: there is no such directory")
    if (!Files.isDirectory(given)) throw new CompactFailure(s"$given: not a directory")
    given.toRealPath()
  }

  private def destination(path: String, source: Path, dryRun: Boolean): Path = {
    val given = local(path).normalize
    // Its nearest existing ancestor determines its real path.
    val existing = Iterator.iterate(given)(_.getParent).dropWhile(p => p != null && !Files.exists(p)).next()
    val real = existing.toRealPath().resolve(existing.relativize(given)).normalize
    if (real == source)
      throw new CompactFailure(s"$given: is the source itself; use --in-place (in_place=True) to replace its files")
    if (real.startsWith(source))
      throw new CompactFailure(s"$given: is inside the source $source; choose a destination outside it")
    if (Files.exists(real)) {
      if (!Files.isDirectory(real)) throw new CompactFailure(s"$given: exists and is not a directory")
      val listed = Files.newDirectoryStream(real)
      val isEmpty =
        try !listed.iterator.hasNext
        finally listed.close()
      if (!isEmpty && !Files.exists(real.resolve(StagingName))) throw notEmpty(real)
    } else if (dryRun) {
      if (!Files.isWritable(existing))
        throw new CompactFailure(s"$given: cannot be created: no permission to write to $existing")
    } else {
      try Files.createDirectories(real)
      catch {
        case e: IOException => throw new CompactFailure(s"$given: cannot be created: ${Failures.reason(e)}")
      }
    }
    real
  }

  private def holdsOthers(target: Path): Boolean = {
    val listed = Files.newDirectoryStream(target)
    try listed.asScala.exists(_.getFileName.toString != StagingName)
    finally listed.close()
  }

  def notEmpty(target: Any) =
    new CompactFailure(s"$target: exists and is not empty; choose another destination, or empty it")

  /** Possible staging directories: inside the tree or, for a compaction in place, also next to it. */
  private def stagingDirectories(options: CompactOptions, target: Path): Seq[Path] = {
    val inside = target.resolve(StagingName)
    val sibling =
      Option(target.getParent).filter(_ => options.inPlace).map(_.resolve(s".${target.getFileName}$StagingName"))
    sibling.filter(_.getFileName.toString.getBytes.length <= MaxName).toSeq :+ inside
  }

  private def usableDirectory(directories: Seq[Path]): Path = directories match {
    case Seq(sibling, inside) =>
      val (parent, root) = (sibling.getParent, inside.getParent)
      if (Files.isWritable(parent) && Files.getFileStore(parent) == Files.getFileStore(root)) sibling else inside
    case _ => directories.last
  }

  private def opening(directory: Path, target: Path): NativeCompaction =
    try {
      new NativeCompaction(directory.toString)
    } catch {
      case e: IOException => throw new CompactFailure(s"$target: cannot open the staging directory: ${e.getMessage}")
    }

  /** Result of finishing an earlier compaction: its outputs and the files that it left. */
  private final case class Recovered(outputs: Long, left: Seq[NativeCompaction.Left])

  /** Finishes what an earlier compaction committed. */
  private def recover(spark: SparkSession, options: CompactOptions, target: Path): Seq[Recovered] =
    stagingDirectories(options, target).filter(Files.isDirectory(_)).flatMap { directory =>
      val staging = opening(directory, target)
      try {
        val done = Option.when(staging.isCommitted) {
          if (options.inPlace) checkEarlier(spark, options, target, "finished")(directory)
          val left = CompactLeft.read(directory.resolve(NativeCompaction.OUT))
          val applied = finishing(staging, target)
          Recovered(applied.outputs, left ++ applied.left.asScala)
        }
        staging.remove()
        done
      } finally {
        staging.close()
      }
    }
}
