package io.millstream.spark

import java.io.{IOException, InputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Locale

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.hadoop.io.compress.CompressionCodecFactory

/** Notices headers that a compaction without `--header` would leave among the lines of its outputs. */
private[spark] object CompactHeaders {
  private val Delimited = Seq(".csv", ".tsv")
  private val MostBytes = 4096
  private val MostShown = 60

  /** A message if the first two files of an output begin with the same line. Only the first such output is looked at. */
  def foretell(options: CompactOptions, plan: CompactPlan, conf: Configuration): Option[String] =
    if (options.header) None
    else plan.outputs.find(output => output.files > 1 && !output.isUnmerged && isDelimited(output.members.next().name)).flatMap { output =>
      val Seq(one, other) = output.paths.take(2)
      try {
        for {
          line <- firstLine(one, conf)
          if firstLine(other, conf).contains(line)
        } yield s"${CompactTasks.shown(one)} and ${CompactTasks.shown(other)} begin with the same line (${line.take(MostShown)}): if it is a " +
          "header, use --header (header=True), otherwise it will be a line of the outputs for each file"
      } catch {
        // Whoever merges the files reports it.
        case _: IOException => None
      }
    }

  private def isDelimited(name: String): Boolean = {
    val endings = name.toLowerCase(Locale.ROOT).split('.').drop(1).takeRight(2).map("." + _)
    endings.exists(Delimited.contains)
  }

  /** None if there is no whole line near the beginning. */
  private def firstLine(path: HadoopPath, conf: Configuration): Option[String] = {
    val codec = Option(new CompressionCodecFactory(conf).getCodec(path))
    Using.resource(path.getFileSystem(conf).open(path)) { file =>
      val plain: InputStream = codec.fold[InputStream](file)(_.createInputStream(file))
      val beginning = new String(plain.readNBytes(MostBytes), UTF_8)
      val end = beginning.indexWhere(char => char == '\n' || char == '\r')
      Option.when(end > 0)(beginning.take(end))
    }
  }
}
