package io.millstream.spark.formats

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Paths}

import scala.collection.immutable.ListMap
import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.sun.management.OperatingSystemMXBean

import org.apache.spark.scheduler.{
  SparkListener,
  SparkListenerJobEnd,
  SparkListenerStageCompleted,
  SparkListenerTaskEnd,
  StageInfo
}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.{col, count, length, lit, sum}

/**
 * One measured run of `millstream formats`: warms up this JVM, does the job several times, and writes the cost of each
 * round to a JSON file.
 *
 * {{{
 * FormatsProbe read|repartition PATH WARM_UP_PATH ROUNDS ANSWER
 * }}}
 *
 * It does not use Millstream: in runs of stock Spark, the class path has only this class of our jar.
 */
object FormatsProbe {

  /** Java code that decodes and splits lines is slow until it is compiled, which would count against stock Spark. */
  private val WarmUps = 2

  /** Tasks of a repartition for each core. */
  private val TasksPerCore = 2
  private val NsPerS = 1e9

  def main(arguments: Array[String]): Unit = {
    endWithParent()
    val Array(job, path, warmUp, rounds, answer) = arguments
    val measured =
      try {
        val spark = SparkSession.builder().appName(s"millstream formats: $job of $path").getOrCreate()
        try measure(spark, job, path, warmUp, rounds.toInt)
        finally spark.stop()
      } catch {
        case e: Throwable => ListMap("error" -> reason(e)).asJava
      }
    Files.write(Paths.get(answer), new ObjectMapper().writeValueAsBytes(measured))
  }

  /** Ends this JVM when its parent ends in any way, which closes the pipe. */
  private def endWithParent(): Unit = {
    val watcher = new Thread(() => {
      while (System.in.read() >= 0) {}
      Runtime.getRuntime.halt(1)
    })
    watcher.setDaemon(true)
    watcher.start()
  }

  private def reason(e: Throwable): String = {
    val causes = Iterator.iterate(e)(_.getCause).takeWhile(_ != null).toSeq
    s"${causes.last.getClass.getSimpleName}: ${causes.last.getMessage}".linesIterator.next()
  }

  private def measure(
      spark: SparkSession,
      job: String,
      path: String,
      warmUp: String,
      rounds: Int): java.util.Map[String, Any] = {
    val tasks = new Tasks(spark)
    (1 to WarmUps).foreach(_ => lines(spark, job, warmUp))
    val all = (1 to rounds).map(_ => round(spark, job, path, tasks).asJava)
    ListMap[String, Any](
      "cores" -> spark.sparkContext.defaultParallelism,
      "peak_bytes" -> peakBytes,
      "rounds" -> all.asJava).asJava
  }

  private def round(spark: SparkSession, job: String, path: String, tasks: Tasks): ListMap[String, Any] = {
    tasks.forget()
    val (start, cpuBefore) = (System.nanoTime(), cpuNs)
    val rows = lines(spark, job, path)
    val (wallNs, ownCpuNs) = (System.nanoTime() - start, cpuNs - cpuBefore)
    tasks.await()
    // Executors of a local master are threads of this JVM.
    val cpu = if (spark.sparkContext.isLocal) ownCpuNs else ownCpuNs + tasks.cpuNs
    ListMap(
      "wall_s" -> wallNs / NsPerS,
      "cpu_s" -> cpu / NsPerS,
      "rows" -> rows,
      "partitions" -> tasks.ofRead.length,
      "skew" -> tasks.skew)
  }

  private def lines(spark: SparkSession, job: String, path: String): Long = {
    val text = spark.read.text(path)
    if (job == "read") text.count()
    // The sum needs the lines after the shuffle; a mere count would move empty rows.
    else text.repartition(TasksPerCore * spark.sparkContext.defaultParallelism).agg(
      count(lit(1)),
      sum(length(col("value")))).first().getLong(0)
  }

  private def cpuNs: Long =
    ManagementFactory.getOperatingSystemMXBean.asInstanceOf[OperatingSystemMXBean].getProcessCpuTime

  /** Peak resident memory of this process. */
  private def peakBytes: Long = {
    val line = Files.readAllLines(Paths.get("/proc/self/status")).asScala.find(_.startsWith("VmHWM:")).get
    line.split("\\s+")(1).toLong << 10
  }

  /** The tasks of a round. */
  private final class Tasks(spark: SparkSession) extends SparkListener {
    private val stages = mutable.Map.empty[Int, StageInfo]
    private val durations = mutable.Map.empty[Int, mutable.Buffer[Long]]
    private var cpu = 0L
    private var ended = -1
    spark.sparkContext.addSparkListener(this)

    override def onStageCompleted(event: SparkListenerStageCompleted): Unit =
      synchronized { stages(event.stageInfo.stageId) = event.stageInfo }

    override def onTaskEnd(event: SparkListenerTaskEnd): Unit = synchronized {
      durations.getOrElseUpdate(event.stageId, mutable.Buffer.empty) += math.max(event.taskInfo.duration, 1)
      cpu += Option(event.taskMetrics).fold(0L)(_.executorCpuTime)
    }

    override def onJobEnd(event: SparkListenerJobEnd): Unit = synchronized {
      ended = event.jobId
      notifyAll()
    }

    def forget(): Unit = {
      await()
      synchronized {
        stages.clear()
        durations.clear()
        cpu = 0
      }
    }

    /** Waits until all tasks so far have been reported: events arrive in order, and this job's are the last. */
    def await(): Unit = {
      val last = spark.sparkContext.parallelize(Seq(0), 1).countAsync()
      last.get()
      synchronized {
        while (ended < last.jobIds.last) wait()
        stages.remove(stages.keys.max)
      }
    }

    def cpuNs: Long = synchronized(cpu)

    /**
     * Task times, in milliseconds, of the stage that reads: among stages that read no other's output, the one with the
     * most work.
     */
    def ofRead: Seq[Long] = synchronized {
      val reading = stages.values.filter(_.parentIds.isEmpty).flatMap(stage => durations.get(stage.stageId))
      reading.maxByOption(_.sum).map(_.toSeq).getOrElse(Nil)
    }

    /** The longest task of the stage that reads, as a multiple of the median task. */
    def skew: Double = {
      val sorted = ofRead.sorted
      val middle = sorted.slice((sorted.length - 1) / 2, sorted.length / 2 + 1)
      if (sorted.isEmpty) 1.0 else sorted.last * middle.length / middle.sum.toDouble
    }
  }
}
