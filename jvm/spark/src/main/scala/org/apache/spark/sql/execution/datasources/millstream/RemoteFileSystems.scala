package org.apache.spark.sql.execution.datasources.millstream

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/**
 * Makes Hadoop use our subclasses of its file systems for S3 and HDFS.
 *
 * Unlike that for `file:`, they are not in the conf block: a class path may lack their superclasses, or have them only where
 * Spark adds jars later (`spark.jars.packages`), and every access would fail then. So they are set once the first session is made,
 * if they load, and if nobody has chosen another class. A file system that was created before stays as it is, and so do the
 * listing and reading on it.
 */
private[millstream] object RemoteFileSystems extends Logging {
  val Enabled: ConfigEntry[Boolean] = SQLConf.buildConf("spark.millstream.remote.enabled")
    .doc("Whether Millstream lists and reads s3a: and hdfs:. If false when the first session is made, all of that is Spark's and Hadoop's own.")
    .booleanConf
    .createWithDefault(true)

  /** A key of Hadoop's, the class that it stands for by default, and ours. */
  private final case class Subclass(key: String, hadoops: String, ours: String)

  private val Subclasses = Seq(
    Subclass("fs.s3a.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem", "io.millstream.hadoop.s3a.MillstreamS3AFileSystem"),
    Subclass("fs.hdfs.impl", "org.apache.hadoop.hdfs.DistributedFileSystem", "io.millstream.hadoop.hdfs.MillstreamDistributedFileSystem"))

  def install(context: SparkContext): Unit = if (context.conf.get(Enabled)) Subclasses.foreach { subclass =>
    val conf = context.hadoopConfiguration
    val chosen = conf.getTrimmed(subclass.key, subclass.hadoops)
    if (chosen != subclass.hadoops && chosen != subclass.ours) {
      logInfo(s"${subclass.key} is $chosen, so Spark and Hadoop list and read these files")
    } else {
      whyNot(subclass.ours) match {
        case None => conf.set(subclass.key, subclass.ours)
        case Some(reason) if Utils.classIsLoadable(subclass.hadoops) =>
          logInfo(s"${subclass.key} stays ${subclass.hadoops}, since Millstream's class path lacks it (docs/remote.md): $reason")
        case Some(_) =>
      }
    }
  }

  private def whyNot(className: String): Option[String] =
    try {
      Utils.classForName[AnyRef](className)
      None
    } catch {
      case e @ (_: LinkageError | _: ClassNotFoundException) => Some(e.toString)
    }
}
