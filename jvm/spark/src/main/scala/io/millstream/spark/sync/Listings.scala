package io.millstream.spark.sync

import java.util.concurrent.{Callable, ConcurrentHashMap, ExecutionException, Executors}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Dataset, SparkSession}
import org.apache.spark.sql.functions.{coalesce, col, count, lit, sum}

import WorkingDirectory._

/** Numbers of entries by kind, and the bytes of files. */
private[sync] final case class Census(counts: Map[String, Long], bytes: Long) {
  def of(kind: String): Long = counts.getOrElse(kind, 0L)

  def all: Long = counts.values.sum

  def +(other: Census): Census =
    Census(other.counts.foldLeft(counts) { case (sum, (kind, count)) => sum.updated(kind, sum.getOrElse(kind, 0L) + count) }, bytes + other.bytes)
}

/** Lists both sides by tasks, in rounds: the directories that a round has found and not listed are the work of the next one. */
private[sync] final class Listings(session: SparkSession, work: WorkingDirectory, site: Site, describing: Jobs) {
  import Listings._

  private val context = session.sparkContext
  /** What has been counted in parts by this run, for each side. */
  private val counted = new ConcurrentHashMap[String, Census]

  /** Lists both sides. `tops` are their roots, as far as they exist. */
  def make(tops: Map[String, Entry]): Unit = {
    val threads = Executors.newFixedThreadPool(2, InFlight.daemon)
    try {
      val sides = Seq(Source -> site.source, Destination -> site.destination)
      val listings = sides.map { case (side, root) => new Callable[Unit] { override def call(): Unit = list(side, root, tops.get(side)) } }
      threads.invokeAll(listings.asJava).asScala.foreach(_.get)
    } catch {
      case e: ExecutionException => throw e.getCause
    } finally {
      threads.shutdownNow()
    }
  }

  private def list(side: String, root: String, top: Option[Entry]): Unit = {
    var directories = session.createDataset(top.map(_.path).toSeq)
    var left = top.size.toLong
    var round = 0
    do {
      val tasks = math.max(1, math.min(left, context.defaultParallelism.toLong * TasksPerCore)).toInt
      val most = if (round == 0) FirstEntries else MaxEntries
      val (site, first) = (this.site, top.filter(_ => round == 0))
      describing(s"list $root, round ${round + 1}: $left directories") {
        val found = (if (tasks > 1) directories.repartition(tasks) else directories.coalesce(1)).mapPartitions(listing(site, side, first, most, _))
        work.save(s"$side-$round", found)
        val census = if (round == 0 && top.isEmpty) Census(Map.empty, 0) else censusOf(s"$side-$round")
        counted.merge(side, census, _ + _)
        left = census.of(Kind.Pending)
        directories = work.load[Entry](s"$side-$round").filter(col("kind") === Kind.Pending).select("path").as[String]
      }
      round += 1
    } while (left > 0)
    if (open(site, side).capabilities.impliesDirectories && top.nonEmpty) noteAmbiguous(side)
  }

  /** An object and the prefix of others can have the same path, which no other file system can have: neither takes part. */
  private def noteAmbiguous(side: String): Unit = {
    val twice = entries(side).groupBy("path").agg(count(lit(1)).as("times")).filter(col("times") > 1).select("path").as[String].limit(MaxAmbiguous).collect()
    if (twice.nonEmpty) {
      work.save(ambiguous(side), session.createDataset(twice.toSeq).map(Entry(_, Kind.Failed, message = Some(IsBoth))))
      counted.merge(side, Census(Map(Kind.Failed -> twice.length.toLong), 0), _ + _)
    }
  }

  private def ambiguous(side: String) = s"$side-ambiguous"

  def all(side: String): Dataset[Entry] = work.load[Entry](work.parts(s"$side-"): _*)

  /** Why the two sides are not apart, as a listing has found; None if they are. */
  def overlap: Option[String] =
    if (Seq(Source, Destination).forall(census(_).of(Kind.Failed) == 0)) None
    else IsOther.toSeq.flatMap { case (side, reason) =>
      all(side).filter(col("kind") === Kind.Failed && col("message") === reason).limit(1).collect().map(entry => s"$reason: ${Names.shown(entry.path)}")
    }.headOption

  /** What is there, without what the listing says besides. */
  def entries(side: String): Dataset[Entry] = {
    val found = all(side).filter(!col("kind").isin(Kind.Pending, Kind.Failed, Kind.OtherFileSystem, Kind.Temporary, Kind.WorkingDirectory))
    if (work.has(ambiguous(side))) found.join(work.load[Entry](ambiguous(side)).select("path"), Seq("path"), "left_anti").as[Entry] else found
  }

  def census(side: String): Census = Option(counted.get(side)).getOrElse(censusOf(work.parts(s"$side-"): _*))

  private def censusOf(parts: String*): Census = {
    val rows = work.load[Entry](parts: _*).groupBy("kind").agg(count(lit(1)), coalesce(sum("size"), lit(0L))).collect()
    Census(rows.map(row => row.getString(0) -> row.getLong(1)).toMap, rows.find(_.getString(0) == Kind.File).fold(0L)(_.getLong(2)))
  }
}

private[sync] object Listings {
  private val TasksPerCore = 3
  /** The first round only finds work for all tasks. */
  private val FirstEntries = 2000L
  private val MaxEntries = 500000L
  private val MaxAmbiguous = 1000000
  private val IsBoth = "it is an object and a directory at once, which only an object store can express"

  /** Why a directory takes no part: with links apart, there are many ways to one directory, and a mount is another. */
  private val IsOther = Map(Source -> "the source contains the destination", Destination -> "the destination contains the source")

  /** Whether an entry is the root of the other side. */
  def isOther(entry: Entry): Boolean = entry.kind == Kind.Failed && entry.message.exists(IsOther.values.toSeq.contains)

  private def open(site: Site, side: String): Tree = if (side == Source) site.openSource() else site.openDestination()

  private def listing(site: Site, side: String, top: Option[Entry], most: Long, directories: Iterator[String]): Iterator[Entry] = {
    val tree = open(site, side)
    open(site, if (side == Source) Destination else Source).whole.identity.foreach(tree.whole.exclude(_, IsOther(side)))
    top.iterator ++ new TreeListing(tree, directories.toVector, site.threads, most).flatMap { entry =>
      if (entry.kind != Kind.WorkingDirectory || Paths.name(entry.path) != site.names.working) Some(entry)
      // Whatever the two are called, they are the same, or one is in the other.
      else Option.when(side == Source)(entry.copy(kind = Kind.Failed, message = Some(IsOther(side))))
    }
  }
}
