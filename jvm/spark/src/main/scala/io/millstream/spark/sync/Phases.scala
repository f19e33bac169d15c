package io.millstream.spark.sync

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{Column, Dataset, Encoder, Encoders, SparkSession}
import org.apache.spark.sql.functions.{col, count, lit, regexp_replace, size, split}
import org.apache.spark.util.LongAccumulator

import WorkingDirectory._

/**
 * Carries out the plan. Each phase ends before the next begins, and is a part of the manifest:
 *
 * {{{
 * leftovers ─► what is in the way of directories ─► directories ─► files and links ─► attributes ─► hard links ─► deletions
 *   ─► attributes of directories
 * }}}
 *
 * With `--delete-before`, the deletions come before the removal of what is in the way.
 *
 * A resumed run skips the finished phases; in the phase that had begun, existing copies stay.
 *
 * @param interrupted the temporary names of the run that began to carry out the plan, if this one resumes it
 * @param hasLostAttempts whether attempts of tasks have failed or were killed
 */
private[sync] final class Phases(
    session: SparkSession,
    work: WorkingDirectory,
    site: Site,
    options: SyncOptions,
    rules: Rules,
    listings: Listings,
    planning: Planning,
    interrupted: Option[TemporaryNames],
    hasLostAttempts: () => Boolean,
    describing: Jobs) {
  import Phases._

  private val context = session.sparkContext
  private val shares = planning.shares
  private val isReal = !options.dryRun

  def run(hasLeftovers: Boolean, hasFailures: Boolean): Unit = {
    if (isReal && hasLeftovers) clean()
    if (isReal) interrupted.foreach { names =>
      sweep("remove temporary files of the interrupted run", names)
      site.openDestination().deleteTree(names.working)
    }
    if (hasFailures || shares.of(Action.Skip, Action.Fail) > 0) unlisted()
    if (shares.of(Action.Stay) > 0) note("stays", "record unchanged entries", Action.Stay, Status.Same)
    if (options.deleteBefore) delete()
    makeDirectories()
    copy()
    val amended = shares.count(share => share.action == Action.Amend && share.kind != Kind.Directory)
    if (amended > 0) each(
      "attributes",
      planning.steps(Action.Amend).filter(col("source.kind") =!= Kind.Directory),
      amended,
      "set attributes")(amend)
    makeHardLinks()
    if (!options.deleteBefore) delete()
    // Hard links change the times of directories.
    if (isReal && hasLostAttempts()) sweepAttempts()
    if (isReal) finishDirectories()
    else {
      val directories = shares.count(share => share.action == Action.Amend && share.kind == Kind.Directory)
      if (directories > 0)
        each("directories", directoriesOf(Action.Amend), directories, "set attributes of directories")(amend)
    }
  }

  /** The listings' other findings, and the entries that the plan leaves alone, go into the manifest. */
  private def unlisted(): Unit = if (!work.has(s"$Manifest-listing")) {
    val failed = Seq(Source, Destination).map(side =>
      listings.all(side).filter(_.kind == Kind.Failed).map(Outcome.unlisted(_, side)))
    val left = planning.steps(Action.Skip, Action.Fail).map(leave(_))
    describing("record what was not listed")(work.save(
      s"$Manifest-listing",
      (failed :+ left).reduce(_ union _).coalesce(context.defaultParallelism.max(1))))
  }

  /** Removes leftovers of killed runs from the destination, but not the files of a run that may be active. */
  private def clean(): Unit = {
    val found = listings.all(Destination).filter(col("kind").isin(Kind.Temporary, Kind.WorkingDirectory))
    // Only the driver's machine knows which of its processes have ended.
    val ended = found.flatMap(entry => TemporaryNames.named(Paths.name(entry.path))).distinct().limit(
      MaxRuns).collect().filter(_.hasEnded).toSet
    val leftovers = found.filter(TemporaryNames.isAbandoned(_, ended)).map(entry =>
      Step(entry.path, Action.Delete, Counting.LeftBefore, None, Some(entry)))
    each("leftovers", leftovers, 0, "remove leftovers of earlier runs")(removeLeftovers)
  }

  private def makeDirectories(): Unit = {
    val count = shares.of(Action.Directory)
    if (isReal && shares.count(share => share.action == Action.Directory && share.makesWay) > 0) {
      each(
        "way",
        planning.steps(Action.Directory).filter(col("makesWay")),
        count,
        "remove entries that are in the way of directories")(makeWay)
    }
    if (count > 0) {
      val steps = planning.steps(Action.Directory)
      // Where directories exist only through their contents, only empty ones are created.
      val made = if (!impliesDirectories) steps
      else {
        val full = listings.entries(Source).select(parentOf(col("path")).as("path")).distinct()
        steps.join(full, Seq("path"), "left_anti").as[Step]
      }
      // They may have been removed since the interrupted run.
      val isLater =
        work.has(s"$Manifest-copies") || work.parts(s"$Manifest-directories").exists(_ != s"$Manifest-directories-made")
      if (interrupted.nonEmpty && !isLater) work.forget(s"$Manifest-directories-made")
      each("directories-made", made, count, s"make $count directories")(makeDirectory)
    }
  }

  private lazy val impliesDirectories = site.openDestination().capabilities.impliesDirectories

  private def copy(): Unit = {
    val (count, bytes) = (shares.of(Action.Copy, Action.Link), shares.bytesOf(Action.Copy, Action.Link))
    if (count > 0) {
      val steps = planning.steps(Action.Copy, Action.Link)
      val (site, preserved, verify, resumes) = (this.site, rules.preserved, options.verify, interrupted.nonEmpty)
      val empties = this.empties
      val rate = options.bytesPerSecond.map(rate => math.max(1, rate / context.defaultParallelism))
      val counters = Counters(context.longAccumulator("files copied"), context.longAccumulator("bytes copied"))
      lazy val packed = Packing.packed(steps.rdd, count, bytes)
      save(
        "copies",
        s"copy $count files ($bytes bytes)",
        steps)(packed.mapPartitions(transfer(site, preserved, verify, empties, resumes, rate, counters, _)))
    }
  }

  /** Whether directories with contents that are in the way may be removed: their contents count as deletions, too. */
  private def empties =
    (rules.delete || options.force) && options.maxDelete.forall(rules.delete && _ >= shares.of(Action.Delete))

  /** Creates hard links to existing copies. */
  private def makeHardLinks(): Unit = {
    val count = shares.of(Action.HardLink)
    if (count > 0) {
      val steps = planning.steps(Action.HardLink)
      val (site, empties) = (this.site, this.empties)
      lazy val links = {
        val copies =
          if (work.has(s"$Manifest-copies")) work.load[Outcome](s"$Manifest-copies") else session.emptyDataset[Outcome]
        val pairs = steps.joinWith(copies, steps("other") === copies("path"), "left_outer")
        pairs.map { case (step, outcome) => HardLink(step, Option(outcome)) }
      }
      save(
        "links",
        s"make $count hard links",
        steps)(links.repartition(tasksFor(count)).rdd.mapPartitions(linking(site, empties, _)))
    }
  }

  private var refused = false

  /** Whether the deletions were skipped because something had failed. */
  def hasRefusedDeletions: Boolean = refused

  private def delete(): Unit = {
    val total = shares.of(Action.Delete)
    val most = options.maxDelete.filter(_ < total)
    refused = total > 0 && !options.ignoreErrors && hasFailed
    // Directories that cannot be deleted because they contain protected entries.
    if (isReal && !refused && shares.of(Action.Keep) > 0)
      note("kept", "record kept directories", Action.Keep, Status.NotEmpty)
    if (total > 0 && !refused && most.forall(_ > 0)) {
      val all = planning.steps(Action.Delete)
      val chosen = most.fold(all) { most =>
        if (!work.has(Chosen)) work.save(Chosen, all.orderBy(depth.desc, col("path")).limit(most.toInt))
        work.load[Step](Chosen)
      }
      val isDirectory = col("destination.kind") === Kind.Directory
      val directories = shares.count(share => share.action == Action.Delete && share.kind == Kind.Directory)
      if (directories < total) each(
        "deletions",
        chosen.filter(!isDirectory),
        total - directories,
        s"delete up to ${total - directories} entries")(remove)
      // A directory's contents are deleted before it.
      if (directories > 0) inLevels("deletions", chosen.filter(isDirectory), "delete directories")(remove)
    }
  }

  /** Whether anything of the run so far has failed, apart from attributes. */
  private def hasFailed: Boolean = {
    val parts = work.parts(s"$Manifest-")
    parts.nonEmpty && !work.load[Outcome](
      parts: _*).filter(col("status") === Status.Failed && col("action") =!= Action.Amend).isEmpty
  }

  /** Writes a part of the manifest for steps that need no work. */
  private def note(name: String, what: String, action: String, status: String): Unit = {
    val part = s"$Manifest-$name"
    if (!work.has(part)) describing(what)(work.save(part, planning.steps(action).map(Outcome.of(_, status))))
  }

  /** The number of deletions that the limit has prevented. */
  def undeleted: Long =
    if (refused) 0 else options.maxDelete.fold(0L)(most => math.max(0, shares.of(Action.Delete) - most))

  private def inLevels(name: String, steps: Dataset[Step], what: String)(run: Run): Unit = {
    val levels =
      steps.groupBy(depth).agg(count(lit(1))).collect().map(row => row.getInt(0) -> row.getLong(1)).sortBy(-_._1)
    levels.foreach { case (level, count) =>
      each(s"$name-$level", steps.filter(depth === level), count, s"$what at level $level")(run)
    }
  }

  private def directoriesOf(action: String) = planning.steps(action).filter(col("source.kind") === Kind.Directory)

  /**
   * Sets the attributes of directories that differ, are new, or have changed contents, which changes their times.
   */
  private def finishDirectories(): Unit = if (rules.preserved.amends && !shares.isEmpty) {
    if (!work.has(Directories)) {
      val changed = planning.steps(
        Action.Directory,
        Action.Copy,
        Action.Link,
        Action.HardLink,
        Action.Delete).select(parentOf(col("path")).as("path"))
      val own = planning.steps(Action.Directory).select("path").union(directoriesOf(Action.Amend).select("path"))
      val touched = changed.union(own).distinct()
      val entries = listings.entries(Source).filter(col("kind") === Kind.Directory).join(
        touched,
        Seq("path"),
        "left_semi").as[Entry]
      val planned = planning.steps(Action.Directory, Action.Amend).filter(col("source.kind") === Kind.Directory)
      work.save(
        Directories,
        entries.joinWith(planned, entries("path") === planned("path"), "left_outer").map {
          // The mode is unchanged.
          case (entry, null) => Step(entry.path, Action.Amend, Contents, Some(entry), Some(entry.copy(mode = None)))
          case (entry, step) if step.action == Action.Directory =>
            Step(entry.path, Action.Amend, Contents, Some(entry), None)
          case (entry, step) =>
            Step(entry.path, Action.Amend, step.reason, Some(entry), step.destination, changes = step.changes)
        })
    }
    // Attributes of a directory's contents cannot be set after it has become inaccessible.
    val isOpen = col("source.mode").isNull || col("source.mode").bitwiseAND(OwnersAccess) === OwnersAccess
    val steps = work.load[Step](Directories)
    val counts =
      steps.groupBy(isOpen).agg(count(lit(1))).collect().map(row => row.getBoolean(0) -> row.getLong(1)).toMap
    counts.get(true).foreach(each("directories", steps.filter(isOpen), _, "set attributes of directories")(amend))
    counts.get(false).foreach(_ =>
      inLevels("directories", steps.filter(!isOpen), "set attributes of directories")(amend))
  }

  /** Removes temporary files of attempts that have failed or were killed. */
  private def sweepAttempts(): Unit = sweep("remove temporary files of failed attempts", site.names)

  private def sweep(what: String, names: TemporaryNames): Unit = {
    val site = this.site
    val directories =
      planning.steps(Action.Copy, Action.Link, Action.HardLink).select(parentOf(col("path"))).distinct().as[String]
    describing(what)(directories.foreachPartition { (some: Iterator[String]) =>
      val tree = site.openDestination()
      some.foreach { directory =>
        try tree.list(directory)(entry =>
            if (!entry.isDirectory && names.has(Paths.name(entry.path))) tree.delete(entry.path))
        catch {
          // Whatever the entry was, its copies have failed and reported it.
          case _: java.io.IOException =>
        }
      }
    })
  }

  private def tasksFor(count: Long): Int =
    math.max(1, math.min(count / StepsOfTask, context.defaultParallelism.toLong * TasksPerCore)).toInt

  private def each(name: String, steps: Dataset[Step], count: Long, what: String)(run: Run): Unit = {
    val (site, rules) = (this.site, this.rules)
    val tasks = tasksFor(count)
    save(
      name,
      what,
      steps)((if (tasks == 1) steps.coalesce(1) else steps.repartition(tasks)).rdd.mapPartitions(inFlight(
      site,
      rules,
      run,
      _)))
  }

  private def save(name: String, what: String, steps: Dataset[Step])(outcomes: => RDD[Outcome]): Unit = {
    val part = s"$Manifest-$name"
    if (!work.has(part)) describing(what)(work.save(
      part,
      if (isReal) session.createDataset(outcomes) else steps.map(Outcome.of(_, Status.Wanted))))
  }
}

/**
 * A step that creates a hard link.
 *
 * @param copied the outcome of the link's target; None if that was up to date
 */
final case class HardLink(step: Step, copied: Option[Outcome])

private object Phases {
  private implicit def encodesLinks: Encoder[HardLink] = Encoders.product[HardLink]
  private val MaxRuns = 10000
  private val TasksPerCore = 4
  private val StepsOfTask = 1000L
  private val Chosen = "plan-deletions"
  private val Directories = "plan-directories"
  private val OwnersAccess = Integer.parseInt("300", 8)
  private val SpecialBits = Integer.parseInt("7000", 8)
  private val OwnersAll = Integer.parseInt("700", 8)

  /** The reason for restoring the time of a directory. */
  val Contents = "its contents have changed"

  type Run = (Tree, Tree, Rules, Step) => Outcome

  private final case class Counters(files: LongAccumulator, bytes: LongAccumulator)

  /** Like [[Paths.parent]]. */
  private def parentOf(path: Column): Column = regexp_replace(path, "/?[^/]*\\z", "")

  private val depth: Column = size(split(col("path"), "/"))

  private def inFlight(site: Site, rules: Rules, run: Run, steps: Iterator[Step]): Iterator[Outcome] = {
    val (source, destination) = (site.openSource(), site.openDestination())
    new InFlight[Step, Outcome](steps, site.threads, step => run(source, destination, rules, step))
  }

  private def transfer(
      site: Site,
      preserved: Preserved,
      verify: Boolean,
      empties: Boolean,
      resumes: Boolean,
      rate: Option[Long],
      counters: Counters,
      steps: Iterator[Step]): Iterator[Outcome] = {
    val (source, destination) = (site.openSource(), site.openDestination(rate))
    val task = TaskContext.get()
    val isAgain = resumes || task.attemptNumber > 0 || task.stageAttemptNumber > 0
    val transfer = new Transfer(
      source,
      destination,
      preserved,
      isAgain,
      verify,
      empties,
      rate.map(new Pace(_)),
      bytes =>
        counters.synchronized {
          counters.files.add(1)
          counters.bytes.add(bytes)
        })
    def run(step: Step) =
      if (step.action == Action.Link) makeSpecial(source, destination, preserved, empties, step) else transfer.run(step)
    new InFlight[Step, Outcome](steps, site.threads, run)
  }

  private def trying(step: Step, operation: String)(action: => Outcome): Outcome =
    try action
    catch {
      case e if Tree.isOfEntry(e) => Outcome.failed(step, operation, e)
    }

  private def leave(step: Step): Outcome =
    if (step.reason == Decision.Mounted)
      Outcome.of(step, Status.Mounted).copy(message = step.destination.flatMap(_.mount))
    else if (step.action == Action.Skip) Outcome.of(step, Status.Skipped)
    else Outcome.failed(step, "examine", step.reason)

  private def removeLeftovers(source: Tree, destination: Tree, rules: Rules, step: Step): Outcome =
    trying(step, "remove") {
      destination.deleteTree(step.path)
      Outcome.of(step, Status.Done)
    }

  private def makeWay(source: Tree, destination: Tree, rules: Rules, step: Step): Outcome = trying(step, "remove") {
    if (destination.delete(step.path) == Deleted.Mounted) throw new java.io.IOException(Transfer.IsMounted)
    Outcome.of(
      step,
      Status.Done).copy(action = Action.MakeWay, kind = step.destination.get.kind, size = 0, changes = "")
  }

  private def makeDirectory(source: Tree, destination: Tree, rules: Rules, step: Step): Outcome =
    trying(step, "create the directory") {
      destination.makeDirectory(step.path)
      // Users who may not list the source must not list the unfinished copy; the mode is set when it is complete.
      if (rules.preserved.amends && Decision.attributes(step.source.get, None, rules.preserved).mode.nonEmpty) {
        destination.setAttributes(
          step.path,
          Attributes(None, Some(OwnersAll | specialBits(destination, step.path)), None, None))
      }
      Outcome.of(step, Status.Done)
    }

  /** The set-user-ID, set-group-ID and sticky bits of the existing entry. */
  private def specialBits(destination: Tree, path: String): Int =
    destination.status(path).flatMap(_.mode).getOrElse(0) & SpecialBits

  private def makeSpecial(
      source: Tree,
      destination: Tree,
      preserved: Preserved,
      empties: Boolean,
      step: Step): Outcome = {
    val entry = step.source.get
    trying(step, s"create the ${entry.special.map(Special.parts(_)._1).getOrElse("symbolic link")}") {
      Transfer.makeRoom(destination, step, empties)
      val lacking = destination.makeSpecial(entry, source, Decision.attributes(entry, step.destination, preserved))
      Transfer.complete(step, lacking)(Outcome.of(step, Status.Done))
    }
  }

  private def linking(site: Site, empties: Boolean, links: Iterator[HardLink]): Iterator[Outcome] = {
    val destination = site.openDestination()
    new InFlight[HardLink, Outcome](links, site.threads, link => makeHardLink(destination, empties, link))
  }

  private def makeHardLink(destination: Tree, empties: Boolean, link: HardLink): Outcome = {
    val (step, other) = (link.step, link.step.other.get)
    val became = link.copied.map(_.status)
    // A copy that only lacks an attribute exists.
    val isMissing = link.copied.exists(copied => copied.status == Status.Failed && copied.action != Action.Amend)
    trying(step, "create the hard link") {
      if (became.exists(Set(Status.Vanished, Status.Changed))) Outcome.of(step, became.get)
      else if (isMissing)
        throw new java.io.IOException(s"the file that it links to was not copied: ${Names.shown(other)}")
      else {
        Transfer.makeRoom(destination, step, empties)
        destination.makeHardLink(step.path, other)
        Outcome.of(step, Status.Done)
      }
    }
  }

  private def amend(source: Tree, destination: Tree, rules: Rules, step: Step): Outcome =
    trying(step, "set attributes of") {
      val attributes = Decision.attributes(
        source.withOwnTime(step.source.get),
        step.destination.map(_.copy(mode = None)),
        rules.preserved)
      // A new directory keeps what it has inherited from its parent.
      val mode = if (rules.preserved.modes != 0) attributes.mode
      else attributes.mode.map(_ | specialBits(destination, step.path))
      destination.setAttributes(step.path, attributes.copy(mode = mode), Some(source))
      Outcome.of(step, Status.Done)
    }

  /**
   * Each entry is looked up in the source again before it is deleted: the listing may be old, and the file may be the
   * only copy.
   */
  private def remove(source: Tree, destination: Tree, rules: Rules, step: Step): Outcome = trying(step, "delete") {
    Outcome.of(
      step,
      if (source.status(step.path).nonEmpty) Status.Appeared
      else destination.delete(step.path) match {
        case Deleted.NotEmpty => Status.NotEmpty
        case Deleted.Mounted => Status.Mounted
        case _ => Status.Done
      })
  }
}
