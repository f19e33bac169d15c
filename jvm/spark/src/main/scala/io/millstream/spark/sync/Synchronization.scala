package io.millstream.spark.sync

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.millstream.SyncSettings

import WorkingDirectory._

/**
 * One synchronization.
 *
 * {{{
 * Listings: both sides, by tasks ─► Planning: full outer join, Decision for each path ─► Phases: steps carried out, with barriers ─► summary
 *                └────────────────────────────┴── Parquet in a WorkingDirectory ──────────┴─► manifest
 * }}}
 *
 * The driver sees numbers, and the first of the problems.
 *
 * @param tell receives notices when they are found
 * @param show receives lines about what was changed, if they are wanted
 */
private[spark] final class Synchronization(spark: SparkSession, options: SyncOptions, tell: String => Unit, show: String => Unit) {
  import Synchronization._

  private val conf: Configuration = spark.sparkContext.hadoopConfiguration
  private val source = Tree.absolute(options.source, conf)
  private val destination = Tree.absolute(options.destination, conf)
  /** What the user has set for queries is no matter here. */
  private val session = spark.newSession()
  private val settings = SyncSettings.of(spark)
  private val site = Site.of(spark.sparkContext, source, destination, settings.threads, filter)
  private val describing = new Jobs(spark.sparkContext, s"Millstream sync $source to $destination")
  private val notices = Seq.newBuilder[String]
  private lazy val tops = Map(Source -> site.openSource(), Destination -> site.openDestination()).flatMap { case (side, tree) => tree.status("").map(side -> _) }

  private def filter: Option[FilterRules] = Option.when(options.filter.nonEmpty) {
    // Without a slash, the source itself is part of the transfer, and the root is above it.
    val roots = Seq(source, destination).map(new Path(_)).map(side => if (options.prefix.isEmpty) side else Option(side.getParent).getOrElse(side))
    val Seq(from, to) = roots.map(_.toUri.getPath)
    FilterRules(options.filter, options.delete, options.deleteExcluded, options.prefix, from, to)
  }

  private def notice(text: String): Unit = {
    notices += text
    tell(text)
  }

  def run(): SyncSummary = {
    val start = System.nanoTime()
    // The number of partitions follows from that of entries, and paths are not skewed.
    Seq("spark.millstream.write.enabled", "spark.sql.adaptive.enabled").foreach(session.conf.set(_, "false"))
    session.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism.toString)
    val lost = new LostAttempts
    spark.sparkContext.addSparkListener(lost)
    try {
      check()
      if (filter.exists(_.excludesAll)) return SyncSummary.of(source, destination, options, Census(Map.empty, 0))
      if (!options.dryRun && !tops.contains(Destination)) site.openDestination().makeDirectory("")
      val summary = checkpoint match {
        case Some(path) => carryOut(new WorkingDirectory(session, path, isKept = true), lost)
        case None => inTemporary(carryOut(_, lost))
      }
      summary.copy(notices = notices.result(), milliseconds = (System.nanoTime() - start) / 1000000)
    } finally {
      spark.sparkContext.removeSparkListener(lost)
      site.conf.destroy()
    }
  }

  /** Refuses what cannot be meant. */
  private def check(): Unit = {
    if (source == destination) throw new SyncFailure(s"$destination: is the source itself")
    if (isBelow(destination, source)) throw new SyncFailure(s"$destination: is inside the source $source; choose a destination outside it")
    if (isBelow(source, destination)) throw new SyncFailure(s"$source: is inside the destination $destination; choose a destination outside it")
    val found = tops.getOrElse(Source, throw new SyncFailure(s"$source: there is no such directory, so nothing was done"))
    if (!found.isDirectory) throw new SyncFailure(s"$source: not a directory; Spark synchronizes directories")
    tops.get(Destination).filter(!_.isDirectory).foreach(_ => throw new SyncFailure(s"$destination: exists and is not a directory"))
    checkpoint.foreach { path =>
      Seq(source, destination).filter(side => path.toString == side || isBelow(path.toString, side)).foreach { side =>
        throw new SyncFailure(s"$path: the checkpoint is inside $side; choose a directory outside it")
      }
    }
  }

  private lazy val checkpoint: Option[Path] = options.checkpoint.map(given => new Path(Tree.absolute(given, conf)))

  /** Runs with a working directory that does not stay: by default in the destination, because all executors can write to that. */
  private def inTemporary(run: WorkingDirectory => SyncSummary): SyncSummary = {
    val place = settings.directory.fold(existing(destination))(Tree.absolute(_, conf))
    val tree = site.open(place)
    val before = tree.status("")
    val work = new WorkingDirectory(session, Tree.below(new Path(place), site.prefix), isKept = false)
    try run(work) finally {
      work.remove()
      // The working directory has changed the time of the one that it was in.
      val wanted = if (place == destination && !options.dryRun) tops.get(Source).filter(_ => timesOfDirectories) else before
      if (tree.capabilities.amends) wanted.flatMap(_.mtime).foreach(mtime => tree.setAttributes("", Attributes(Some(mtime), None, None, None)))
    }
  }

  private def timesOfDirectories = options.times && !options.omitDirTimes

  /** The destination or, in a dry run that must not make it, the nearest directory above it. */
  private def existing(url: String): String =
    Iterator.iterate(new Path(url))(_.getParent).takeWhile(_ != null).map(_.toString).find(site.open(_).status("").exists(_.isDirectory)).getOrElse(url)

  private def carryOut(work: WorkingDirectory, lost: LostAttempts): SyncSummary = {
    val listings = new Listings(session, work, site, describing)
    val planning = new Planning(session, work, site, listings, describing)
    val resumes = work.isKept && !work.has(Finished) && work.has(Planning.Ready) && work.read(Request).contains(options.identity)
    if (resumes) notice(s"resuming the run whose plan is in ${work.path}")
    else {
      work.begin()
      work.write(Request, options.identity)
      listings.make(tops)
    }
    val Seq(ofSource, ofDestination) = Seq(Source, Destination).map(listings.census)
    val rules = rulesFor(ofSource, ofDestination, work)
    if (!resumes) planning.make(rules, ofSource.all + ofDestination.all)
    val phases = new Phases(session, work, site, options, rules, listings, planning, resumes, describing)
    phases.run(hasLitter = ofDestination.of(Kind.Litter) > 0, hasFailures = Seq(ofSource, ofDestination).exists(_.of(Kind.Failed) > 0))
    if (lost.exist && !options.dryRun) phases.sweepAttempts()
    val counting = new Counting(work)
    counting.notices.foreach(notice)
    if (options.names || options.items) counting.lines(options.prefix, options.items).foreach(show)
    if (phases.hasRefusedDeletions) notice(NothingDeleted)
    if (phases.undeleted > 0) notice(s"deletions stopped due to max-delete limit (${phases.undeleted} skipped)")
    if (work.isKept) work.complete(Finished)
    counting.summary(SyncSummary.of(source, destination, options, ofSource), phases.undeleted)
      .copy(manifest = Option.when(work.isKept)(work.path.toString))
  }

  private def rulesFor(ofSource: Census, ofDestination: Census, work: WorkingDirectory): Rules = {
    val (from, to) = (site.openSource().capabilities, site.openDestination().capabilities)
    val isFailed = Seq(ofSource, ofDestination).exists(_.of(Kind.Failed) > 0)
    val prevents = isFailed && !options.ignoreErrors
    val listsNothing = Seq(Kind.File, Kind.Link, Kind.Other).forall(ofSource.of(_) == 0) && ofSource.of(Kind.Directory) <= 1
    val isEmpty = listsNothing && (options.filter.isEmpty || isFailed || holdsNothing)
    if (options.delete && prevents) notice("nothing is deleted, because not everything could be listed")
    else if (options.delete && isEmpty) notice(s"nothing is deleted, because the source is empty: $source")
    val hasOwners = from.hasOwners && to.hasOwners && (options.owner || options.group) && mayGiveAway(work)
    Rules(
      Preserved(
        modes = if (options.perms) from.modes & to.modes else 0,
        owner = options.owner && hasOwners,
        group = options.group && hasOwners,
        times = options.times && to.hasTimes,
        directoryTimes = timesOfDirectories && to.amends,
        linkTimes = options.times && !options.omitLinkTimes && to.hasTimes,
        links = options.links,
        amends = to.amends),
      checksum = options.checksum,
      sizeOnly = options.sizeOnly,
      ignoreTimes = options.ignoreTimes,
      update = options.update,
      existing = options.existing,
      ignoreExisting = options.ignoreExisting,
      delete = options.delete && !prevents && !isEmpty,
      examinesDeletions = options.filter.nonEmpty || isFailed,
      modifyWindow = options.modifyWindow)
  }

  /** Whether the source is empty, also of what is excluded. */
  private def holdsNothing: Boolean = {
    var isEmpty = true
    site.open(source).list("")(_ => isEmpty = false)
    isEmpty
  }

  /** Whether owners can be set. That is found out in the working directory, if it is in the same file system. */
  private def mayGiveAway(work: WorkingDirectory): Boolean = {
    val isSameFileSystem = work.path.toUri.getScheme == new Path(destination).toUri.getScheme && work.path.toUri.getAuthority == new Path(destination).toUri.getAuthority
    if (isSameFileSystem) site.open(work.path.toString).mayGiveAway("")
    else !options.dryRun && site.openDestination().mayGiveAway("")
  }
}

private object Synchronization {
  private val NothingDeleted = "nothing is deleted, because something failed before; --ignore-errors (ignore_errors=True) deletes all the same"

  private def isBelow(path: String, directory: String): Boolean = path.startsWith(if (directory.endsWith("/")) directory else s"$directory/")
}
