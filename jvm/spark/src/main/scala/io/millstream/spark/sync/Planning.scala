package io.millstream.spark.sync

import org.apache.spark.sql.{Dataset, SparkSession}
import org.apache.spark.sql.functions.{coalesce, col, count, lit, sum}

import WorkingDirectory._

/** The number of steps of a kind, and the bytes of their sources. */
private[sync] final case class Share(action: String, kind: String, makesWay: Boolean, count: Long, bytes: Long)

private[sync] final case class Shares(all: Seq[Share]) {
  def count(is: Share => Boolean): Long = all.filter(is).map(_.count).sum

  def of(actions: String*): Long = count(share => actions.contains(share.action))

  def bytesOf(actions: String*): Long = all.filter(share => actions.contains(share.action)).map(_.bytes).sum

  /** Whether nothing changes. */
  def isEmpty: Boolean = all.forall(share => Set(Action.Stay, Action.Leave)(share.action))
}

/**
 * Joins the two listings and decides about each path. The plan includes unchanged paths only if these are noted.
 */
private[sync] final class Planning(
    session: SparkSession,
    work: WorkingDirectory,
    site: Site,
    listings: Listings,
    describing: Jobs) {
  import Planning._

  /** @param entries their number on both sides together */
  def make(rules: Rules, entries: Long): Unit = describing("compare the listings") {
    session.conf.set(
      "spark.sql.shuffle.partitions",
      partitions(entries, session.sparkContext.defaultParallelism).toString)
    val (source, destination) = (listings.entries(Source), listings.entries(Destination))
    val pairs = source.joinWith(destination, source("path") === destination("path"), "full_outer")
    val site = this.site
    work.save(Plan, pairs.mapPartitions(decided(site, rules, _)))
    if (rules.ignoreExisting || rules.delete && !rules.preserved.copiesAll) {
      val paths = closed
      if (paths.size == MaxClosed) throw new SyncFailure(
        s"more than $MaxClosed directories have the same name as something else on the other side, which is kept")
      if (paths.nonEmpty)
        work.save(Open, work.load[Step](Plan).filter(step => !Paths.ancestors(step.path).exists(paths)))
    }
    val compared = if (rules.checksum) shares else Shares(Nil)
    val (count, bytes) = (compared.of(Action.Compare), compared.bytesOf(Action.Compare))
    if (count > 0) describing(s"compare the contents of $count files ($bytes bytes)") {
      val steps = Packing.packed(work.load[Step](Plan).filter(col("action") === Action.Compare).rdd, count, 2 * bytes)
      work.save(Compared, session.createDataset(steps.mapPartitions(comparison(site, rules, _))))
    }
    if (rules.preserved.hardLinks) describing("find hard links to the same files") {
      val named = all.filter(col("source.inode").isNotNull && !col("action").isin(Action.Compare, Action.Stay))
      work.save(Linked, HardLinks.steps(source, destination, named, rules))
    }
    if (rules.examinesDeletions) describing("determine what may be deleted") {
      val surplus = planned.filter(col("action") === Action.Surplus)
      work.save(Deletable, new Surplus(work, site, listings).steps(surplus))
    }
    work.complete(Ready)
  }

  /** The parts of the plan by name. */
  private def parts = work.parts(Plan).toSet

  /** The decision about each path regardless of others, except for the contents of closed directories. */
  private def planned = work.load[Step](if (parts(Open)) Open else Plan)

  private def all = {
    val parts = this.parts
    val steps = work.load[Step](Seq(if (parts(Open)) Open else Plan, Compared, Deletable).filter(parts): _*)
    if (parts(Linked)) steps.filter(col("source.inode").isNull).union(work.load[Step](Linked)) else steps
  }

  def steps(actions: String*): Dataset[Step] = all.filter(col("action").isin(actions: _*))

  /**
   * Closed directories: paths that are a directory on one side only, and stay as in the destination. If it is one in
   * the source, nothing is copied into it; if it is one in the destination, nothing in it is deleted.
   */
  private def closed: Set[String] = {
    val isLeft = col("action").isin(
      Action.Leave,
      Action.Skip) && col("source.kind") =!= Kind.Directory && col("destination.kind") === Kind.Directory
    work.load[Step](Plan).filter(
      col("reason") === Decision.Blocked || isLeft).select("path").as[String].limit(MaxClosed).collect().toSet
  }

  def shares: Shares = {
    val kind = coalesce(col("source.kind"), col("destination.kind"))
    val rows = all.groupBy(col("action"), kind, col("makesWay")).agg(
      count(lit(1)),
      coalesce(sum("source.size"), lit(0L))).collect()
    Shares(rows.map(row =>
      Share(row.getString(0), row.getString(1), row.getBoolean(2), row.getLong(3), row.getLong(4))).toSeq)
  }
}

private[sync] object Planning {

  /** Marks the plan as complete. */
  val Ready = "plan-ready"

  /** The plan without the contents of closed directories, which stay. */
  private val Open = "plan-open"
  private val Compared = "plan-compared"
  private val Deletable = "plan-deletable"

  /** The steps for files with several hard links. */
  private val Linked = "plan-linked"
  private val EntriesOfPartition = 200000L
  private val MaxPartitions = 20000L
  private val MaxClosed = 1000000

  private def partitions(entries: Long, cores: Int): Long =
    math.min(MaxPartitions, math.max(cores.toLong, entries / EntriesOfPartition + 1))

  private def decided(site: Site, rules: Rules, pairs: Iterator[(Entry, Entry)]): Iterator[Step] = {
    // Opened by the task's thread; they are closed with the task.
    val (source, destination) = (site.openSource(), site.openDestination())
    val listed = pairs.map { case (one, other) => (Option(one).map(destination.expressible), Option(other)) }
    def look(sides: Decision.Sides, needsTimes: Boolean): Either[Step, (Decision.Sides, Decision.Sides)] = sides match {
      case (Some(one), Some(other)) if needsTimes =>
        try Right(sides -> (Some(source.withOwnTime(one)) -> Some(destination.withOwnTime(other))))
        catch {
          case e if Tree.isOfEntry(e) =>
            Left(Step(one.path, Action.Fail, Tree.oneLine(e), sides._1, sides._2))
        }
      case _ => Right(sides -> sides)
    }
    val asked = listed.grouped(Decision.Batch).flatMap(some => some.zip(Decision.needTimes(some, rules)))
    val looked =
      new InFlight[(Decision.Sides, Boolean), Either[Step, (Decision.Sides, Decision.Sides)]](
        asked,
        site.threads,
        (look _).tupled)
    looked.grouped(Decision.Batch).flatMap { some =>
      val (failed, found) = some.partitionMap(identity)
      val decided = found.zip(Decision.ofAll(found.map(_._2), rules)).flatMap { case ((sides, _), step) =>
        // The plan keeps what the listings say, by which later changes are noticed.
        step.map(_.copy(source = sides._1, destination = sides._2))
      }
      failed ++ decided
    }
  }

  private def comparison(site: Site, rules: Rules, steps: Iterator[Step]): Iterator[Step] = {
    val (source, destination) = (site.openSource(), site.openDestination())
    def compare(step: Step): Option[Step] = {
      val Seq(entry, found) = Seq(step.source, step.destination).map(_.get)
      try {
        if (!Transfer.areSame(source, destination, step.path, entry.size)) Some(step.copy(action = Action.Copy))
        else {
          val (own, other) = (source.withOwnTime(entry), destination.withOwnTime(found))
          Decision.amendment(own, other, rules).orElse(Decision.staying(own, Some(other), rules)).map(_.copy(
            source = step.source,
            destination = step.destination))
        }
      } catch {
        case e if Tree.isOfEntry(e) => Some(step.copy(action = Action.Fail, reason = Tree.oneLine(e)))
      }
    }
    new InFlight[Step, Option[Step]](steps, site.threads, compare).flatten
  }
}
