package io.millstream.spark.compact

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Locale

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.hadoop.io.compress.CompressionCodecFactory

/** Detects headers that a compaction without `--header` would leave among the lines of its outputs. */
private[spark] object CompactHeaders {
  private val Delimited = Set("csv", "tsv")
  private val MaxOutputs = 3
  private val MaxBytes = 4096
  private val MaxShown = 60

  /** A warning if the first two files of one of the first CSV or TSV outputs begin with the same line. */
  def foretell(options: CompactOptions, plan: CompactPlan, conf: Configuration): Option[String] = {
    def outputs = plan.outputs.iterator.filter(output =>
      output.files > 1 && !output.isUnmerged && isDelimited(output.members.next().name))
    if (options.header) None else outputs.take(MaxOutputs).flatMap(sameLine(_, conf)).nextOption()
  }

  private def isDelimited(name: String): Boolean =
    name.toLowerCase(Locale.ROOT).split('.').drop(1).takeRight(2).exists(Delimited)

  private def sameLine(output: Output, conf: Configuration): Option[String] =
    try {
      val Seq(one, other) = output.paths.take(2)
      firstLine(one, conf).filter(firstLine(other, conf).contains(_)).map { line =>
        s"${CompactTasks.shown(one)} and ${CompactTasks.shown(other)} begin with the same line (${line.take(MaxShown)}). If it is a header, use " +
          "--header (header=True); without it, every file's header becomes a line of the output"
      }
    } catch {
      // The task that merges these files reports the error.
      case _: IOException | _: RuntimeException | _: LinkageError => None
    }

  /** None if the line is empty or too long to be a header. */
  private def firstLine(path: HadoopPath, conf: Configuration): Option[String] = {
    val codec = CompactTasks.codecOf(path, new CompressionCodecFactory(conf))
    Using.resource(CompactTasks.decompressed(path, codec, conf)) { in =>
      val beginning = new String(in.readNBytes(MaxBytes), UTF_8)
      val end = beginning.indexWhere(char => char == '\n' || char == '\r')
      Option.when(end > 0)(beginning.take(end))
    }
  }
}
