package io.millstream.spark.formats

import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper

import FormatsRow._
import FormatsText.{bytes, seconds}

/**
 * The result of a comparison of formats; for a dry run, what would be measured.
 *
 * @param sample None before it is taken
 */
private[spark] final case class FormatsReport(
    path: String,
    sample: Option[FormatsSample],
    rows: Seq[FormatsRow],
    advice: Seq[FormatsAdvice],
    rounds: Int) {
  import FormatsReport._

  /** Whether a run with Millstream returned wrong rows or failed. */
  def hasFailed: Boolean = rows.exists(row => row.engine == Millstream && row.problem.isDefined)

  def json: String = {
    val records = rows.map(row => record(row).asJava).asJava
    val said = advice.map(of =>
      ListMap("source" -> of.source, "format" -> of.format.orNull, "text" -> of.sentences.mkString(" ")).asJava).asJava
    val taken = sample.map(of => ListMap("bytes" -> of.bytes, "lines" -> of.lines, "files" -> of.files).asJava).orNull
    new ObjectMapper().writeValueAsString(ListMap(
      "path" -> path,
      "sample" -> taken,
      "rows" -> records,
      "recommendation" -> said).asJava)
  }

  private def record(row: FormatsRow): ListMap[String, Any] = {
    def figure(get: FormatsFigures => Any) = row.figures.map(get).orNull
    ListMap(
      "source" -> row.source,
      "format" -> row.format,
      "job" -> row.job,
      "engine" -> row.engine,
      "bytes" -> row.bytes,
      "lines" -> row.lines,
      "rows" -> figure(_.rows),
      "partitions" -> figure(_.partitions),
      "wall_s" -> figure(_.wallS),
      "cpu_s" -> figure(_.cpuS),
      "peak_memory_bytes" -> figure(_.peakBytes),
      "skew" -> figure(_.skew),
      "speedup" -> speedup(row).orNull,
      "problem" -> row.problem.orNull,
      "recommended" -> advice.exists(of => of.source == row.source && of.format.contains(row.format)))
  }

  /** Stock Spark's time as a multiple of this run's; the first read is compared with stock Spark's read. */
  private def speedup(row: FormatsRow): Option[Double] = if (row.engine == Stock) None
  else {
    val job = if (row.job == FirstRead) Read else row.job
    val stock = rows.find(other =>
      other.engine == Stock && (other.source, other.format, other.job) == (row.source, row.format, job))
    stock.flatMap(_.measured).zip(row.measured).map { case (stock, ours) => stock.wallS / ours.wallS }
  }

  def text(ascii: Boolean): String =
    Seq(heading, table, legend, chart.text(ascii), advice.map(recommendation).mkString("\n\n")).mkString("\n\n")

  private def heading: String = sample.fold(path) { of =>
    s"$path: sample of ${bytes(of.bytes)}, ${of.lines} lines of ${of.files} ${if (of.files == 1) "file" else "files"}"
  }

  private def recommendation(of: FormatsAdvice): String = {
    val title = if (advice.length > 1) s"Recommendation for ${of.source}" else "Recommendation"
    (title +: of.sentences.flatMap(sentence => FormatsText.wrapped(sentence, TextColumns)).map("  " + _)).mkString("\n")
  }

  private def legend: String =
    s"""time, CPU    median of ${if (rounds == 1) "1 round"
      else s"$rounds rounds"} after the warm-up; CPU time of the driver's JVM, and of tasks in other JVMs
       |memory       peak resident memory (RSS) of the driver's JVM
       |partitions   tasks that read the file; skew: the longest of them divided by the median
       |x stock      time of stock Spark divided by this time""".stripMargin

  private def table: String = {
    val isOne = rows.map(_.source).distinct.length == 1
    val cells = Header +: rows.map(row =>
      Seq(row.format, bytes(row.bytes), row.source, Jobs(row.job), Engines(row.engine)) ++ measured(row))
    val shown = if (isOne) cells.map(_.patch(SourceColumn, Nil, 1)) else cells
    aligned(shown, rightFrom = shown.head.length - Header.drop(FirstNumber).length)
  }

  private def measured(row: FormatsRow): Seq[String] = (row.figures, row.problem) match {
    case (Some(of), problem) =>
      val ratio = problem.fold(speedup(row).fold("")(ratio => f"$ratio%.1f"))(_ => "")
      val rows = problem.fold(of.rows.toString)(_ => s"${of.rows} WRONG")
      Seq(
        rows,
        of.partitions.toString,
        seconds(of.wallS),
        seconds(of.cpuS),
        bytes(of.peakBytes),
        f"${of.skew}%.1f",
        ratio)
    case (None, problem) => Seq(problem.getOrElse(""))
  }

  /** Time of each read, by source and job; first reads are listed with the others. */
  def chart: FormatsChart = {
    val groups = for {
      source <- rows.map(_.source).distinct
      (jobs, title) <-
        Seq(Set(Read, FirstRead) -> "Time of a count", Set(Repartition) -> "Time of a count after a repartition")
      bars = rows.filter(row => row.source == source && jobs(row.job)).map(bar)
      if bars.nonEmpty
    } yield FormatsBars(s"$title, ${if (source == "local") "local files" else source} (shorter is better)", bars)
    val size = sample.fold("")(of => s"${bytes(of.bytes)} of ")
    FormatsChart(s"$size${if (path.length > TitleColumns) "\u2026" else ""}${path.takeRight(TitleColumns)}", groups)
  }

  private def bar(row: FormatsRow): FormatsBar = {
    val caption = row.measured.map(of => seconds(of.wallS)).orElse(row.problem).getOrElse("")
    val name = if (row.job == FirstRead) s"${Engines(row.engine)}, first" else Engines(row.engine)
    FormatsBar(s"${row.format} $name", row.measured.map(_.wallS), caption, row.engine == Millstream)
  }
}

private[spark] object FormatsReport {
  private val Header =
    Seq("format", "size", "source", "job", "engine", "rows", "partitions", "time", "CPU", "memory", "skew", "x stock")
  private val TextColumns = 110

  /** As much of a path as fits into a picture. */
  private val TitleColumns = 70
  private val SourceColumn = 2
  private val FirstNumber = 5
  private val Jobs = Map(Read -> "read", Repartition -> "read + repartition", FirstRead -> "first read")
  private val Engines = Map(Stock -> "stock", Millstream -> "Millstream")

  /** Cells in columns; a cell that spans the rest of its line does not widen them. */
  private def aligned(lines: Seq[Seq[String]], rightFrom: Int): String = {
    val whole = lines.filter(_.length == lines.head.length)
    val widths = lines.head.indices.map(column => (if (column < rightFrom) lines else whole).map(_(column).length).max)
    lines.map { cells =>
      val isWhole = cells.length == lines.head.length
      cells.zipWithIndex.map { case (cell, column) =>
        if (isWhole && column >= rightFrom) " " * (widths(column) - cell.length) + cell
        else cell.padTo(widths(column), ' ')
      }.mkString("  ").stripTrailing
    }.mkString("\n")
  }
}
