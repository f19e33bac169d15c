package org.apache.spark.sql.execution.datasources.millstream.hadoop

import scala.util.control.NonFatal

import io.millstream.hadoop.{Lz4FileCodec, SnappyFileCodec, ZstdFileCodec}
import io.millstream.hadoop.codec.FileCodec
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.CommonConfigurationKeys.IO_COMPRESSION_CODECS_KEY
import org.apache.hadoop.fs.Path
import org.apache.hadoop.io.compress.CompressionCodecFactory

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.datasources.millstream.settings.Switches

/**
 * Makes Hadoop decode files with our codecs where it finds a codec by the name of a file: for Hive tables,
 * `wholeTextFiles`, multi-line csv and json, and all other callers of Hadoop.
 *
 * They are not in the conf block, because it would replace the codecs of `core-site.xml`. They are set when the first
 * session has been created, after the codecs that are already set. Third-party classes for such files are left alone.
 */
object FileCodecClasses extends Logging {
  private val Ours: Seq[Class[_ <: FileCodec]] =
    Seq(classOf[Lz4FileCodec], classOf[SnappyFileCodec], classOf[ZstdFileCodec])

  private[millstream] def install(context: SparkContext): Unit = if (context.conf.get(Switches.Codecs)) {
    try {
      context.hadoopConfiguration.set(IO_COMPRESSION_CODECS_KEY, withOurs(context.hadoopConfiguration))
    } catch {
      case NonFatal(e) =>
        logWarning(s"$IO_COMPRESSION_CODECS_KEY names codecs that Hadoop cannot find, so Millstream adds none: $e")
    }
  }

  /** The codecs of a configuration, followed by those of ours that replace Hadoop's. */
  def withOurs(conf: Configuration): String = {
    val codecs = new CompressionCodecFactory(conf)
    val missing = Ours.filter { ours =>
      val hadoops = ours.getSuperclass.getName
      val found = Option(codecs.getCodec(new Path(s"/f${codecs.getCodecByClassName(hadoops).getDefaultExtension}")))
      found.map(_.getClass.getName).contains(hadoops) && conf.getClassByNameOrNull(ours.getName) != null
    }
    (conf.getTrimmedStrings(IO_COMPRESSION_CODECS_KEY) ++ missing.map(_.getName)).mkString(",")
  }

  /** Whether a configuration has third-party codecs, whose needs are unknown. */
  private[millstream] def hasOthers(conf: Configuration): Boolean =
    conf.getTrimmedStrings(IO_COMPRESSION_CODECS_KEY).exists(name => !Ours.exists(_.getName == name))
}
