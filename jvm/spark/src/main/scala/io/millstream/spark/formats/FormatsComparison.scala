package io.millstream.spark.formats

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}

import org.apache.spark.SparkConf

import FormatsRow._

/**
 * Measures the formats of a sample of the user's own text.
 *
 * {{{
 * PATH ─► FormatsSample: lines ─► a file for each codec (FormatsWork) ─► FormatsRuns: a JVM for each run (FormatsProbe)
 *                                                                             └─► FormatsRow ─► FormatsAdvice ─► FormatsReport, FormatsChart
 * }}}
 */
private[spark] object FormatsComparison {
  private val WarmUpBytes = 4L << 20

  /** The path of the index next to a file. */
  private val Index = "_millstream"

  /** Measures, or says what would be measured. */
  def run(conf: SparkConf, hadoop: Configuration, options: FormatsOptions): FormatsReport = {
    require(conf, options)
    if (options.dryRun) {
      FormatsSample.files(options.path, hadoop).hasNext
      FormatsReport(options.path, None, planned(options), Nil, options.rounds)
    } else Using.resource(FormatsWork.open(options, hadoop)) { work =>
      val report = new Comparison(conf, hadoop, options, work).report()
      options.picture.foreach(report.chart.write)
      report
    }
  }

  private def require(conf: SparkConf, options: FormatsOptions): Unit = {
    options.picture.foreach(FormatsChart.require)
    val master = conf.get("spark.master", "local[*]")
    if (!master.startsWith("local") && options.workDirectory.isEmpty) {
      val reason = s"executors of --master=$master cannot see a temporary directory on this machine"
      throw new FormatsFailure(s"$reason; use --work-dir to choose a directory that all machines mount")
    }
  }

  private def planned(options: FormatsOptions): Seq[FormatsRow] =
    for (source <- "local" +: options.also.toSeq; codec <- options.codecs; (job, engine) <- runs(codec))
      yield FormatsRow(source, codec.name, job, engine, 0, 0, None, None)

  /** The runs over a file, in order: the first read of a file may build an index, which later reads use. */
  private def runs(codec: FormatsCodec): Seq[(String, String)] =
    Seq(Read -> Stock) ++ Option.when(codec.name != "none")(FirstRead -> Millstream) ++ Seq(
      Read -> Millstream,
      Repartition -> Stock,
      Repartition -> Millstream)

  /** What a dry run prints. */
  def plan(options: FormatsOptions, report: FormatsReport): String = {
    val lines =
      report.rows.map(row => s"  ${row.format} from ${row.source}: ${row.job} with ${FormatsText.engine(row.engine)}")
    val sample = s"would take a sample of up to ${FormatsText.bytes(options.sampleBytes)}"
    (s"${options.path}: $sample, and measure in ${options.rounds} rounds each:" +: lines).mkString("\n")
  }

  private final class Comparison(conf: SparkConf, hadoop: Configuration, options: FormatsOptions, work: FormatsWork) {
    private val plain = work.scratch.resolve("sample.txt")
    private val warmUp = work.scratch.resolve("warm-up.txt")
    private val progress = new FormatsProgress(1 + options.codecs.length, planned(options).length, options)

    def report(): FormatsReport =
      try {
        progress.step("sample")
        FormatsSample.take(options.path, WarmUpBytes, warmUp, hadoop, () => work.check())
        val sample = FormatsSample.take(options.path, options.sampleBytes, plain, hadoop, () => work.check())
        options.codecs.foreach(write)
        val runs = new FormatsRuns(conf, work, options)
        val rows = for {
          source <- work.sources
          codec <- options.codecs
          (job, engine) <- FormatsComparison.runs(codec)
          row <- measured(runs, sample, source, codec, job, engine)
        } yield row
        FormatsReport(options.path, Some(sample), rows, FormatsAdvice.of(rows, runs.cores), options.rounds)
      } finally progress.end()

    private def write(codec: FormatsCodec): Unit = {
      progress.step(s"write ${codec.name}")
      FormatsSample.compress(plain, work.fileOf(codec), codec, hadoop, () => work.check())
      work.sources.tail.foreach(source =>
        FormatsSample.upload(work.fileOf(codec), source.fileOf(codec), hadoop, () => work.check()))
    }

    private def measured(
        runs: FormatsRuns,
        sample: FormatsSample,
        source: FormatsSource,
        codec: FormatsCodec,
        job: String,
        engine: String): Option[FormatsRow] = {
      progress.step(s"${source.name}: ${codec.name}, $job, ${FormatsText.engine(engine)}")
      val path = source.fileOf(codec).toString
      val unmeasured =
        FormatsRow(source.name, codec.name, job, engine, Files.size(work.fileOf(codec)), sample.lines, None, None)
      val rounds =
        if (job == FirstRead) firstReads(runs, path, new HadoopPath(source.directoryOf(codec), Index))
        else Some(runs.run(engine, job, path, path, options.rounds))
      rounds.map(row(unmeasured, _))
    }

    /** Each in a new JVM, because a driver also keeps indexes in memory. None if the file gets no index. */
    private def firstReads(
        runs: FormatsRuns,
        path: String,
        index: HadoopPath): Option[Either[String, Seq[FormatsFigures]]] = {
      val fileSystem = index.getFileSystem(hadoop)
      val reads = Iterator.continually {
        fileSystem.delete(index, true)
        runs.run(Millstream, Read, path, warmUp.toUri.toString, 1)
      }
      val first = reads.next()
      if (first.isLeft) Some(first)
      else Option.when(fileSystem.exists(index))(reads.take(options.rounds - 1).foldLeft(first) { (all, next) =>
        for (before <- all; round <- next) yield before ++ round
      })
    }
  }

  private def row(unmeasured: FormatsRow, rounds: Either[String, Seq[FormatsFigures]]): FormatsRow =
    rounds.fold(
      failure => unmeasured.copy(problem = Some(failure)),
      { rounds =>
        val median = rounds.sortBy(_.wallS).apply(rounds.length / 2).copy(peakBytes = rounds.map(_.peakBytes).max)
        val wrong = rounds.find(_.rows != unmeasured.lines)
        val problem = wrong.map(round => s"${round.rows} of ${unmeasured.lines} rows, without an error")
        unmeasured.copy(figures = Some(wrong.getOrElse(median)), problem = problem)
      })
}

/** A line on the terminal with the current step and the estimated time left, based on the runs so far. */
private[spark] final class FormatsProgress(preparations: Int, runs: Int, options: FormatsOptions) {
  private val Width = 20
  private val steps = preparations + runs
  private var runsBegan = 0L
  private var done = 0

  def step(name: String): Unit = if (options.progress) {
    val filled = done * Width / steps
    val (full, empty) = if (options.ascii) ("#", "-") else ("\u2588", "\u2591")
    draw(s"[${full * filled}${empty * (Width - filled)}] ${done + 1} of $steps: $name$left")
    done += 1
  }

  private def left: String = {
    if (done == preparations) runsBegan = System.nanoTime()
    if (done <= preparations) ""
    else {
      val seconds = (System.nanoTime() - runsBegan) / 1000000000L * (steps - done) / (done - preparations)
      if (seconds < 90) s"; about $seconds s left" else s"; about ${(seconds + 30) / 60} min left"
    }
  }

  def end(): Unit = if (options.progress) draw("")

  private def draw(line: String): Unit = {
    val bytes = s"\r\u001b[K$line".getBytes(UTF_8)
    System.err.write(bytes, 0, bytes.length)
    System.err.flush()
  }
}
