package io.millstream.spark.compact

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._
import scala.util.Using

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.ObjectMapper
import io.millstream.hadoop.compact.NativeCompaction
import io.millstream.hadoop.listing.DatasetNames
import io.millstream.spark.console.Failures
import io.millstream.write.protocol._
import io.millstream.write.store.{StagedFile, Store, Stores, WriteOptions}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path => HadoopPath}
import org.slf4j.LoggerFactory

import org.apache.spark.SparkException
import org.apache.spark.sql.SparkSession

/**
 * A compaction from or to S3, HDFS or another Hadoop file system, into a new tree.
 *
 * The outputs are the files of one direct write (docs/direct-writes-protocol.md) to the destination, which readers do
 * not see before it is committed, and which any later run finishes if its driver dies after that. A marker in the
 * destination tells that run that the files belong to a compaction.
 */
private[spark] object CompactRemote {
  private val Log = LoggerFactory.getLogger("io.millstream.spark.Compact")
  private val Remote = "(?s)(?!file:)[A-Za-z][A-Za-z0-9+.-]*://.*"

  /** Whether the source or the destination is on a file system other than the local one. */
  def concerns(options: CompactOptions): Boolean =
    (options.destination.toSeq :+ options.source).exists(_.matches(Remote))

  def run(spark: SparkSession, options: CompactOptions, tell: String => Unit): CompactSummary = {
    val to = options.destination.getOrElse(throw new CompactFailure(
      s"${options.source}: files can be replaced in place only on local and mounted file " +
        "systems; compact them into a new tree, or rewrite the table with INSERT OVERWRITE and direct writes"))
    val conf = spark.sessionState.newHadoopConf()
    Placement.prepare(conf)
    try {
      val source = if (options.source.matches(Remote)) HadoopTree.at(options.source, conf)
      else new LocalTree(Compaction.realDirectory(options.source), Compaction.local(options.source).normalize, conf)
      val destination = new Destination(to, conf)
      destination.requireOutside(source)
      if (options.dryRun) look(spark, options, conf, source, destination, tell)
      else
        try new Compaction(spark, options, conf, source, destination, tell).run()
        finally spark.catalog.refreshByPath(destination.path.toString)
    } catch {
      case e: CommittedException =>
        throw new CompactFailure(s"${e.getMessage}; no line is lost, but $to is not complete: run the same command again, and it will finish the work")
      case e: IOException => throw new CompactFailure(s"${e.getMessage}; run the same command again once that is fixed")
      case e: SparkException =>
        throw new CompactFailure(s"Spark could not run the job, and $to is unchanged: ${Failures.oneLine(e)}")
    }
  }

  private def look(
      spark: SparkSession,
      options: CompactOptions,
      conf: Configuration,
      source: SourceTree,
      destination: Destination,
      tell: String => Unit): CompactSummary = {
    destination.requireNew()
    val tasks =
      new CompactTasks(spark, Site(options.header, options.codec), conf, s"Millstream compact --dry-run ${source.name}")
    val planned = new CompactPlanner(options, source, conf, "").plan()
    CompactResult.warnings(options, planned, conf).foreach(tell)
    val (plan, made) = CompactResult.withCopies(options, planned, tasks.check)
    CompactResult.of(options, source.name, destination.name, plan, made, 0)
  }

  /** The new tree. */
  private final class Destination(given: String, conf: Configuration) {
    val path: HadoopPath =
      HadoopTree.qualified(if (given.matches(Remote)) given else s"file://${Compaction.local(given).normalize}", conf)
    val name: String = CompactTasks.shown(path).stripSuffix("/")
    private val fs = path.getFileSystem(conf)
    private val marker = new HadoopPath(path, Compaction.StagingName)

    DirectJob.whyNot(fs).ifPresent(reason =>
      throw new CompactFailure(s"$given: it cannot be the destination of a compaction: $reason"))

    def requireOutside(source: SourceTree): Unit = if (fs.getUri == source.fileSystem) {
      val below = source.path
      val own = path.toUri.getPath.stripSuffix("/")
      if (own == below) throw new CompactFailure(s"$given: is the source itself; choose another destination")
      if (own.startsWith(s"$below/"))
        throw new CompactFailure(s"$given: is inside the source ${source.name}; choose a destination outside it")
    }

    private def found(file: HadoopPath): Option[FileStatus] =
      try Some(fs.getFileStatus(file))
      catch { case _: FileNotFoundException => None }

    /** Whether a compaction to this destination is not over, or has ended without removing its mark. */
    def isMarked: Boolean = found(marker).exists(_.isFile)

    /** Refuses a destination that has anything but the leftovers of a compaction. */
    def requireNew(): Unit = {
      if (found(path).exists(_.isFile)) throw new CompactFailure(s"$given: exists and is not a directory")
      if (!isMarked && !holdsNothing) throw Compaction.notEmpty(name)
    }

    private def holdsNothing: Boolean =
      try {
        val entries = fs.listStatusIterator(path)
        Iterator.continually(entries).takeWhile(_.hasNext).map(_.next()).forall(entry =>
          entry.getPath == marker || entry.getPath.getName == Store.JOURNAL)
      } catch {
        case _: FileNotFoundException => true
      }

    /** The files that readers find, by their paths below this directory. */
    def visibleFiles: Set[String] =
      try {
        val files = fs.listFiles(path, true)
        val names = Iterator.continually(files).takeWhile(_.hasNext).map(file =>
          path.toUri.relativize(file.next().getPath.toUri).getPath)
        names.filterNot(_.split('/').exists(DatasetNames.isHidden)).toSet
      } catch {
        case _: FileNotFoundException => Set.empty
      }

    /**
     * Marks the destination as that of a compaction.
     *
     * @param isReplaceable whether an existing mark may be replaced
     * @throws CompactFailure if it may not: another compaction has found this one's lease expired
     */
    def mark(mark: Mark, isReplaceable: Option[Mark] => Boolean): Unit = {
      if (!isReplaceable(readMark)) {
        throw new CompactFailure(
          s"$name: another compaction to it has begun, because this one did not renew its lease; nothing is written")
      }
      Using.resource(fs.create(marker, true))(_.write(mark.encoded))
    }

    def readMark: Option[Mark] =
      try Mark.decoded(Using.resource(fs.open(marker))(_.readAllBytes()))
      catch { case _: FileNotFoundException => None }

    /** Removes the mark of this job only. */
    def unmark(job: String): Unit = if (!isOfAnother(job)) fs.delete(marker, false)

    def isOfAnother(job: String): Boolean = readMark.exists(_.job != job)

    /** Removes the files of a compaction without a result. The mark stays while a task may still be writing. */
    def forget(job: String): Unit = if (!isOfAnother(job)) {
      Stores.of(path, conf).removeEmptyTree("")
      if (holdsNothing) {
        unmark(job)
        Stores.of(path, conf).removeEmptyTree("")
      }
    }
  }

  /**
   * The content of the marker.
   *
   * @param job the direct write
   * @param left the files that the compaction leaves; complete before the commit
   * @param outputs paths of its outputs below the destination; complete before the commit
   */
  private final case class Mark(job: String, left: Seq[NativeCompaction.Left], outputs: Seq[String]) {
    def encoded: Array[Byte] =
      Seq(
        job,
        new String(CompactLeft.encoded(left), UTF_8),
        new ObjectMapper().writeValueAsString(outputs.asJava)).mkString("\n").getBytes(UTF_8)
  }

  private object Mark {

    /** None if it is incomplete. */
    def decoded(content: Array[Byte]): Option[Mark] = new String(content, UTF_8).split("\n", -1) match {
      case Array(job, left, outputs) =>
        try {
          val names = new ObjectMapper().readTree(outputs)
          Option.when(names.isArray)(Mark(
            job,
            CompactLeft.decoded(left.getBytes(UTF_8)),
            names.elements.asScala.map(_.asText).toSeq))
        } catch {
          case _: JsonProcessingException => None
        }
      case _ => None
    }
  }

  private final class Compaction(
      spark: SparkSession,
      options: CompactOptions,
      conf: Configuration,
      source: SourceTree,
      destination: Destination,
      tell: String => Unit) {
    private val id = UUID.randomUUID().toString
    private lazy val store = Stores.of(destination.path, conf)

    def run(): CompactSummary = {
      // Finishes what an earlier compaction has committed.
      val before = ReadGuard.of(destination.path, conf, null).get
      destination.requireNew()
      val found = if (destination.isMarked) destination.visibleFiles else Set.empty[String]
      if (found.isEmpty) compact(before) else recovered(found)
    }

    /** The result of an earlier compaction, if all of its files exist and no others. */
    private def recovered(found: Set[String]): CompactSummary = {
      val known = for {
        mark <- destination.readMark
        ending <- Journal.of(store).ending(store, mark.job).toScala
      } yield (mark, ending)
      val (mark, ending) = known.getOrElse(throw Compaction.notEmpty(destination.name))
      val (missing, others) = (mark.outputs.filterNot(found), (found -- mark.outputs).toSeq.sorted)
      val reasons = Seq(
        Option.when(missing.nonEmpty)(
          s"${missing.length} of its ${mark.outputs.length} outputs are missing (${someOf(missing)})"),
        Option.when(others.nonEmpty)(s"${others.length} files there are not its outputs (${someOf(others)})"),
        Option.when(
          ending.outcome != Ending.Outcome.COMPLETE)(s"it ended as ${ending.outcome}: ${ending.detail}")).flatten
      if (reasons.nonEmpty) {
        throw new CompactFailure(
          s"${destination.name}: an earlier compaction to it was committed, but ${reasons.mkString("; ")}. " +
            "If the source still has all its lines, remove the directory, or choose another destination, and run the command again")
      }
      destination.unmark(mark.job)
      CompactResult.of(
        options,
        source.name,
        destination.name,
        CompactPlan(0, 0, 0, Vector.empty, 0, mark.left),
        Nil,
        found.size)
    }

    private def someOf(names: Seq[String]): String =
      names.head + (if (names.length > 1) s" and ${names.length - 1} more" else "")

    private def compact(before: ReadGuard): CompactSummary = {
      val abandoned = if (destination.isMarked) destination.readMark else None
      val job = DirectJob.begin(destination.path, id, "", conf, null)
      var isMarked = false
      var begun: Option[CompactPlan] = None
      try {
        requireAlone()
        isMarked = true
        destination.mark(Mark(id, Nil, Nil), _.forall(found => abandoned.exists(_.job == found.job)))
        val guard = new SourceGuard(source, conf)
        val planned = new CompactPlanner(options, source, conf, id).plan()
        guard.requireUnchanged()
        discardLeftovers(planned)
        CompactResult.warnings(options, planned, conf).foreach(tell)
        CompactResult.foretell(planned, source.name, destination.name).foreach(tell)
        val tasks = new StagedTasks(
          spark,
          Site(options.header, options.codec),
          job.placement,
          conf,
          s"Millstream compact ${source.name}")
        begun = Some(planned)
        val (plan, made) = CompactResult.withCopies(options, planned, tasks.make)
        begun = Some(plan)
        val result = CompactResult.of(options, source.name, destination.name, plan, made, 0)
        val files = made.flatMap(_.staged.toOption)
        if (files.nonEmpty) {
          guard.check()
          destination.mark(Mark(id, result.left, files.map(_.toString)), _.exists(_.job == id))
          // From now on only a finished job may lose its mark.
          isMarked = false
          commit(job, files, before)
          end(plan)
        }
        result
      } finally {
        // As long as the job is not over, no other compaction writes copies under these names.
        if (isMarked) begun.foreach(discardCopies)
        job.abort()
        job.close()
        if (isMarked) forget()
      }
    }

    /**
     * Refuses to run at the same time as another compaction to the same destination, or a statement that writes
     * there.
     */
    private def requireAlone(): Unit = {
      val resolution = new Resolution(TableAccess.of(destination.path, conf, null))
      Journal.of(store).jobs.asScala.find(job =>
        job.id != id && !job.isFinished && (job.hasBegun || resolution.isCommitted(job))).foreach { job =>
        val owner = Option(store.read(Journal.begin(job.id))).fold("another process")(Journal.Begin.of(_, 0).owner)
        throw new CompactFailure(
          s"${destination.name}: $owner may still be writing to it; if it is dead, run the same command again in " +
            s"${new WriteOptions(conf).leaseMillis / 1000} s")
      }
    }

    private def commit(job: DirectJob, files: Seq[StagedFile], before: ReadGuard): Unit =
      try job.commit(new CommitPlan(files.asJava, Overwrite.nothing()).hasRead(before.version))
      catch {
        case e: ConflictException =>
          destination.unmark(id)
          throw e
      }

    private def forget(): Unit =
      try destination.forget(id)
      catch {
        case e: IOException => Log.warn(
            s"Leftovers of a compaction remain in ${destination.name} for the next one to remove: ${e.getMessage}")
      }

    /**
     * Files of attempts that failed or were repeated. Copies may also be an earlier run's, which their names on S3 do
     * not show.
     */
    private def discardLeftovers(plan: CompactPlan): Unit = {
      val copies = plan.outputs.iterator.filter(_.isCopy).map(copy =>
        if (copy.directory.isEmpty) copy.name else s"${copy.directory}/${copy.name}").toSet
      val found = store.leftovers("", job => job == id || job.isEmpty).asScala
      store.discard(found.filter(left => left.job == id || copies(left.path)).asJava)
    }

    private def discardCopies(plan: CompactPlan): Unit =
      try {
        if (!destination.isOfAnother(id)) discardLeftovers(plan)
      } catch {
        case e: IOException =>
          Log.warn(s"Copies in ${destination.name} are left for the next compaction to remove: ${e.getMessage}")
      }

    private def end(plan: CompactPlan): Unit =
      try {
        discardLeftovers(plan)
        destination.unmark(id)
      } catch {
        case e: IOException =>
          Log.warn(s"${destination.name} is complete, but leftovers of its compaction remain: ${e.getMessage}")
      }
  }
}
