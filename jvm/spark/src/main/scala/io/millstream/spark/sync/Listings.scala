package io.millstream.spark.sync

import java.util.concurrent.{Callable, ConcurrentHashMap, ExecutionException, Executors}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Dataset, Encoder, Encoders, SparkSession}
import org.apache.spark.sql.functions.{coalesce, col, count, lit, sum}

import WorkingDirectory._

/** Numbers of entries by kind, and the bytes of files. */
private[sync] final case class Census(counts: Map[String, Long], bytes: Long) {
  def of(kind: String): Long = counts.getOrElse(kind, 0L)

  def all: Long = counts.values.sum

  def +(other: Census): Census =
    Census(
      other.counts.foldLeft(counts) { case (sum, (kind, count)) => sum.updated(kind, sum.getOrElse(kind, 0L) + count) },
      bytes + other.bytes)
}

/** The entry at a path that is listed or only leads to listed paths. */
final case class Looked(isListed: Boolean, entry: Entry)

/** Selects the directories below which a listing descends. */
private[sync] sealed trait Descent
private[sync] object Descent {
  case object All extends Descent

  /** Directories that are not in a list of files. */
  case object ToKnown extends Descent
  case object None extends Descent
}

/**
 * Lists both sides with tasks, in rounds: directories that a round has found but not listed are the work of the next.
 *
 * With a list of files, its paths and those that lead to them are looked up one by one, and listings begin at those
 * whose contents take part ([[FileList]]). In the destination, only paths of the source are looked up, so other entries
 * do not take part. A path can be found in both ways; it counts once.
 *
 * @param files the only paths that take part; None for all
 * @param delete whether entries may be deleted, so that all surplus ones have to be known
 */
private[sync] final class Listings(
    session: SparkSession,
    work: WorkingDirectory,
    site: Site,
    files: Option[FileList],
    delete: Boolean,
    describing: Jobs) {
  import Listings._

  private val context = session.sparkContext

  /** The counts of this run's parts, for each side. */
  private val counted = new ConcurrentHashMap[String, Census]

  /** Lists both sides. `tops` are their roots, as far as they exist. */
  def make(tops: Map[String, Entry]): Unit = {
    files match {
      case Some(files) => makeOf(files, tops.contains(Destination))
      case None => makeWhole(tops)
    }
    tops.keys.filter(open(site, _).capabilities.impliesDirectories).foreach(noteAmbiguous)
  }

  private def makeWhole(tops: Map[String, Entry]): Unit = {
    val threads = Executors.newFixedThreadPool(2, InFlight.daemon)
    try {
      val sides = Seq(Source -> site.source, Destination -> site.destination)
      val listings = sides.map { case (side, root) =>
        new Callable[Unit] {
          override def call(): Unit = list(
            side,
            root,
            session.createDataset(tops.get(side).map(_.path).toSeq),
            tops.get(side).size,
            first = tops.get(side))
        }
      }
      threads.invokeAll(listings.asJava).asScala.foreach(_.get)
    } catch {
      case e: ExecutionException => throw e.getCause
    } finally {
      threads.shutdownNow()
    }
  }

  private def makeOf(files: FileList, hasDestination: Boolean): Unit = {
    val site = this.site
    val known = files.paths
    val tasks = tasksFor(known.length)
    val filter = site.openFilter()
    val entered = session.createDataset(files.entered(path =>
      path.nonEmpty && filter.exists(_.hides(path, isDirectory = true)))).toDF("path")
    def list(
        side: String,
        root: String,
        directories: Dataset[String],
        part: String = "",
        descends: Descent = Descent.ToKnown): Unit =
      this.list(side, root, directories, directories.count(), part = part, descends = descends)
    def listEntered(side: String, root: String): Unit = {
      val found = entries(side).filter(col("kind") === Kind.Directory).join(
        entered,
        Seq("path"),
        "left_semi").select("path").as[String]
      list(side, root, found, descends = if (files.isRecursive) Descent.ToKnown else Descent.None)
    }
    describing(s"look up ${known.length} listed paths of ${site.source}") {
      work.save(AtListed, session.createDataset(known).repartition(tasks).mapPartitions(looked(site, _)))
      val found = work.load[Looked](AtListed)
      val listed = found.filter(col("isListed")).select("entry.*").as[Entry]
      val leading =
        listed.filter(col("kind") =!= Kind.Failed).flatMap(entry => Paths.ancestors(entry.path)).distinct().toDF("path")
      // A directory inside a listed one takes part even if a filter excludes everything that it leads to.
      val above = found.filter(!col("isListed")).select("entry.*").join(
        leading.union(entered),
        Seq("path"),
        "left_semi").as[Entry]
      work.save(s"$Source-listed", listed.union(above))
    }
    listEntered(Source, site.source)
    describing(s"look up the listed paths of ${site.destination}") {
      val wanted = work.load[Entry](s"$Source-listed").filter(lit(
        hasDestination) && col("kind") =!= Kind.Failed).select("path").as[String]
      work.save(s"$Destination-listed", wanted.repartition(tasks).mapPartitions(present(site, _)))
    }
    listEntered(Destination, site.destination)
    if (hasDestination) describing(s"look for leftovers of earlier runs in ${site.destination}") {
      val found = work.load[Entry](s"$Destination-listed").filter(col("kind") === Kind.Directory).join(
        entered,
        Seq("path"),
        "left_anti")
      val directories =
        found.select("path").as[String].union(session.createDataset(Seq("").filterNot(files.names))).distinct()
      work.save(s"$Destination-leftovers", directories.repartition(tasks).mapPartitions(leftovers(site, _)))
    }
    if (delete) {
      // Directories that only the destination has are deleted with all their contents.
      val isRecursive = files.isRecursive
      val unlisted =
        entries(Destination).filter(entry => entry.isDirectory && (!isRecursive || site.isKnown(entry.path)))
      val directories = entries(Source).filter(col("kind") === Kind.Directory)
      val surplus = unlisted.join(directories.select("path"), Seq("path"), "left_anti").select("path").as[String]
      list(Destination, site.destination, surplus, part = "surplus", descends = Descent.All)
    }
    Seq(Source, Destination).foreach(side => counted.put(side, censusOnce(side)))
  }

  /** Counts entries that were found twice once. */
  private def censusOnce(side: String): Census = {
    val says = all(side).filter(!isEntry)
    censusOf(says.union(entries(side)))
  }

  private def tasksFor(count: Long): Int =
    math.max(1, math.min(count, context.defaultParallelism.toLong * TasksPerCore)).toInt

  /**
   * Lists directories and their contents.
   *
   * @param count their number
   * @param first an additional entry
   * @param part prefix of the parts' names after the side
   * @param descends selects the directories in them to list
   */
  private def list(
      side: String,
      root: String,
      given: Dataset[String],
      count: Long,
      first: Option[Entry] = None,
      part: String = "",
      descends: Descent = Descent.All): Unit = {
    var directories = given
    var left = count
    var round = 0
    do {
      val tasks = tasksFor(left)
      val most = if (round == 0) FirstEntries else MaxEntries
      val (site, begin, name) = (this.site, first.filter(_ => round == 0), s"$side-$part$round")
      describing(s"list $root, round ${round + 1}: $left directories") {
        val found = (if (tasks > 1) directories.repartition(tasks) else directories.coalesce(1)).mapPartitions(listing(
          site,
          side,
          begin,
          most,
          descends,
          _))
        work.save(name, found)
        val census = if (round == 0 && left == 0) Census(Map.empty, 0) else censusOf(work.load[Entry](name))
        counted.merge(side, census, _ + _)
        left = census.of(Kind.Pending)
        directories = work.load[Entry](name).filter(col("kind") === Kind.Pending).select("path").as[String]
      }
      round += 1
    } while (left > 0)
  }

  /**
   * An object and the prefix of others can have the same path, which no other file system can have: neither takes part.
   */
  private def noteAmbiguous(side: String): Unit = {
    val names = found(side).select("path", "kind")
    // With a list, one entry may have been found twice.
    val once = if (files.isEmpty) names else names.distinct()
    val twice = once.groupBy("path").agg(count(lit(1)).as("times")).filter(col(
      "times") > 1).select("path").as[String].limit(MaxAmbiguous).collect()
    if (twice.nonEmpty) {
      work.save(ambiguous(side), session.createDataset(twice.toSeq).map(Entry(_, Kind.Failed, message = Some(IsBoth))))
      counted.merge(side, Census(Map(Kind.Failed -> twice.length.toLong), 0), _ + _)
    }
  }

  private def ambiguous(side: String) = s"$side-ambiguous"

  def all(side: String): Dataset[Entry] = work.load[Entry](work.parts(s"$side-"): _*)

  /** Why the two sides overlap, according to a listing; None if they do not. */
  def overlap: Option[String] =
    if (Seq(Source, Destination).forall(census(_).of(Kind.Failed) == 0)) None
    else IsOther.toSeq.flatMap { case (side, reason) =>
      all(side).filter(col("kind") === Kind.Failed && col("message") === reason).limit(1).collect().map(entry =>
        s"$reason: ${Names.shown(entry.path)}")
    }.headOption

  /** The entries of a listing, without its other findings. */
  def entries(side: String): Dataset[Entry] = {
    val once = if (files.isEmpty) found(side) else found(side).dropDuplicates("path")
    if (work.has(ambiguous(side)))
      once.join(work.load[Entry](ambiguous(side)).select("path"), Seq("path"), "left_anti").as[Entry]
    else once
  }

  private def found(side: String): Dataset[Entry] = all(side).filter(isEntry)

  private def isEntry =
    !col("kind").isin(Kind.Pending, Kind.Failed, Kind.OtherFileSystem, Kind.Temporary, Kind.WorkingDirectory)

  def census(side: String): Census =
    Option(counted.get(side)).getOrElse(if (files.isEmpty) censusOf(all(side)) else censusOnce(side))

  private def censusOf(entries: Dataset[Entry]): Census = {
    val rows = entries.groupBy("kind").agg(count(lit(1)), coalesce(sum("size"), lit(0L))).collect()
    Census(
      rows.map(row => row.getString(0) -> row.getLong(1)).toMap,
      rows.find(_.getString(0) == Kind.File).fold(0L)(_.getLong(2)))
  }
}

private[sync] object Listings {
  private implicit val encodesLooks: Encoder[Looked] = Encoders.product[Looked]
  private implicit val encodesNames: Encoder[FileList.Known] = Encoders.product[FileList.Known]
  private val TasksPerCore = 3

  /** The first round only finds work for all tasks. */
  private val FirstEntries = 2000L
  private val MaxEntries = 500000L
  private val MaxAmbiguous = 1000000

  /** The entries at listed paths. */
  private val AtListed = s"$Source.listed"
  private val Missing = "it is listed, but does not exist"
  private val IsBoth = "it is both an object and a directory, which only an object store can represent"

  /**
   * Why the root of the other side does not take part. Even without links it may be reached in several ways, such as by
   * a bind mount.
   */
  private val IsOther =
    Map(Source -> "the source contains the destination", Destination -> "the destination contains the source")

  /** Whether an entry is the root of the other side. */
  def isOther(entry: Entry): Boolean = entry.kind == Kind.Failed && entry.message.exists(IsOther.values.toSeq.contains)

  private def open(site: Site, side: String): Tree = if (side == Source) site.openSource() else site.openDestination()

  /** One side, without the root of the other. */
  private def openApart(site: Site, side: String): Tree = {
    val tree = open(site, side)
    open(site, if (side == Source) Destination else Source).whole.identity.foreach(tree.whole.exclude(_, IsOther(side)))
    tree
  }

  /**
   * The source's entries at paths, as far as they take part. Directories that lead to listed paths are not
   * filtered.
   */
  private def looked(site: Site, paths: Iterator[FileList.Known]): Iterator[Looked] = {
    val (tree, filter) = (openApart(site, Source).whole, site.openFilter())
    def look(path: FileList.Known): Option[Looked] = {
      val found =
        try tree.lookUp(path.path)
        catch {
          case e if Tree.isOfEntry(e) => Some(Entry(path.path, Kind.Failed, message = Some(Tree.oneLine(e))))
        }
      def isHidden(entry: Entry) = path.path.nonEmpty && filter.exists(_.hides(path.path, entry.isDirectory))
      found match {
        case Some(entry) if path.isListed && (entry.kind == Kind.Failed || !isHidden(entry)) =>
          Some(Looked(isListed = true, entry))
        case Some(entry) =>
          Option.when(path.leads && (entry.isDirectory || Listings.isOther(entry)))(Looked(isListed = false, entry))
        case None =>
          Option.when(path.isListed)(Looked(isListed = true, Entry(path.path, Kind.Failed, message = Some(Missing))))
      }
    }
    new InFlight[FileList.Known, Option[Looked]](paths, site.threads, look).flatten
  }

  /** The destination's entries at paths. */
  private def present(site: Site, paths: Iterator[String]): Iterator[Entry] = {
    val tree = openApart(site, Destination)
    def look(path: String) =
      try tree.lookUp(path)
      catch {
        case e if Tree.isOfEntry(e) => Some(Entry(path, Kind.Failed, message = Some(Tree.oneLine(e))))
      }
    new InFlight[String, Option[Entry]](paths, site.threads, look).flatten
  }

  /** Leftovers of interrupted runs in directories. */
  private def leftovers(site: Site, directories: Iterator[String]): Iterator[Entry] =
    listing(site, Destination, None, Long.MaxValue, Descent.None, directories).filter(entry =>
      Set(Kind.Temporary, Kind.WorkingDirectory)(entry.kind))

  private def listing(
      site: Site,
      side: String,
      first: Option[Entry],
      most: Long,
      descends: Descent,
      directories: Iterator[String]): Iterator[Entry] = {
    val tree = openApart(site, side)
    def enters(directory: String) = descends == Descent.All || descends == Descent.ToKnown && !site.isKnown(directory)
    first.iterator ++ new TreeListing(tree, directories.toVector, site.threads, most, enters).flatMap { entry =>
      if (entry.kind != Kind.WorkingDirectory || Paths.name(entry.path) != site.names.working) Some(entry)
      // Whatever their names, the two are the same, or one contains the other.
      else Option.when(side == Source)(entry.copy(kind = Kind.Failed, message = Some(IsOther(side))))
    }
  }
}
