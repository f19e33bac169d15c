package io.millstream.spark.formats

import FormatsRow._
import FormatsText.{bytes, seconds, times}

/**
 * The recommendation for the files of one source, based only on the measured figures.
 *
 * @param format None if Millstream has read no format correctly
 */
final case class FormatsAdvice(source: String, format: Option[String], sentences: Seq[String])

object FormatsAdvice {

  /** Times that differ by less than this count as equal. */
  private val Noise = 1.1
  private val ShortS = 1.0

  /** @param cores how many tasks ran at once */
  def of(rows: Seq[FormatsRow], cores: Int): Seq[FormatsAdvice] = rows.map(_.source).distinct.map { source =>
    val ofSource = rows.filter(_.source == source)
    val formats = read(ofSource, Millstream)
    if (formats.isEmpty) FormatsAdvice(
      source,
      None,
      "Nothing to recommend: no format was read correctly and in time with Millstream." +: wrongRows(ofSource))
    else {
      val advice = new FormatsAdvice.Figures(ofSource, formats, cores)
      FormatsAdvice(
        source,
        Some(advice.best.name),
        advice.choice ++ advice.gain ++ advice.repartition ++ advice.changes ++ wrongRows(ofSource))
    }
  }

  /** A format that was read correctly. */
  private final case class Format(name: String, bytes: Long, figures: FormatsFigures) {
    def wallS: Double = figures.wallS

    /** The quantity that the recommended format minimises: half the size is worth twice the time. */
    def cost: Double = bytes * wallS

    def shown: String = s"$name (${FormatsText.bytes(bytes)}, ${seconds(wallS)})"
  }

  private def read(rows: Seq[FormatsRow], engine: String): Seq[Format] =
    rows.filter(row => row.job == Read && row.engine == engine).flatMap(row =>
      row.measured.map(Format(row.format, row.bytes, _)))

  /** Silently lost rows are the worst result. */
  private def wrongRows(rows: Seq[FormatsRow]): Seq[String] =
    (for (row <- rows.filter(_.problem.isDefined); figures <- row.figures) yield {
      val found = s"${figures.rows} of the ${row.lines} rows of ${row.format}"
      s"${FormatsText.engine(row.engine)} returns $found, without an error: do not use it where ${row.format} is read."
    }).distinct

  private final class Figures(rows: Seq[FormatsRow], formats: Seq[Format], cores: Int) {
    val best: Format = formats.minBy(_.cost)
    private val stock = read(rows, Stock)
    private val fastest = formats.minBy(_.wallS)
    private val smallest = formats.minBy(_.bytes)

    private def figures(job: String, engine: String): Option[FormatsFigures] =
      rows.find(row => row.format == best.name && row.job == job && row.engine == engine).flatMap(_.measured)

    def choice: Seq[String] = {
      val plain = formats.find(_.name == "none").filter(_ => best.name != "none")
      val saved = plain.fold("")(plain => s", ${times(plain.bytes.toDouble / best.bytes)} smaller than plain text")
      val reason = if (formats.length == 1) "It is the only format that was measured and read correctly."
      else
        "It has the smallest product of size and read time of all formats measured: half the size counts as much as half the time."
      s"Store this data as ${best.name} (${bytes(best.bytes)}, read in ${seconds(best.wallS)} with Millstream)$saved. $reason" +:
        (Option.when(fastest.wallS * Noise < best.wallS)(s"If only read time counts, store ${fastest.shown}.") ++
          Option.when(smallest.bytes < best.bytes)(s"If only size counts, store ${smallest.shown}.")).toSeq
    }

    def gain: Seq[String] = {
      val byStock = figures(Read, Stock).map { stock =>
        val ratio = stock.wallS / best.wallS
        val verdict =
          if (ratio >= Noise) s"Millstream is ${times(ratio)} as fast"
          else if (ratio * Noise > 1) "Millstream makes no difference"
          else "Millstream is slower"
        s"Stock Spark takes ${seconds(stock.wallS)} for ${best.name}, Millstream ${seconds(best.wallS)}: $verdict."
      }
      val choice = stock.minByOption(_.cost).filter(_.name != best.name).map(other =>
        s"For stock Spark, the same rule would choose ${other.shown}.")
      val first = figures(FirstRead, Millstream).map(first =>
        s"The first read of each file takes ${seconds(first.wallS)}, because it makes the file's index.")
      (byStock ++ choice ++ first).toSeq
    }

    def repartition: Seq[String] = figures(Repartition, Millstream).map { after =>
      val tasks = best.figures.partitions
      val readers = if (tasks == 1) "One task reads the file" else s"$tasks tasks read the file"
      val verdict = if (tasks >= cores) s"enough for $cores cores, so a repartition is not needed"
      else s"of $cores that could run, so a repartition pays if the work on the rows takes longer than that"
      s"With a repartition the read takes ${seconds(after.wallS)} instead of ${seconds(best.wallS)}. $readers, $verdict."
    }.toSeq

    /** Conditions under which the recommendation would differ. */
    def changes: Seq[String] = slowerStorage ++ moreCores ++ fromElsewhere ++ largerSample

    private def largerSample: Option[String] = Option.when(formats.map(_.wallS).max < ShortS) {
      "All reads are so short that much of the time is Spark's own overhead, whatever the format; a larger --sample will tell more."
    }

    private def moreCores: Seq[String] = {
      val (divided, whole) = formats.partition(_.figures.partitions > 1)
      def names(formats: Seq[Format]) = formats.map(_.name).mkString(", ")
      if (divided.isEmpty) Seq(
        "More cores make no difference for a file of this size, which one task reads in each format; try a larger --sample.")
      else if (whole.isEmpty) Seq("More cores speed up all of these formats.")
      else Seq(s"More cores speed up ${names(divided)}; one task reads all of a file in ${names(whole)}.")
    }

    /** The bandwidth below which a smaller format is also read faster, because its bytes arrive sooner. */
    private def slowerStorage: Seq[String] =
      formats.filter(_.bytes < best.bytes).maxByOption(other => best.bytes / other.wallS) match {
        case Some(other) =>
          val perS = (best.bytes / other.wallS).toLong
          Seq(
            s"Slower storage favors small formats: where it delivers less than ${bytes(perS)} per second, ${other.name} is read faster than ${best.name}.")
        case None => Seq(s"Slower storage does not change the choice: ${best.name} is the smallest.")
      }

    private def fromElsewhere: Seq[String] = formats.filter(other =>
      other.name == "gz" && other.name != best.name).map { gz =>
      s"Files that arrive as gz are read in ${seconds(gz.wallS)}, ${times(gz.wallS / best.wallS)} the time of ${best.name}: rewrite them only if that matters."
    }
  }
}

/** Figures in human-readable form. */
private[spark] object FormatsText {
  private val Units = Seq("B", "KiB", "MiB", "GiB", "TiB")

  def bytes(number: Long): String = {
    val unit = Units.indices.takeWhile(unit => number >= math.pow(1024, unit)).lastOption.getOrElse(0)
    if (unit == 0) s"$number B" else f"${number / math.pow(1024, unit)}%.1f ${Units(unit)}"
  }

  def seconds(number: Double): String = if (number < 10) f"$number%.2f s" else f"$number%.1f s"

  def times(ratio: Double): String = if (ratio < 10) f"$ratio%.1f times" else f"$ratio%.0f times"

  /** Wraps a text at this number of columns. */
  def wrapped(text: String, columns: Int): Seq[String] = text.split(' ').foldLeft(Vector.empty[String]) {
    case (lines :+ last, word) if last.length + 1 + word.length <= columns => lines :+ s"$last $word"
    case (lines, word) => lines :+ word
  }

  def engine(name: String): String = if (name == Stock) "Stock Spark" else "Millstream"
}
