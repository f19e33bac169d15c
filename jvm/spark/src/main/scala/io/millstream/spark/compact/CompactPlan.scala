package io.millstream.spark.compact

import java.io.IOException
import java.util.Locale

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import io.millstream.hadoop.codec.FileCodec
import io.millstream.hadoop.compact.NativeCompaction
import io.millstream.hadoop.listing.{DatasetNames, DirectoryListing}
import io.millstream.hadoop.reading.FileRanges
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.hadoop.io.compress.CompressionCodecFactory

/** How an output is written. */
private[spark] sealed trait Making extends Serializable

/** Natively, byte for byte. */
private[spark] case object Concatenate extends Making

/** With Hadoop's codecs: lines of plain and compressed files, written with the codec of this Hadoop name, or plain. */
private[spark] final case class Recode(codec: Option[String]) extends Making

/** With Spark's own reader and writer. */
private[spark] final case class Rewrite(fromParquet: Boolean, toParquet: Boolean) extends Making

/**
 * An output file.
 *
 * @param directory path of its directory below the root, "" for the root
 * @param inputs its input files
 * @param unmerged the reason why a single input is copied instead of merged
 * @param isJson whether each line of the inputs must be a JSON value
 */
private[spark] final case class Output(
    id: Int,
    directory: String,
    name: String,
    making: Making,
    inputs: FileRanges,
    files: Int,
    bytes: Long,
    unmerged: Option[String] = None,
    isJson: Boolean = false) {

  def isUnmerged: Boolean = unmerged.nonEmpty

  /** Whether it is an exact copy of a single input. */
  def isCopy: Boolean = making == Concatenate && files == 1

  /** The location of its inputs for messages. */
  def path(root: String): String = if (directory.isEmpty) root else s"$root/$directory"

  /** The inputs with their names and sizes. */
  def members: Iterator[Member] = inputs.each.asScala.iterator.map { one =>
    val file = one.cursor()
    file.next()
    Member(one, file.name, file.size)
  }

  /** The inputs' paths. */
  def paths: Seq[HadoopPath] = {
    val file = inputs.cursor()
    Iterator.continually(file.next()).takeWhile(identity).map(_ => file.path).toSeq
  }

  /** Outputs that copy each input unchanged; their numbers are still to be assigned. */
  def copies(reason: String): Iterator[Output] = members.map { member =>
    Output(0, directory, member.name, Concatenate, member.file, 1, member.size, Some(reason))
  }
}

/** An input. */
private[spark] final case class Member(file: FileRanges, name: String, size: Long)

/**
 * The plan of a compaction.
 *
 * @param keptFiles files that need no change
 * @param left directories whose files cannot be merged, and why
 * @param warning about the whole tree
 */
private[spark] final case class CompactPlan(
    directories: Int,
    files: Long,
    bytes: Long,
    outputs: IndexedSeq[Output],
    keptFiles: Long,
    left: Seq[NativeCompaction.Left],
    warning: Option[String] = None)

/**
 * Groups the files of each directory into outputs.
 *
 * Files of one kind are collected in name order until they reach the target size. A file that already has about that
 * size is kept, and so is a single small one.
 */
private[spark] final class CompactPlanner(
    options: CompactOptions,
    tree: SourceTree,
    conf: Configuration,
    runId: String) {
  import CompactPlanner._

  private val codecs = new CompressionCodecFactory(conf)
  private val outputs = mutable.ArrayBuffer.empty[Output]
  private val left = mutable.ArrayBuffer.empty[NativeCompaction.Left]
  private var files, bytes, keptFiles = 0L

  def plan(): CompactPlan = {
    val warning = CompactTables.check(tree, options)
    val byDirectory = mutable.LinkedHashMap.empty[String, mutable.ArrayBuffer[DirectoryListing]]
    val (expressible, others) = tree.listings().partition(_.directory != null)
    if (others.nonEmpty)
      left += new NativeCompaction.Left(
        tree.name,
        others.length,
        "these are directories whose names this JVM cannot represent")
    expressible.foreach(part => byDirectory.getOrElseUpdate(part.directory, mutable.ArrayBuffer.empty) += part)
    tree.refuseWrites(byDirectory.keys.toSeq)
    byDirectory.foreach { case (directory, parts) => planDirectory(tree.relative(directory), parts) }
    CompactPlan(
      byDirectory.count(_._2.exists(_.count > 0)),
      files,
      bytes,
      outputs.toIndexedSeq,
      keptFiles,
      left.toSeq,
      warning)
  }

  private def planDirectory(relative: String, parts: collection.Seq[DirectoryListing]): Unit = {
    val directory = if (relative.isEmpty) tree.name else s"${tree.name}/$relative"
    parts.find(_.errno != 0).foreach { failed =>
      val reason = s"cannot be listed (error ${failed.errno})"
      if (relative.isEmpty) throw new CompactFailure(s"$directory: $reason; is it a directory that you may read?")
      left += new NativeCompaction.Left(directory, 0, reason)
    }
    Seq(
      parts.iterator.map(_.inexpressible.toLong).sum -> "files whose names this JVM cannot represent",
      parts.iterator.map(_.unexamined.toLong).sum -> "files that cannot be examined").foreach { case (count, reason) =>
      if (count > 0) left += new NativeCompaction.Left(directory, count, reason)
    }
    val entries = parts.flatMap(part => (0 until part.count).map(Entry(part, _)).filter(_.isData))
    files += entries.length
    bytes += entries.iterator.map(_.size).sum
    val names = new Names(relative)
    entries.groupBy(entry => familyOf(entry.name)).toSeq.sortBy(_._1.toString).foreach {
      case (Unknown(reason), of) if options.copyLeft =>
        of.sortBy(_.name).foreach(entry =>
          outputs += output(relative, entry.name, Concatenate, Seq(entry)).copy(unmerged = Some(reason)))
      case (Unknown(reason), of) =>
        left += new NativeCompaction.Left(directory, of.length, reason)
      case (family: Known, of) => planFamily(relative, family, of.sortBy(_.name), names)
    }
  }

  private def familyOf(name: String): Family = Family.of(name, options, codecs) match {
    case Rows(true, _, _, _) if tree.fileSystem.getScheme == "file" && name.contains(':') =>
      Unknown("Spark cannot open local Parquet files with a colon in their names; rename them without it")
    case family => family
  }

  private def planFamily(relative: String, family: Known, entries: collection.Seq[Entry], names: Names): Unit = {
    val converts = entries.map(entry => family.converts(entry.name, options, codecs))
    def isKept(group: collection.Seq[Int]) = group.length == 1 && !converts(group.head)
    val groups = group(entries, converts)
    keptFiles += groups.count(isKept)
    groups.foreach { group =>
      val members = group.map(entries)
      if (!isKept(group)) {
        val making =
          if (members.exists(entry => Codec.ofFile(entry.name, codecs).nonEmpty)) family.recoding else family.making
        outputs += output(relative, names.next(family), making, members).copy(isJson = family.isJson)
      } else if (!options.inPlace) {
        outputs += output(relative, members.head.name, Concatenate, members)
      }
    }
  }

  /** Groups of indices; each group becomes one file. */
  private def group(entries: collection.Seq[Entry], converts: collection.Seq[Boolean]): Seq[collection.Seq[Int]] = {
    val groups = mutable.ArrayBuffer.empty[mutable.ArrayBuffer[Int]]
    var open = mutable.ArrayBuffer.empty[Int]
    var size = 0L
    entries.indices.foreach { i =>
      val next = entries(i).size
      if (!converts(i) && next >= options.targetBytes * Large) {
        groups += mutable.ArrayBuffer(i)
      } else {
        if (open.nonEmpty && (size >= options.targetBytes || size + next > options.targetBytes * Overfull)) {
          groups += open
          open = mutable.ArrayBuffer.empty
          size = 0
        }
        open += i
        size += next
      }
    }
    if (open.nonEmpty) groups += open
    groups.toSeq
  }

  private def output(relative: String, name: String, making: Making, members: collection.Seq[Entry]): Output = {
    val inputs = new FileRanges.Builder(tree.fileSystem)
    members.foreach(entry => inputs.add(entry.listing, entry.index, true, 0, entry.size))
    Output(outputs.length, relative, name, making, inputs.build(), members.length, members.iterator.map(_.size).sum)
  }

  /** Generates unused names for the outputs of one directory. */
  private final class Names(directory: String) {
    private var count = 0

    def next(family: Known): String = {
      val name = f"part-$count%05d-$runId${family.suffix(codecs)}"
      count += 1
      if (name.length > 255) throw new IOException(s"$directory: no name for an output")
      name
    }
  }
}

private[spark] object CompactPlanner {

  /** A file of at least this fraction of the target size is kept. */
  private val Large = 0.75

  /** An output has at most this multiple of the target size. */
  private val Overfull = 1.25

  /** The form of an extension. Numbers, dates and backup marks after the last dot of a name are not extensions. */
  private val Word = """\.[a-z][a-z0-9_]*""".r
  private val Delimited = Set(".csv", ".tsv")
  private val OfJson = Set(".json", ".jsonl", ".ndjson")

  /**
   * Extensions of files of lines. Hive, Hadoop and Spark write some without an extension: `000000_0`, `part-m-00000`,
   * `part-00000-UUID-c000`.
   */
  private val OfLines = Set("", ".txt", ".text", ".log") ++ Delimited ++ OfJson

  /**
   * Spark's names for files of dynamic partitions, which have no extension in Hive's text tables. Elsewhere it writes
   * `-c000`.
   */
  private val OfPartition = """part-\d+-[0-9a-f-]{36}\.c\d{3,}""".r

  /**
   * The beginning of Spark's names for bucket files: `part-00000-UUID_00003.c000.txt`. Names may have line breaks.
   */
  private val Bucket = """(?s)part-\d+-[0-9a-f-]{36}_\d{5}(\D.*)?""".r

  private final case class Entry(listing: DirectoryListing, index: Int) {
    val name: String = listing.name(index)
    def size: Long = listing.size(index)
    def isData: Boolean = DatasetNames.isData(name)
  }

  private def codecExtension(codec: Option[String], codecs: CompressionCodecFactory): String =
    codec.fold("")(Codec.ofHadoop(_, codecs).getDefaultExtension)

  /** Files that can be merged with each other. */
  private sealed trait Family

  private final case class Unknown(reason: String) extends Family

  private sealed trait Known extends Family {
    def making: Making
    def recoding: Making

    /** Whether a file must be rewritten even if it is large enough. */
    def converts(name: String, options: CompactOptions, codecs: CompressionCodecFactory): Boolean
    def suffix(codecs: CompressionCodecFactory): String

    /** Whether each line must be a JSON value. */
    def isJson: Boolean = false
  }

  /**
   * Text files that become text files.
   *
   * @param extension the name's extension, not counting a codec's: files with different extensions are not merged
   */
  private final case class Lines(codec: Option[String], extension: String, override val isJson: Boolean) extends Known {
    override def making: Making = if (codec.isEmpty) Concatenate else recoding
    override def recoding: Making = Recode(codec)
    override def converts(name: String, options: CompactOptions, codecs: CompressionCodecFactory): Boolean =
      Family.codecOf(name, codecs) != codec
    override def suffix(codecs: CompressionCodecFactory): String = extension + codecExtension(codec, codecs)
  }

  /** @param linesCodec Hadoop's name of the codec for output lines */
  private final case class Rows(
      fromParquet: Boolean,
      toParquet: Boolean,
      linesCodec: Option[String],
      override val isJson: Boolean = false) extends Known {
    override def making: Making = Rewrite(fromParquet, toParquet)
    override def recoding: Making = making
    override def converts(name: String, options: CompactOptions, codecs: CompressionCodecFactory): Boolean =
      fromParquet != toParquet || options.codec.nonEmpty
    override def suffix(codecs: CompressionCodecFactory): String =
      if (toParquet) ".parquet" else ".txt" + codecExtension(linesCodec, codecs)
  }

  private object Family {
    private val NoExtension =
      Unknown("the text after the last dot of the name is not a file name extension, as in data.csv.1, data.csv~ or data.2024-01-01; if " +
        "these files consist of lines, rename them so that they have an extension (data.1.csv) or no dot")

    def of(name: String, options: CompactOptions, codecs: CompressionCodecFactory): Family = {
      val lower = name.toLowerCase(Locale.ROOT)
      if (lower.endsWith(".orc")) {
        Unknown("ORC files are not merged")
      } else if (lower.endsWith(".avro")) {
        Unknown("Avro files are not merged")
      } else if (Bucket.matches(lower)) {
        Unknown("the files of a bucketed table have their bucket numbers in their names")
      } else if (lower.endsWith(".parquet") || lower.endsWith(".parq")) {
        val toParquet = options.format != CompactOptions.Text
        Rows(fromParquet = true, toParquet, if (toParquet) None else options.codec.flatMap(_.hadoop))
      } else {
        val written = extensionOf(name, codecs)
        val extension = written.toLowerCase(Locale.ROOT)
        val isJson = OfJson(extension) && !options.lines(extension)
        whyNotLines(extension, options).getOrElse {
          if (options.format == CompactOptions.Parquet) Rows(fromParquet = false, toParquet = true, None, isJson)
          else Lines(options.codec.fold(codecOf(name, codecs))(_.hadoop), written, isJson)
        }
      }
    }

    /** Why files with this extension are not joined; None if they are. */
    private def whyNotLines(extension: String, options: CompactOptions): Option[Unknown] =
      if (options.lines(extension)) None
      else if (extension.nonEmpty && !Word.matches(extension)) Some(NoExtension)
      else if (!OfLines(extension)) Some(
        Unknown(
          s"$extension is not a known extension of files that consist of lines; if these do, add --lines=$extension (lines=[\"$extension\"])"))
      else if (Delimited(extension) && options.firstLines == FirstLines.Unknown) {
        Some(Unknown(
          s"$extension files may begin with a header: specify --header (header=True) or --no-header (header=False)"))
      } else None

    /** Hadoop's name of the codec that a file's name indicates. */
    def codecOf(name: String, codecs: CompressionCodecFactory): Option[String] =
      Codec.ofFile(name, codecs).map(FileCodec.hadoops(_).getSimpleName.stripSuffix("Codec").toLowerCase(Locale.ROOT))

    /**
     * The extension with its dot, not counting a codec's; "" if the only dot is that of Spark's number.
     */
    private def extensionOf(name: String, codecs: CompressionCodecFactory): String = {
      val extension = Codec.ofFile(name, codecs).map(_.getDefaultExtension).getOrElse("")
      val bare = name.dropRight(extension.length)
      val dot = bare.lastIndexOf('.')
      if (dot < 0 || OfPartition.matches(bare)) "" else bare.substring(dot)
    }
  }
}
