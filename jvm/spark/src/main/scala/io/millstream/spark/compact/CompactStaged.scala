package io.millstream.spark.compact

import java.io.{FileNotFoundException, FilterOutputStream, IOException, OutputStream}
import java.util.zip.{CheckedOutputStream, CRC32}

import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

import io.millstream.hadoop.compact.JoinedFiles
import io.millstream.hadoop.natives.UnfitFileException
import io.millstream.hadoop.reading.FileReadAhead
import io.millstream.write.protocol.Placement
import io.millstream.write.store.{StagedFile, TaskAttempt}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.hadoop.io.compress.CompressionCodecFactory
import org.apache.hadoop.mapreduce.{Job, TaskAttemptID}
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl

import org.apache.spark.{TaskContext, TaskKilledException}
import org.apache.spark.sql.{classic, Row, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources.{FileFormat, OutputWriterFactory}
import org.apache.spark.sql.execution.datasources.millstream.tasks.TaskFailures
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.text.TextFileFormat
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/**
 * Writes outputs as files of a direct write, which no reader sees before its commit: hidden files, or incomplete
 * uploads on S3. Inputs may be on any file system.
 *
 * @param conf prepared for writers ([[Placement.prepare]])
 */
private[spark] final class StagedTasks(
    spark: SparkSession,
    site: Site,
    placement: Placement,
    conf: Configuration,
    description: String)
    extends CompactTasks(spark, site, conf, description) {
  import CompactTasks._
  import StagedTasks._

  def make(outputs: IndexedSeq[Output]): Seq[Made[StagedFile]] = {
    val (placement, attempts) = (this.placement, TaskFailures.allowed(spark.sparkContext))
    inJobs(outputs, makeOne(placement, attempts, _, _, _, _, _), rewriteOne)
  }

  private def rewriteOne(output: Output): Made[StagedFile] =
    try {
      val rewriting = rewritingOf(output)
      val expected = rewriting.rows
      val written = write(output, rewriting)
      if (written.rows != expected)
        throw new IOException(s"${output.name}: wrote ${written.rows} rows, but read $expected")
      if (rewriting.toParquet && !written.file.isUpload && rowsOf(new HadoopPath(written.path)) != expected) {
        throw new IOException(s"${output.name}: the file reads back differently from the rows written")
      }
      requireListed(output, conf)
      counters.add(output, written.file.bytes)
      Made(output.id, Right(written.file), written.file.bytes)
    } catch {
      case NonFatal(e) => failed(output, e)
    }

  private def write(output: Output, rewriting: Rewriting): WrittenRows = {
    val format: FileFormat = if (rewriting.toParquet) new ParquetFileFormat else new TextFileFormat
    val job = Job.getInstance(conf)
    val schema = rewriting.frame.schema
    val factory = format.prepareWrite(spark, job, rewriting.codec.map("compression" -> _).toMap, schema)
    val (placement, writing) = (this.placement, new SerializableConfiguration(job.getConfiguration))
    val execution = rewriting.frame.coalesce(1).asInstanceOf[classic.Dataset[Row]].queryExecution
    SQLExecution.withNewExecutionId(execution) {
      execution.toRdd.mapPartitions(rows =>
        Iterator(writeRows(placement, output, factory, schema, writing.value, rows))).collect().head
    }
  }
}

private[spark] object StagedTasks {
  import CompactTasks._

  /** A file that Spark's writer has written. */
  final case class WrittenRows(file: StagedFile, path: String, rows: Long)

  /**
   * Writes an output.
   *
   * @param attempts how often a task may fail
   * @throws IOException if Spark should try again: the failure is not due to the inputs' contents or a change of them,
   *     and attempts are left
   */
  def makeOne(
      placement: Placement,
      attempts: Int,
      output: Output,
      site: Site,
      maxReaders: Int,
      conf: Configuration,
      counters: Counters): Made[StagedFile] = {
    val context = TaskContext.get()
    if (context.isInterrupted()) throw new TaskKilledException("the compaction was cancelled")
    try {
      val staged = staging(placement, output, conf) { path =>
        val codec = output.making match {
          case Recode(codec) => codec.map(Codec.ofHadoop(_, new CompressionCodecFactory(conf)))
          case _ => None
        }
        val out = new MeasuredStream(path.getFileSystem(conf).create(path, true))
        Using.resource(out) { out =>
          output.making match {
            case Recode(_) =>
              Using.resource(new FileReadAhead(
                output.inputs,
                conf,
                1,
                false,
                maxReaders,
                () => context.isInterrupted()))(
                _.serve(() => recode(output, site.rule(output), codec, conf, out)))
              requireListed(output, conf)
            case _ =>
              Using.resource(new JoinedFiles(output.inputs, site.rule(output), maxReaders, conf))(
                _.writeTo(out, () => context.isInterrupted()))
          }
        }
        out
      } { (path, file, out) =>
        if (file.bytes != out.length)
          throw new IOException(s"$path: has ${file.bytes} bytes, but ${out.length} were written")
        // An upload cannot be read before it is completed.
        if (!file.isUpload && checksum(path, None, conf) != out.checksum) {
          throw new IOException(s"$path: the file reads back differently from the data written")
        }
        file
      }
      counters.add(output, staged.bytes)
      Made(output.id, Right(staged), staged.bytes)
    } catch {
      case e: IOException if context.attemptNumber() + 1 < attempts && !UnfitFileException.isCauseOf(e) => throw e
      case e @ (_: IOException | _: RuntimeException | _: LinkageError) => failed(output, e)
    }
  }

  def writeRows(
      placement: Placement,
      output: Output,
      factory: OutputWriterFactory,
      schema: StructType,
      conf: Configuration,
      rows: Iterator[InternalRow]): WrittenRows =
    staging(placement, output, conf) { path =>
      val writer = factory.newInstance(path.toString, schema, new TaskAttemptContextImpl(conf, new TaskAttemptID))
      var count = 0L
      try {
        rows.foreach { row =>
          writer.write(row)
          count += 1
        }
      } finally {
        writer.close()
      }
      count
    } { (path, file, count) => WrittenRows(file, path.toString, count) }

  /**
   * Stages an output. The files of an attempt that fails, or is repeated, are removed with the job's.
   *
   * @param write writes it
   * @param verify looks at the staged file, with what `write` returned
   */
  private def staging[W, T](placement: Placement, output: Output, conf: Configuration)(write: HadoopPath => W)(
      verify: (HadoopPath, StagedFile, W) => T): T = {
    val attempt = placement.attempt(s"${output.id}_${TaskContext.get().taskAttemptId()}", conf)
    var isDone = false
    try {
      val path = pathOf(attempt, output)
      val written = write(path)
      val verified = attempt.commit(_ => true).asScala.toSeq match {
        case Seq(file) => verify(path, file, written)
        case others => throw new IOException(s"$path: ${others.length} files were staged, not one")
      }
      isDone = true
      verified
    } finally {
      if (!isDone) attempt.abort()
    }
  }

  private def pathOf(attempt: TaskAttempt, output: Output): HadoopPath =
    if (output.isCopy) attempt.fileOfAnyName(output.directory, output.name)
    else attempt.file(output.directory, output.name)

  /**
   * Fails if an input that the JVM has read is no longer the listed file. It was opened after the listing, and an open
   * file is read in one version.
   */
  def requireListed(output: Output, conf: Configuration): Unit = inParallel(output.members.toSeq.map { member => () =>
    val file = member.file.cursor()
    file.next()
    val now =
      try file.path.getFileSystem(conf).getFileStatus(file.path)
      catch {
        case e: FileNotFoundException => throw new UnfitFileException(e.getMessage, e)
      }
    if (!file.isStill(now)) throw new UnfitFileException(s"${shown(file.path)}: has changed since it was listed")
  })

  /** A stream that computes the length and checksum of its data. */
  private final class MeasuredStream(to: OutputStream) extends FilterOutputStream(to) {
    private val sum = new CRC32
    private val checked = new CheckedOutputStream(to, sum)
    private var count = 0L

    def length: Long = count
    def checksum: Long = sum.getValue

    override def write(byte: Int): Unit = {
      checked.write(byte)
      count += 1
    }

    override def write(bytes: Array[Byte], start: Int, length: Int): Unit = {
      checked.write(bytes, start, length)
      count += length
    }
  }
}
