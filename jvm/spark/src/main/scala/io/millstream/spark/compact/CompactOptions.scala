package io.millstream.spark.compact

import java.util.Locale

import org.apache.spark.network.util.JavaUtils

/** A failure whose message is for the user. */
class CompactFailure(message: String) extends RuntimeException(message)

/** The action. */
private[spark] sealed trait CompactAction

private[spark] object CompactAction {

  /** Merge files. */
  case object Merge extends CompactAction

  /** Put back the files that a compaction in place replaced. */
  case object Undo extends CompactAction

  /** Remove those files. */
  case object Purge extends CompactAction
}

/** The user's statement about first lines. */
private[spark] sealed trait FirstLines

private[spark] object FirstLines {

  /** They are headers. */
  case object Headers extends FirstLines

  /** They are lines like the others. */
  case object Lines extends FirstLines

  /** Nothing. */
  case object Unknown extends FirstLines
}

/**
 * Options of a compaction.
 *
 * @param source a directory; "" if a table determines it
 * @param destination directory of the outputs; none if they replace their inputs
 * @param format `same`, `text` or `parquet`
 * @param codec codec of the outputs; by default that of the inputs
 * @param lines extensions, such as `.dat`, of files that the user knows to consist of lines
 * @param copyLeft whether files that cannot be merged are copied to the destination unchanged
 * @param table the table whose files are replaced
 * @param plainFiles whether the user says that no table format and no other program keeps a list of the files
 * @param keepSeconds how long replaced files are kept; 0 to not keep them
 */
final case class CompactOptions(
    action: CompactAction,
    source: String,
    destination: Option[String],
    targetBytes: Long,
    format: String,
    codec: Option[Codec],
    firstLines: FirstLines,
    lines: Set[String],
    copyLeft: Boolean,
    dryRun: Boolean,
    table: Option[String],
    plainFiles: Boolean,
    keepSeconds: Long) {

  def inPlace: Boolean = destination.isEmpty

  def header: Boolean = firstLines == FirstLines.Headers
}

object CompactOptions {
  val Same = "same"
  val Text = "text"
  val Parquet = "parquet"

  private val Known = Set(
    "source",
    "destination",
    "in-place",
    "target-size",
    "format",
    "codec",
    "header",
    "no-header",
    "lines",
    "copy-left",
    "dry-run",
    "table",
    "plain-files",
    "keep-for",
    "undo",
    "purge")
  private val Ending = """\.[a-z0-9_-]+""".r

  /** Parses names and values from the command line or from Python. */
  def of(settings: Map[String, String]): CompactOptions = {
    settings.keys.find(!Known(_)).foreach(key => throw new CompactFailure(s"unknown option $key"))
    def isTrue(key: String) = settings.get(key).contains("true")
    val destination = settings.get("destination")
    val action = actionOf(isTrue("undo"), isTrue("purge"), isTrue("in-place"), destination)
    requireUsable(settings, action, destination, isTrue)
    val format = settings.getOrElse("format", Same)
    if (!Set(Same, Text, Parquet)(format))
      throw new CompactFailure(s"$format: not a format; choose same, text or parquet")
    val (codecs, of) = if (format == Parquet) (Codec.OfParquet, " of Parquet") else (Codec.OfLines, "")
    val codec = settings.get("codec").map(name =>
      Codec.named(name, codecs).getOrElse(
        throw new CompactFailure(s"$name: not a codec$of; choose from ${codecs.mkString(", ")}")))
    if (format == Parquet && isTrue("header"))
      throw new CompactFailure("a header applies to text files, not to Parquet")
    CompactOptions(
      action,
      settings.getOrElse("source", ""),
      destination,
      sizeOf(settings.getOrElse("target-size", "128m")),
      format,
      codec,
      firstLinesOf(isTrue("header"), isTrue("no-header")),
      settings.get("lines").fold(Set.empty[String])(extensionsOf),
      isTrue("copy-left"),
      isTrue("dry-run"),
      settings.get("table"),
      isTrue("plain-files"),
      if (isTrue("purge")) 0 else durationOf(settings.getOrElse("keep-for", "7d")))
  }

  private def actionOf(undo: Boolean, purge: Boolean, inPlace: Boolean, destination: Option[String]): CompactAction =
    if (undo && (purge || inPlace || destination.nonEmpty))
      throw new CompactFailure("--undo (undo=True) takes only a directory")
    else if (undo) CompactAction.Undo
    else if (purge && !inPlace && destination.isEmpty) CompactAction.Purge
    else CompactAction.Merge

  private def requireUsable(
      settings: Map[String, String],
      action: CompactAction,
      destination: Option[String],
      isTrue: String => Boolean): Unit = {
    val table = settings.get("table")
    if (settings.get("source").isEmpty && (table.isEmpty || action != CompactAction.Merge))
      throw new CompactFailure("no directory was given")
    if (action == CompactAction.Merge) {
      if (destination.isEmpty != isTrue("in-place"))
        throw new CompactFailure("specify either a destination or --in-place (in_place=True)")
      if (destination.isEmpty && isTrue("copy-left")) {
        throw new CompactFailure("in-place compaction copies nothing: files that cannot be merged stay where they are")
      }
      if (destination.nonEmpty) {
        Seq("table", "plain-files", "keep-for", "purge").find(settings.contains).foreach(key =>
          throw new CompactFailure(s"--$key is only for a compaction in place"))
      }
      if (table.nonEmpty && isTrue("plain-files"))
        throw new CompactFailure(
          "--table and --plain-files are mutually exclusive: the catalog knows the format of a table")
    }
  }

  private def firstLinesOf(header: Boolean, noHeader: Boolean): FirstLines =
    if (header && noHeader) throw new CompactFailure("--header and --no-header are mutually exclusive")
    else if (header) FirstLines.Headers
    else if (noHeader) FirstLines.Lines
    else FirstLines.Unknown

  private def sizeOf(text: String): Long = {
    val bytes =
      try JavaUtils.byteStringAsBytes(text)
      catch {
        case _: IllegalArgumentException => throw new CompactFailure(s"$text: not a size; write it like 128M")
      }
    if (bytes <= 0) throw new CompactFailure(s"$text: the target size must be positive")
    bytes
  }

  private def durationOf(text: String): Long = {
    def refused = new CompactFailure(s"$text: not a duration; write it like 7d, 12h or 30min")
    // Spark takes a number without a unit as seconds.
    if (text.trim.forall(_.isDigit) && text.exists(_ != '0')) throw refused
    val seconds =
      try JavaUtils.timeStringAsSec(text)
      catch {
        case _: IllegalArgumentException => throw refused
      }
    if (seconds < 0) throw new CompactFailure(s"$text: the time to keep files must not be negative")
    seconds
  }

  private def extensionsOf(text: String): Set[String] = text.toLowerCase(Locale.ROOT).split(',').map(_.trim).map {
    case ending @ Ending() => ending
    case other => throw new CompactFailure(s"$other: not a file name extension; write extensions like .dat,.tbl")
  }.toSet
}
