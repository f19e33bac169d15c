package io.millstream.spark

import java.io.{BufferedOutputStream, ByteArrayInputStream, FileOutputStream, InputStream, InterruptedIOException, IOException, OutputStream}
import java.nio.channels.FileChannel
import java.nio.file.{AccessDeniedException, Files, Path, Paths, StandardOpenOption}
import java.util.concurrent.{Callable, Executors}
import java.util.zip.{CheckedInputStream, CheckedOutputStream, CRC32}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.millstream.hadoop.{NativeCompaction, NativeJoiner}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path => HadoopPath}
import org.apache.hadoop.io.compress.{CodecPool, CompressionCodec, CompressionCodecFactory}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile

import org.apache.spark.{TaskContext, TaskKilledException}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.datasources.millstream.{Packing, ReadSettings}
import org.apache.spark.sql.types.StringType
import org.apache.spark.util.{LongAccumulator, SerializableConfiguration}

/** Result of making an output: its name in the staging directory, or the reason why it failed. */
private[spark] final case class Made(output: Int, staged: Either[String, String], bytes: Long)

/** Parameters of a compaction that its tasks need. */
private[spark] final case class Site(root: String, out: String, header: Boolean, codec: Option[Codec]) {
  def directory(output: Output): String = if (output.directory.isEmpty) root else s"$root/${output.directory}"

  def inputs(output: Output): Seq[String] = output.names.toSeq.map(name => s"${directory(output)}/$name")
}

/** Makes outputs in the staging directory, or checks whether they could be made. */
private[spark] final class CompactTasks(spark: SparkSession, site: Site, description: String) {
  import CompactTasks._

  private val context = spark.sparkContext
  private val files = context.longAccumulator("files read")
  private val bytes = context.longAccumulator("bytes read")
  private val written = context.longAccumulator("bytes written")
  private val codecs = new CompressionCodecFactory(context.hadoopConfiguration)

  def make(outputs: IndexedSeq[Output]): Seq[Made] = inJobs(outputs, makeOne, rewriteOne)

  /** Reads only the beginnings of inputs, and schemas; writes nothing. */
  def check(outputs: IndexedSeq[Output]): Seq[Made] = inJobs(outputs, checkOne, checkRewriting)

  private def inJobs(outputs: IndexedSeq[Output], inTask: InTask, asJob: Output => Made): Seq[Made] = {
    val (rewritten, joined) = outputs.partition(_.making.isInstanceOf[Rewrite])
    join(joined, inTask) ++ rewrite(rewritten, asJob)
  }

  private def join(outputs: IndexedSeq[Output], inTask: InTask): Seq[Made] =
    if (outputs.isEmpty) {
      Nil
    } else {
      val settings = ReadSettings.of(spark)
      def cost(output: Output): Long = output.bytes + output.files * settings.openCostBytes
      val share = math.max(1, outputs.iterator.map(cost).sum / (context.defaultParallelism.max(1) * TasksPerCore))
      val tasks = Packing.consecutive(outputs, share)(cost)
      val what = s"$description: ${outputs.iterator.map(_.files).sum} files become ${outputs.length}"
      val (site, conf) = (this.site, new SerializableConfiguration(context.hadoopConfiguration))
      val counters = Counters(files, bytes, written)
      describing(what) {
        context.parallelize(tasks, tasks.length)
          .flatMap(task => task.map(inTask(_, site, settings.maxReaders, conf.value, counters)))
          .collect().toSeq
      }
    }

  private def describing[T](what: String)(job: => T): T = {
    context.setJobDescription(what)
    try job finally context.setJobDescription(null)
  }

  /** Runs one job per output, as many at once as there are cores. */
  private def rewrite(outputs: Seq[Output], asJob: Output => Made): Seq[Made] = {
    val threads = Executors.newFixedThreadPool(context.defaultParallelism.max(1).min(outputs.length.max(1)))
    try {
      val jobs = outputs.map(output => new Callable[Made] {
        override def call(): Made = describing(s"$description: ${output.files} files become ${output.name}")(asJob(output))
      })
      threads.invokeAll(jobs.asJava).asScala.map(_.get).toSeq
    } finally {
      threads.shutdownNow()
    }
  }

  private def rewriteOne(output: Output): Made = {
    val staged = s"${output.id}.0"
    val target = s"${site.out}/$staged"
    val folder = s"${site.out}/${output.id}.d"
    try {
      NativeCompaction.stamp(output.inputs, target)
      val rewriting = rewritingOf(output)
      import rewriting.{codec, toParquet}
      val rows = rewriting.rows
      val frameWriter = codec.foldLeft(rewriting.frame.coalesce(1).write.option("maxRecordsPerFile", 0))((to, codec) => to.option("compression", codec))
      frameWriter.format(if (toParquet) "parquet" else "text").save(uri(folder))
      val part = single(folder)
      val found = if (toParquet) rowsOf(part.toString) else linesOf(part)
      if (found != rows) throw new IOException(s"$target: wrote $found rows, but read $rows")
      sync(part)
      Files.move(part, Paths.get(target))
      files.add(output.files)
      bytes.add(output.bytes)
      val size = Files.size(Paths.get(target))
      written.add(size)
      Made(output.id, Right(staged), size)
    } catch {
      case NonFatal(e) => failed(output, e)
    }
  }

  private def checkRewriting(output: Output): Made =
    try {
      rewritingOf(output)
      Made(output.id, Right(output.name), output.bytes)
    } catch {
      case NonFatal(e) => failed(output, e)
    }

  /** The rows to write. Building it makes Spark check the schemas. */
  private def rewritingOf(output: Output): Rewriting = {
    val Rewrite(fromParquet, toParquet) = output.making: @unchecked
    site.codec.filter(codec => toParquet && codec.parquet.isEmpty).foreach { codec =>
      throw new IOException(s"Parquet cannot be compressed by $codec")
    }
    val inputs = site.inputs(output)
    val codec =
      if (toParquet) site.codec.orElse(if (fromParquet) parquetCodec(inputs.head) else None).flatMap(_.parquet)
      else site.codec.map(_.hadoop.fold("none")(Codec.ofHadoop(_, codecs).getClass.getName))
    if (fromParquet) {
      new Rewriting(parquet(inputs, toParquet), inputs.iterator.map(rowsOf).sum, toParquet, codec)
    } else {
      // A Parquet file may lack its extension.
      inputs.foreach(input => lookAt(Seq(input), header = false, context.hadoopConfiguration))
      val frame = reader(spark).text(inputs.map(uri): _*)
      new Rewriting(frame, frame.count(), toParquet, codec)
    }
  }

  /** The rows of Parquet files. To become lines, they must have a single column of strings. */
  private def parquet(inputs: Seq[String], toParquet: Boolean): DataFrame = {
    val frame = reader(spark).option("mergeSchema", true).parquet(inputs.map(uri): _*)
    val columns = frame.schema.fields
    if (!toParquet && !(columns.length == 1 && columns.head.dataType == StringType)) {
      throw new IOException(s"${inputs.head}: has the columns ${columns.map(_.name).mkString(", ")}; only a single column of strings can become lines")
    }
    frame
  }

  private def linesOf(part: Path): Long = reader(spark).text(uri(part.toString)).count()

  private def rowsOf(file: String): Long = withFooter(file)(_.getRecordCount)

  private def parquetCodec(file: String): Option[Codec] = withFooter(file) { reader =>
    reader.getFooter.getBlocks.asScala.headOption.flatMap(block => Codec.named(block.getColumns.get(0).getCodec.name, Codec.OfParquet))
  }

  private def withFooter[T](file: String)(read: ParquetFileReader => T): T = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(new HadoopPath(Paths.get(file).toUri), context.hadoopConfiguration))
    try read(reader) finally reader.close()
  }
}

private object CompactTasks {
  private val TasksPerCore = 4
  private val MaxMessageLength = 400
  private val BufferBytes = 1 << 16
  private val BeginningBytes = 4096
  /** The size of the piece in which [[NativeJoiner]] looks for a header. */
  private val HeaderBytes = 1 << 20

  type InTask = (Output, Site, Int, Configuration, Counters) => Made

  /**
   * Rows that Spark reads and writes.
   *
   * @param count their number; computing it may read the inputs
   * @param codec name of the codec for Spark's writer
   */
  final class Rewriting(val frame: DataFrame, count: => Long, val toParquet: Boolean, val codec: Option[String]) {
    def rows: Long = count
  }

  final case class Counters(files: LongAccumulator, bytes: LongAccumulator, written: LongAccumulator)

  def makeOne(output: Output, site: Site, maxReaders: Int, conf: Configuration, counters: Counters): Made = {
    // Each attempt uses a name of its own; only the attempt whose result arrives counts.
    val context = TaskContext.get()
    if (context.isInterrupted()) throw new TaskKilledException("the compaction was cancelled")
    val staged = s"${output.id}.${context.taskAttemptId()}"
    val target = s"${site.out}/$staged"
    try {
      val length = output.making match {
        case Recode(codec) => recode(output, site, codec, conf, target)
        case _ => NativeCompaction.concatenate(output.inputs, site.header && output.files > 1, target, maxReaders, () => context.isInterrupted())
      }
      counters.files.add(output.files)
      counters.bytes.add(output.bytes)
      counters.written.add(length)
      Made(output.id, Right(staged), length)
    } catch {
      case e @ (_: IOException | _: RuntimeException | _: LinkageError) => failed(output, e)
    }
  }

  def checkOne(output: Output, site: Site, maxReaders: Int, conf: Configuration, counters: Counters): Made = {
    val context = TaskContext.get()
    if (context.isInterrupted()) throw new TaskKilledException("the dry run was cancelled")
    try {
      output.making match {
        case Recode(_) => lookAt(site.inputs(output), site.header, conf)
        case _ if output.isCopy => output.members.foreach(member => Files.newInputStream(Paths.get(site.directory(output), member.name)).close())
        case _ => NativeCompaction.check(output.inputs, site.header, maxReaders, () => context.isInterrupted())
      }
      counters.files.add(output.files)
      Made(output.id, Right(output.name), output.bytes)
    } catch {
      case e: AccessDeniedException => failed(output, new IOException(s"${e.getFile}: Permission denied", e))
      case e @ (_: IOException | _: RuntimeException | _: LinkageError) => failed(output, e)
    }
  }

  /** Fails if the beginnings of files that the JVM reads show that they are not text files that can be joined. */
  private def lookAt(inputs: Seq[String], header: Boolean, conf: Configuration): Unit = {
    val codecs = new CompressionCodecFactory(conf)
    val joiner = new NativeJoiner(header)
    try {
      inputs.foreach(input => appending(input) {
        val in = decompressed(input, codecOf(input, codecs), conf)
        val beginning = try in.readNBytes(if (header) HeaderBytes else BeginningBytes) finally in.close()
        joiner.append(new ByteArrayInputStream(beginning), OutputStream.nullOutputStream())
      })
    } finally {
      joiner.close()
    }
  }

  private def appending(input: String)(append: => Unit): Unit =
    try append catch {
      case e: IOException => throw new IOException(s"$input: ${Option(e.getMessage).getOrElse(e.toString)}", e)
    }

  /** An error's message on one line, without stack trace. */
  def oneLine(error: Throwable): String = {
    val lines = Option(error.getMessage).getOrElse(error.toString).linesIterator.map(_.trim)
    val words = lines.takeWhile(line => !line.startsWith("at ") && line != "Driver stacktrace:").filter(_.nonEmpty).mkString(" ")
    if (words.length > MaxMessageLength) s"${words.take(MaxMessageLength)} ..." else words
  }

  def failed(output: Output, cause: Throwable): Made = Made(output.id, Left(oneLine(cause)), 0)

  private def recode(output: Output, site: Site, codec: Option[String], conf: Configuration, target: String): Long = {
    NativeCompaction.stamp(output.inputs, target)
    val codecs = new CompressionCodecFactory(conf)
    val writing = codec.map(Codec.ofHadoop(_, codecs))
    val (plain, again) = (new CRC32, new CRC32)
    val out = new CheckedOutputStream(compressed(new FileOutputStream(target), writing, conf), plain)
    val joiner = new NativeJoiner(site.header)
    try {
      site.inputs(output).foreach { input =>
        if (TaskContext.get().isInterrupted()) throw new InterruptedIOException("interrupted")
        appending(input) {
          val in = decompressed(input, codecOf(input, codecs), conf)
          try joiner.append(in, out) finally in.close()
        }
      }
    } finally {
      joiner.close()
      out.close()
    }
    val in = new CheckedInputStream(decompressed(target, writing, conf), again)
    try in.transferTo(OutputStream.nullOutputStream()) finally in.close()
    if (plain.getValue != again.getValue) throw new IOException(s"$target: the file reads back differently from the data written")
    sync(Paths.get(target))
    Files.size(Paths.get(target))
  }

  private def codecOf(file: String, codecs: CompressionCodecFactory): Option[CompressionCodec] =
    Codec.ofFile(Paths.get(file).getFileName.toString, codecs)

  private def compressed(out: OutputStream, codec: Option[CompressionCodec], conf: Configuration): OutputStream = {
    val buffered = new BufferedOutputStream(out, BufferBytes)
    codec.fold[OutputStream](buffered) { codec =>
      val compressor = CodecPool.getCompressor(codec, conf)
      new java.io.FilterOutputStream(codec.createOutputStream(buffered, compressor)) {
        override def write(bytes: Array[Byte], start: Int, length: Int): Unit = out.write(bytes, start, length)
        override def close(): Unit = try out.close() finally CodecPool.returnCompressor(compressor)
      }
    }
  }

  private def decompressed(file: String, codec: Option[CompressionCodec], conf: Configuration): InputStream = {
    val in = FileSystem.getLocal(conf).open(new HadoopPath(Paths.get(file).toUri))
    codec.fold[InputStream](in) { codec =>
      val decompressor = CodecPool.getDecompressor(codec)
      new java.io.FilterInputStream(codec.createInputStream(in, decompressor)) {
        override def close(): Unit = try super.close() finally CodecPool.returnDecompressor(decompressor)
      }
    }
  }

  def sync(file: Path): Unit = {
    val channel = FileChannel.open(file, StandardOpenOption.WRITE)
    try channel.force(true) finally channel.close()
  }

  private def single(folder: String): Path = {
    val listed = Files.newDirectoryStream(Paths.get(folder), "part-*")
    try listed.asScala.toSeq match {
      case Seq(one) => one
      case others => throw new IOException(s"$folder: Spark wrote ${others.length} files, not one")
    } finally listed.close()
  }

  /** Takes paths literally, infers no partition columns, and fails on errors instead of dropping rows. */
  private def reader(spark: SparkSession) =
    spark.read.option("recursiveFileLookup", true).option("__globPaths__", false).option("ignoreCorruptFiles", false).option("ignoreMissingFiles", false)

  /** A URI for Hadoop's paths, which are not escaped. */
  private def uri(path: String): String = s"file://$path"
}
