package io.millstream.spark.sync

import java.nio.file.{Files, Path => LocalPath}
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.AccessControlException

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.datasources.millstream.settings.SyncSettings

import WorkingDirectory._

/**
 * One synchronization.
 *
 * {{{
 * Listings: both sides, by tasks ─► Planning: full outer join, Decision for each path ─► Phases: steps carried out, with barriers ─► summary
 *                └────────────────────────────┴── Parquet in a WorkingDirectory ──────────┴─► manifest
 * }}}
 *
 * The driver receives counts and the first problems.
 *
 * @param tell receives notices as they arise
 * @param show receives lines about changes, if requested
 */
private[spark] final class Synchronization(
    spark: SparkSession,
    options: SyncOptions,
    tell: String => Unit,
    show: String => Unit) {
  import Synchronization._

  private val conf: Configuration = spark.sparkContext.hadoopConfiguration
  private val source = Location.absolute(options.source, conf)
  private val destination = Location.absolute(options.destination, conf)

  /** The user's settings for queries do not apply here. */
  private val session = spark.newSession()
  private val settings = SyncSettings.of(spark)
  private val site =
    Site.of(
      spark.sparkContext,
      source,
      destination,
      settings.threads,
      isMarked = !options.dryRun,
      filter,
      options.files,
      options.extras)
  private val describing = new Jobs(spark.sparkContext, s"Millstream sync $source to $destination")
  private val notices = Seq.newBuilder[String]
  private lazy val tops =
    Map(Source -> site.openSource(), Destination -> site.openDestination()).flatMap { case (side, tree) =>
      tree.status("").map(side -> _)
    }

  private def filter: Option[FilterRules] = Option.when(options.filter.nonEmpty) {
    // Without a slash, the source itself is part of the transfer, and the root is above it.
    val roots = Seq(source, destination).map(new Path(_)).map(side =>
      if (options.prefix.isEmpty) side else Option(side.getParent).getOrElse(side))
    val Seq(from, to) = roots.map(_.toUri.getPath)
    FilterRules(
      options.filter,
      options.delete,
      options.maxDelete.nonEmpty,
      options.deleteExcluded,
      options.prefix,
      from,
      to)
  }

  private def notice(text: String): Unit = {
    notices += text
    tell(text)
  }

  def run(): SyncSummary = {
    val start = System.nanoTime()
    // The number of partitions follows from the number of entries, and paths are not skewed.
    Seq("spark.millstream.write.enabled", "spark.sql.adaptive.enabled").foreach(session.conf.set(_, "false"))
    // Otherwise Spark warns that it truncates the text of plans.
    session.conf.set("spark.sql.debug.maxToStringFields", "100")
    session.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism.toString)
    val lost = new LostAttempts
    spark.sparkContext.addSparkListener(lost)
    try {
      check()
      if (filter.exists(_.excludesAll)) return SyncSummary.of(source, destination, options, Census(Map.empty, 0))
      if (!options.dryRun && !tops.contains(Destination)) site.openDestination().makeDirectory("")
      val summary = marked {
        checkpoint match {
          case Some(path) => alone(path)(carryOut(new WorkingDirectory(session, path, isKept = true), lost))
          case None => inTemporary(carryOut(_, lost))
        }
      }
      summary.copy(notices = notices.result(), milliseconds = (System.nanoTime() - start) / 1000000)
    } finally {
      spark.sparkContext.removeSparkListener(lost)
      site.names.end()
      site.close()
    }
  }

  /** Keeps other runs of this process from using the same checkpoint at the same time. */
  private def alone[T](checkpoint: Path)(run: => T): T = {
    if (!InUse.add(checkpoint)) throw new SyncFailure(
      s"$checkpoint: another run of this process is using this checkpoint; choose another directory")
    try run
    finally InUse.remove(checkpoint)
  }

  /** Refuses combinations that make no sense. */
  private def check(): Unit = {
    val Seq(from, to) = Seq(source, destination).map(Location.of(_, conf))
    val Seq(one, other) = Seq(site.openSource(), site.openDestination()).map(_.whole.identity)
    if (from.isWithin(to) && to.isWithin(from) || one.nonEmpty && one == other)
      throw new SyncFailure(s"$destination: is the source itself")
    if (to.isWithin(from))
      throw new SyncFailure(s"$destination: is inside the source $source; choose a destination outside it")
    if (from.isWithin(to))
      throw new SyncFailure(s"$source: is inside the destination $destination; choose a destination outside it")
    def refuse(option: String, side: String) =
      throw new SyncFailure(
        s"--$option (${option.replace('-', '_')}=True): $side does not support it; omit the option")
    options.ofLocalTrees.foreach(option =>
      Seq(source, destination).filterNot(_.startsWith("file:")).foreach(refuse(option, _)))
    options.ofExtended.foreach { option =>
      val Seq(one, other) = Seq(site.openSource(), site.openDestination()).map(_.capabilities.extended)
      if (one.isEmpty) refuse(option, source)
      else if (other.isEmpty) refuse(option, destination)
      else if (one != other) {
        throw new SyncFailure(
          s"--$option ($option=True): $source and $destination support different kinds; omit the option")
      }
    }
    val found =
      tops.getOrElse(Source, throw new SyncFailure(s"$source: there is no such directory, so nothing was done"))
    if (!found.isDirectory) throw new SyncFailure(s"$source: not a directory; Spark synchronizes directories")
    tops.get(Destination).filter(!_.isDirectory).foreach(_ =>
      throw new SyncFailure(s"$destination: exists and is not a directory"))
    checkpoint.foreach { path =>
      val place = Location.of(path.toString, conf)
      Seq(source -> from, destination -> to).filter(side => place.isWithin(side._2)).foreach { case (side, _) =>
        throw new SyncFailure(s"$path: the checkpoint is inside $side; choose a directory outside it")
      }
    }
  }

  private lazy val checkpoint: Option[Path] = options.checkpoint.map(given => new Path(Location.absolute(given, conf)))

  /**
   * Runs with a temporary working directory: by default in the destination, to which all executors can write, or on
   * this machine if it runs all executors.
   */
  private def inTemporary(run: WorkingDirectory => SyncSummary): SyncSummary = {
    val given = settings.directory.map(Location.absolute(_, conf))
    given.filter(isInSource).foreach(place =>
      throw new SyncFailure(s"$place: spark.millstream.sync.dir is inside the source $source; choose another one"))
    val here = Option.when(spark.sparkContext.isLocal)(Location.absolute(
      System.getProperty("java.io.tmpdir"),
      new Configuration(false))).filterNot(isInSource)
    here.filter(_ => given.isEmpty).foreach(prepare)
    val place = given.orElse(here).getOrElse(existing(destination))
    val tree = site.open(place)
    val before = tree.status("")
    val work = new WorkingDirectory(session, Tree.below(new Path(place), site.names.working), isKept = false)
    try run(work)
    finally {
      work.remove()
      if (place == destination && !options.dryRun) restoreTime(tree, wanted)
      // The time of the directory for temporary files does not matter.
      else if (!here.contains(place)) restoreTime(tree, before)
    }
  }

  /**
   * Marks the destination with a directory of the working directory's name while tasks run: some machines may lack the
   * mount, and a store may have several names, which only the mark shows to be the same.
   */
  private def marked[T](run: => T): T =
    if (!site.isMarked) run
    else {
      val tree = site.openDestination()
      tree.makeDirectory(site.names.working)
      try {
        requireNoMark()
        run
      } finally {
        try {
          tree.deleteTree(site.names.working)
          restoreTime(tree, wanted)
        } catch {
          // A failure here does not affect the result.
          case e: java.io.IOException =>
            notice(s"${site.names.working} could not be removed from $destination: ${Tree.oneLine(e)}")
        }
      }
    }

  /** Refuses a source that contains the mark, or is below it. */
  private def requireNoMark(): Unit = {
    def isMarked(place: Path) =
      try site.open(place.toString).status(site.names.working).nonEmpty
      catch {
        // A directory that may not be listed is not the destination, in which the mark was created.
        case _: java.nio.file.AccessDeniedException | _: AccessControlException => false
      }
    if (isMarked(new Path(source)))
      throw new SyncFailure(s"$destination: is the source $source itself, under another name")
    if (Iterator.iterate(new Path(source).getParent)(_.getParent).takeWhile(_ != null).exists(isMarked)) {
      throw new SyncFailure(
        s"$source: is inside the destination $destination, which also has another name; choose a destination outside it")
    }
  }

  /** Whether deletions were requested that make no sense, which is an error. */
  private var isRefused = false

  /** Whether changes may have been made. */
  private var isChanged = true

  /**
   * The model for the root: its previous state if a list or the options give it no time and nothing is done.
   */
  private def wanted: Option[Entry] =
    if (options.files.forall(_.includesRoot) && timesOfDirectories) tops.get(Source)
    else tops.get(Destination).filter(_ => !isChanged)

  /** Restores the time of a tree's root, which temporary files in it have changed. */
  private def restoreTime(tree: Tree, like: Option[Entry]): Unit =
    try {
      if (tree.capabilities.amends)
        like.flatMap(_.mtime).foreach(mtime => tree.setAttributes("", Attributes(Some(mtime), None, None, None)))
    } catch {
      // A user who may write to another user's directory cannot set its time.
      case _: java.nio.file.AccessDeniedException | _: AccessControlException =>
      case e: java.io.IOException => notice(s"the time of a directory could not be set: ${Tree.oneLine(e)}")
    }

  private def timesOfDirectories = options.times && !options.omitDirTimes

  /** The run's own files must not be copied. */
  private def isInSource(url: String): Boolean = Location.of(url, conf).isWithin(Location.of(source, conf))

  /**
   * Creates a private working directory among this machine's temporary files, and removes those of killed runs.
   */
  private def prepare(place: String): Unit = {
    val tree = site.open(place)
    def isLeft(entry: Entry) = entry.isDirectory && TemporaryNames.makerOf(entry.path).exists(_.hasEnded)
    try tree.list("")(entry => if (isLeft(entry)) tree.deleteTree(entry.path))
    catch {
      // Other users' directories are left to them.
      case _: java.io.IOException =>
    }
    // Other users may create files here, too, so it has to be new.
    Files.createDirectory(LocalPath.of(new Path(place).toUri.getPath, site.names.working), Private)
  }

  /** The destination or, in a dry run that must not create it, its nearest existing ancestor. */
  private def existing(url: String): String =
    Iterator.iterate(new Path(url))(_.getParent).takeWhile(_ != null).map(_.toString).find(site.open(
      _).status("").exists(_.isDirectory)).getOrElse(url)

  private def carryOut(work: WorkingDirectory, lost: LostAttempts): SyncSummary = {
    val listings = new Listings(session, work, site, options.files, options.delete, describing)
    val planning = new Planning(session, work, site, listings, describing)
    val interrupted = Option.when(work.isKept)(work.read(TemporaryNamesOfRun)).flatten.flatMap(TemporaryNames.of)
    interrupted.filter(names =>
      names.maker.isRunning && names.maker != site.names.maker && !work.has(Finished)).foreach { names =>
      throw new SyncFailure(s"${work.path}: process ${names.maker.process} is using this checkpoint; wait for it, or choose another directory")
    }
    val resumes =
      work.isKept && !work.has(Finished) && work.has(Planning.Ready) && work.read(Request).contains(options.identity)
    if (resumes) notice(s"resuming the run whose plan is in ${work.path}")
    else {
      work.begin()
      work.write(Request, options.identity)
    }
    work.write(TemporaryNamesOfRun, site.names.toString)
    if (!resumes) listings.make(tops)
    listings.overlap.foreach(found =>
      throw new SyncFailure(s"$found; choose directories that do not contain each other"))
    val Seq(ofSource, ofDestination) = Seq(Source, Destination).map(listings.census)
    val rules = rulesFor(ofSource, ofDestination, work)
    if (!resumes) planning.make(rules, ofSource.all + ofDestination.all)
    val phases = new Phases(
      session,
      work,
      site,
      options,
      rules,
      listings,
      planning,
      interrupted.filter(_ => resumes),
      () => lost.exist,
      describing)
    phases.run(
      hasLeftovers = ofDestination.of(Kind.Temporary) + ofDestination.of(Kind.WorkingDirectory) > 0,
      hasFailures = Seq(ofSource, ofDestination).exists(_.of(Kind.Failed) > 0))
    val counting = new Counting(work)
    counting.notices.foreach(notice)
    if (options.names || options.items) counting.lines(options).foreach(show)
    if (phases.hasRefusedDeletions) notice(NothingDeleted)
    if (phases.undeleted > 0) notice(s"deletions stopped due to max-delete limit (${phases.undeleted} skipped)")
    if (work.isKept) work.complete(Finished)
    val counted = counting.summary(SyncSummary.of(source, destination, options, ofSource), phases.undeleted)
    val summary = if (isRefused) counted.copy(errors = counted.errors + 1) else counted
    isChanged =
      Seq(summary.created, summary.copiedFiles, summary.amended, summary.deleted, summary.errors).exists(_ > 0)
    summary.copy(manifest = Option.when(work.isKept)(work.path.toString))
  }

  private def rulesFor(ofSource: Census, ofDestination: Census, work: WorkingDirectory): Rules = {
    val (from, to) = (site.openSource().capabilities, site.openDestination().capabilities)
    val isFailed = Seq(ofSource, ofDestination).exists(_.of(Kind.Failed) > 0)
    val prevents = isFailed && !options.ignoreErrors
    val listsNothing =
      Seq(Kind.File, Kind.Link, Kind.Other).forall(ofSource.of(_) == 0) && ofSource.of(Kind.Directory) <= 1
    // A list that does not name the root may consist of a single empty directory.
    val isEmpty =
      listsNothing && options.files.forall(_.names("")) && (options.filter.isEmpty || isFailed || holdsNothing)
    if (options.delete && prevents) notice("nothing is deleted, because not everything could be listed")
    else if (options.delete && isEmpty) {
      isRefused = true
      notice(
        s"nothing is deleted, because the source is empty: $source; to empty the destination, remove what is in it")
    }
    val probes = probing(work)
    val keeps = probes.forall(_.keepsAttributes(""))
    lazy val givesAway = keeps && probes.fold(site.openDestination().seemsToGiveAway)(_.mayGiveAway(""))
    val hasOwners = from.hasOwners && to.hasOwners && (options.owner || options.group) && givesAway
    // Probes in the destination have changed its time.
    probes.filter(_ => !options.dryRun).foreach(_ => restoreTime(site.openDestination(), tops.get(Destination)))
    Rules(
      Preserved(
        modes = if (options.perms && keeps) from.modes & to.modes else 0,
        owner = options.owner && hasOwners,
        group = options.group && hasOwners,
        times = options.times && to.hasTimes && keeps,
        directoryTimes = timesOfDirectories && to.amends && keeps,
        linkTimes = options.times && !options.omitLinkTimes && to.hasTimes && keeps,
        links = options.links,
        amends = to.amends && keeps,
        newModes = if (options.perms || !keeps || from.modes == 0) 0 else to.newModes,
        // The right to create devices goes with the right to give files away.
        devices = options.devices && from.hasSpecials && to.hasSpecials && givesAway,
        specials = options.specials && to.hasSpecials,
        hardLinks = options.hardLinks,
        extended = options.acls || options.xattrs),
      checksum = options.checksum,
      sizeOnly = options.sizeOnly,
      ignoreTimes = options.ignoreTimes,
      update = options.update,
      existing = options.existing,
      ignoreExisting = options.ignoreExisting,
      delete = options.delete && !prevents && !isEmpty,
      examinesDeletions = options.filter.nonEmpty || isFailed || options.oneFileSystem,
      modifyWindow = options.modifyWindow,
      keepsTimes = keeps,
      notesAll = options.allItems)
  }

  /** Whether the source is empty, even of excluded entries. */
  private def holdsNothing: Boolean = {
    var isEmpty = true
    site.open(source).list("")(_ => isEmpty = false)
    isEmpty
  }

  /**
   * The directory in which to probe what the destination allows: the working directory, if it is in the same file
   * system.
   */
  private def probing(work: WorkingDirectory): Option[Tree] = {
    val (place, target) = (work.path.toUri, new Path(destination).toUri)
    // Local directories may be in different file systems.
    val isSame = place.getScheme == target.getScheme && place.getAuthority == target.getAuthority &&
      (place.getScheme != "file" || work.path.getParent == new Path(destination))
    if (isSame) Some(site.open(work.path.toString)) else Option.when(!options.dryRun)(site.openDestination())
  }
}

private object Synchronization {

  /** The checkpoints in use by runs of this process. */
  private val InUse = ConcurrentHashMap.newKeySet[Path]()
  private val Private = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
  private val NothingDeleted =
    "nothing is deleted, because something failed before; --ignore-errors (ignore_errors=True) deletes anyway"
}
