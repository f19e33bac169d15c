package io.millstream.spark.compact

import java.io.{
  BufferedOutputStream,
  ByteArrayInputStream,
  File,
  FileNotFoundException,
  InputStream,
  InterruptedIOException,
  IOException,
  OutputStream
}
import java.util.concurrent.{Callable, ExecutionException, Executors}
import java.util.zip.{CheckedInputStream, CheckedOutputStream, CRC32}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.millstream.hadoop.codec.{DecodedInputStream, FileCodec}
import io.millstream.hadoop.compact.{JoinedFiles, JoinRule, NativeJoiner}
import io.millstream.hadoop.natives.UnfitFileException
import io.millstream.spark.console.Failures
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.CommonConfigurationKeys.IO_COMPRESSION_CODECS_KEY
import org.apache.hadoop.fs.{FileSystem, Path => HadoopPath}
import org.apache.hadoop.io.compress.{CodecPool, CompressionCodec, CompressionCodecFactory, Compressor}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile

import org.apache.spark.{TaskContext, TaskKilledException}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.datasources.millstream.hadoop.FileCodecClasses
import org.apache.spark.sql.execution.datasources.millstream.settings.ReadSettings
import org.apache.spark.sql.execution.datasources.millstream.tasks.Packing
import org.apache.spark.sql.types.StringType
import org.apache.spark.util.{LongAccumulator, SerializableConfiguration}

/**
 * Result of writing an output.
 *
 * @param staged how it is staged, or the reason why it failed
 */
private[spark] final case class Made[+T](output: Int, staged: Either[String, T], bytes: Long)

/** A compaction's parameters for its tasks. */
private[spark] final case class Site(header: Boolean, codec: Option[Codec]) {

  /** How the inputs of an output are joined; a single file with a different codec is also decoded and encoded. */
  def rule(output: Output): JoinRule =
    if (output.isCopy) JoinRule.NONE
    else new JoinRule(header && (output.files > 1 || output.making != Concatenate), output.isJson)
}

/** Checks whether outputs could be written. */
private[spark] class CompactTasks(spark: SparkSession, site: Site, conf: Configuration, description: String) {
  import CompactTasks._

  private val context = spark.sparkContext
  protected final val counters: Counters =
    Counters(
      context.longAccumulator("files read"),
      context.longAccumulator("bytes read"),
      context.longAccumulator("bytes written"))
  private val codecs = new CompressionCodecFactory(conf)

  /** Reads only the beginnings of inputs, and schemas; writes nothing. */
  final def check(outputs: IndexedSeq[Output]): Seq[Made[Unit]] = inJobs(outputs, checkOne, checkRewriting)

  /** Runs `inTask` for outputs written by tasks, and `asJob` for outputs that are a Spark job each. */
  protected final def inJobs[T](
      outputs: IndexedSeq[Output],
      inTask: InTask[T],
      asJob: Output => Made[T]): Seq[Made[T]] = {
    val (rewritten, joined) = outputs.partition(_.making.isInstanceOf[Rewrite])
    join(joined, inTask) ++ rewrite(rewritten, asJob)
  }

  private def join[T](outputs: IndexedSeq[Output], inTask: InTask[T]): Seq[Made[T]] =
    if (outputs.isEmpty) {
      Nil
    } else {
      val settings = ReadSettings.of(spark)
      def cost(output: Output): Long = output.bytes + output.files * settings.openCostBytes
      val share = math.max(1, outputs.iterator.map(cost).sum / (context.defaultParallelism.max(1) * TasksPerCore))
      val tasks = Packing.consecutive(outputs, share)(cost)
      val readers = settings.readers(tasks.length, outputs.head.inputs.isLocal, context)
      val what = s"$description: ${outputs.iterator.map(_.files).sum} files become ${outputs.length}"
      val (site, conf, counters) = (this.site, new SerializableConfiguration(this.conf), this.counters)
      describing(what) {
        context.parallelize(tasks, tasks.length)
          .flatMap(task => task.map(inTask(_, site, readers, conf.value, counters)))
          .collect().toSeq
      }
    }

  private def describing[T](what: String)(job: => T): T = {
    context.setJobDescription(what)
    try job
    finally context.setJobDescription(null)
  }

  /** Runs one job per output, as many at once as there are cores. */
  private def rewrite[T](outputs: Seq[Output], asJob: Output => Made[T]): Seq[Made[T]] = {
    val threads = Executors.newFixedThreadPool(context.defaultParallelism.max(1).min(outputs.length.max(1)))
    try {
      val jobs = outputs.map(output =>
        new Callable[Made[T]] {
          override def call(): Made[T] =
            describing(s"$description: ${output.files} files become ${output.name}")(asJob(output))
        })
      threads.invokeAll(jobs.asJava).asScala.map(_.get).toSeq
    } finally {
      threads.shutdownNow()
    }
  }

  private def checkRewriting(output: Output): Made[Unit] =
    try {
      rewritingOf(output)
      Made(output.id, Right(()), output.bytes)
    } catch {
      case NonFatal(e) => failed(output, e)
    }

  /** The rows to write. Building it makes Spark check the schemas. */
  protected final def rewritingOf(output: Output): Rewriting = {
    val Rewrite(fromParquet, toParquet) = output.making: @unchecked
    site.codec.filter(codec => toParquet && codec.parquet.isEmpty).foreach { codec =>
      throw new IOException(s"Parquet cannot be compressed with $codec")
    }
    if (!toParquet) site.codec.flatMap(_.hadoop).foreach(requireWriter(_, conf))
    val inputs = output.paths
    val codec =
      if (toParquet) site.codec.orElse(if (fromParquet) parquetCodec(inputs.head) else None).flatMap(_.parquet)
      else site.codec.map(_.hadoop.fold("none")(Codec.ofHadoop(_, codecs).getClass.getName))
    if (fromParquet) {
      new Rewriting(
        parquet(inputs, toParquet),
        inParallel(inputs.map(input => () => rowsOf(input))).sum,
        toParquet,
        codec)
    } else {
      // A Parquet file may lack its extension.
      inParallel(inputs.map(input => () => lookAt(Seq(input), new JoinRule(false, output.isJson), conf)))
      val frame = reader(spark).text(inputs.map(_.toString): _*)
      new Rewriting(frame, frame.count(), toParquet, codec)
    }
  }

  /** The rows of Parquet files. To become lines, they must have a single string column. */
  private def parquet(inputs: Seq[HadoopPath], toParquet: Boolean): DataFrame = {
    val frame = reader(spark).option("mergeSchema", true).parquet(inputs.map(_.toString): _*)
    val columns = frame.schema.fields
    if (!toParquet && !(columns.length == 1 && columns.head.dataType == StringType)) {
      throw new IOException(s"${shown(inputs.head)}: has the columns ${columns.map(_.name).mkString(", ")}; only a single string column can be written as lines")
    }
    frame
  }

  protected final def rowsOf(file: HadoopPath): Long = withFooter(file)(_.getRecordCount)

  private def parquetCodec(file: HadoopPath): Option[Codec] = withFooter(file) { reader =>
    reader.getFooter.getBlocks.asScala.headOption.flatMap(block =>
      Codec.named(block.getColumns.get(0).getCodec.name, Codec.OfParquet))
  }

  private def withFooter[T](file: HadoopPath)(read: ParquetFileReader => T): T = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(file, conf))
    try read(reader)
    finally reader.close()
  }
}

private[spark] object CompactTasks {
  private val TasksPerCore = 4
  private val WaitingThreads = 32
  private val BufferBytes = 1 << 16

  /** More than native code examines for signs of a binary format. */
  private val BeginningBytes = 8192

  /** The size of the piece in which [[NativeJoiner]] looks for the first line. */
  private val LineBytes = 1 << 20

  type InTask[T] = (Output, Site, Int, Configuration, Counters) => Made[T]

  /**
   * Rows that Spark reads and writes.
   *
   * @param count their number; computing it may read the inputs
   * @param codec name of the codec for Spark's writer
   */
  final class Rewriting(val frame: DataFrame, count: => Long, val toParquet: Boolean, val codec: Option[String]) {
    def rows: Long = count
  }

  final case class Counters(files: LongAccumulator, bytes: LongAccumulator, written: LongAccumulator) {

    /** Counts an output of this many bytes. */
    def add(output: Output, size: Long): Unit = {
      files.add(output.files)
      bytes.add(output.bytes)
      written.add(size)
    }
  }

  def checkOne(output: Output, site: Site, maxReaders: Int, conf: Configuration, counters: Counters): Made[Unit] = {
    val context = TaskContext.get()
    if (context.isInterrupted()) throw new TaskKilledException("the dry run was cancelled")
    try {
      output.making match {
        case Recode(codec) =>
          codec.foreach(requireWriter(_, conf))
          lookAt(output.paths, site.rule(output), conf)
        case _ if output.isCopy => output.paths.foreach(open(_, conf).close())
        case _ => JoinedFiles.check(output.inputs, site.rule(output), maxReaders, conf, () => context.isInterrupted())
      }
      counters.files.add(output.files)
      Made(output.id, Right(()), output.bytes)
    } catch {
      case e @ (_: IOException | _: RuntimeException | _: LinkageError) => failed(output, e)
    }
  }

  /** Fails if the beginnings of files that the JVM reads show that they are not text files that can be joined. */
  private def lookAt(inputs: Seq[HadoopPath], rule: JoinRule, conf: Configuration): Unit = {
    val codecs = new CompressionCodecFactory(conf)
    val joiner = new NativeJoiner(rule)
    try {
      inputs.foreach(input =>
        appending(input) {
          val in = decompressed(input, codecOf(input, codecs), conf)
          val beginning =
            try in.readNBytes(if (rule == JoinRule.NONE) BeginningBytes else LineBytes)
            finally in.close()
          joiner.append(new ByteArrayInputStream(beginning), OutputStream.nullOutputStream())
        })
    } finally {
      joiner.close()
    }
  }

  private def appending(input: HadoopPath)(append: => Unit): Unit =
    try append
    catch {
      case e: IOException => throw new IOException(s"${shown(input)}: ${Option(e.getMessage).getOrElse(e.toString)}", e)
    }

  /** Runs calls that wait for storage, many at once. The first failure is thrown. */
  def inParallel[T](calls: Seq[() => T]): Seq[T] = {
    val threads = Executors.newFixedThreadPool(WaitingThreads.min(calls.length.max(1)))
    try {
      threads.invokeAll(
        calls.map(work => new Callable[T] { override def call(): T = work() }).asJava).asScala.map(_.get).toSeq
    } catch {
      case e: ExecutionException if NonFatal(e.getCause) => throw e.getCause
    } finally {
      threads.shutdownNow()
    }
  }

  def failed(output: Output, cause: Throwable): Made[Nothing] = Made(output.id, Left(Failures.oneLine(cause)), 0)

  /**
   * Writes the lines of an output's inputs to a stream.
   *
   * @return their checksum, before compression
   */
  def recode(
      output: Output,
      rule: JoinRule,
      codec: Option[CompressionCodec],
      conf: Configuration,
      to: OutputStream): Long = {
    val codecs = new CompressionCodecFactory(conf)
    val plain = new CRC32
    val out = new CheckedOutputStream(compressed(to, codec, conf), plain)
    val joiner = new NativeJoiner(rule)
    try {
      output.paths.foreach { input =>
        if (TaskContext.get().isInterrupted()) throw new InterruptedIOException("interrupted")
        appending(input) {
          val in = decompressed(input, codecOf(input, codecs), conf)
          try joiner.append(in, out)
          finally in.close()
        }
      }
    } finally {
      joiner.close()
      out.close()
    }
    plain.getValue
  }

  /** The checksum of a file's contents, after decompression. */
  def checksum(file: HadoopPath, codec: Option[CompressionCodec], conf: Configuration): Long = {
    val sum = new CRC32
    val in = new CheckedInputStream(decompressed(file, codec, conf), sum)
    try in.transferTo(OutputStream.nullOutputStream())
    finally in.close()
    sum.getValue
  }

  def codecOf(file: HadoopPath, codecs: CompressionCodecFactory): Option[CompressionCodec] =
    Codec.ofFile(file.getName, codecs)

  /** Fails if no files can be written with Hadoop's codec of this name. */
  private def requireWriter(codec: String, conf: Configuration): Unit =
    CodecPool.returnCompressor(compressorOf(Codec.ofHadoop(codec, new CompressionCodecFactory(conf)), conf))

  /**
   * A compressor, to be returned to the pool. Some codecs need Hadoop's native library, and throw their own exceptions
   * without it.
   */
  private def compressorOf(codec: CompressionCodec, conf: Configuration): Compressor =
    try CodecPool.getCompressor(codec, conf)
    catch {
      case e @ (_: RuntimeException | _: LinkageError) =>
        throw new IOException(
          s"Hadoop cannot write ${codec.getDefaultExtension} files here: ${Failures.oneLine(e)}; choose another codec, such as " +
            "--codec=gzip (codec=\"gzip\"), or install Hadoop's native library",
          e)
    }

  private def compressed(out: OutputStream, codec: Option[CompressionCodec], conf: Configuration): OutputStream = {
    val buffered = new BufferedOutputStream(out, BufferBytes)
    codec.fold[OutputStream](buffered) { codec =>
      val compressor = compressorOf(codec, conf)
      new java.io.FilterOutputStream(codec.createOutputStream(buffered, compressor)) {
        override def write(bytes: Array[Byte], start: Int, length: Int): Unit = out.write(bytes, start, length)
        override def close(): Unit =
          try out.close()
          finally CodecPool.returnCompressor(compressor)
      }
    }
  }

  /**
   * The bytes of a file; local files with checksums are verified. Hadoop's codecs would return only some or none of the
   * lines of some damaged files, so they decode only formats that native code does not support.
   */
  def decompressed(file: HadoopPath, codec: Option[CompressionCodec], conf: Configuration): InputStream = {
    val in = open(file, conf)
    codec.fold[InputStream](in)(codec =>
      Option(FileCodec.textCodec(codec)).fold(byHadoop(codec, in))(new DecodedInputStream(_, in)))
  }

  private def byHadoop(codec: CompressionCodec, in: InputStream): InputStream = {
    val decompressor = CodecPool.getDecompressor(codec)
    new java.io.FilterInputStream(codec.createInputStream(in, decompressor)) {
      override def close(): Unit =
        try super.close()
        finally CodecPool.returnDecompressor(decompressor)
    }
  }

  private def open(file: HadoopPath, conf: Configuration): InputStream =
    try if (file.toUri.getScheme == "file") openLocal(file, conf) else file.getFileSystem(conf).open(file)
    catch {
      case e: FileNotFoundException => throw new UnfitFileException(e.getMessage, e)
    }

  /**
   * Hadoop's own local file system verifies checksums, but takes a colon in the name of a checksum file for the end of
   * a scheme.
   */
  private def openLocal(file: HadoopPath, conf: Configuration): InputStream = {
    val fs = FileSystem.getLocal(conf)
    if (!file.getName.contains(":")) return fs.open(file)
    val checksums = s".${file.getName}.crc"
    if (new File(fs.pathToFile(file.getParent), checksums).exists) {
      throw new IOException(s"Hadoop cannot read $checksums because of the colon in its name; rename both files without it, or remove that one")
    }
    fs.getRaw.open(file)
  }

  /** A file's path for messages. */
  def shown(file: HadoopPath): String = if (file.toUri.getScheme == "file") file.toUri.getPath else file.toString

  /**
   * Takes paths literally, infers no partition columns, and fails on errors instead of dropping rows, whatever the
   * settings.
   */
  def reader(spark: SparkSession) =
    spark.read.option(
      "recursiveFileLookup",
      true).option("__globPaths__", false).option("ignoreCorruptFiles", false).option("ignoreMissingFiles", false)
      .option(IO_COMPRESSION_CODECS_KEY, FileCodecClasses.withOurs(spark.sparkContext.hadoopConfiguration))
}
