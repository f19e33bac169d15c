package org.apache.spark.sql.execution.datasources.millstream.hadoop

import io.millstream.hadoop.MillstreamLocalFileSystem
import org.apache.hadoop.fs.Path

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.datasources.millstream.settings.Switches

/**
 * Hadoop finds our file system for `file:` in the jar, if the jar is on the class path before Spark creates its first
 * file system, which is before Spark adds the jars of `spark.jars`.
 */
private[millstream] object LocalFiles extends Logging {
  private val Key = "fs.file.impl"

  /** The setting that a session without our file system lacks. */
  val Missing: String = s"spark.driver.extraClassPath=${jar.getPath}"

  /** The file system of local files. */
  sealed trait Server
  case object Ours extends Server

  /** A class set by the user. */
  final case class Chosen(className: String) extends Server

  /** The class of the first file system, which was created before the jar was available. */
  final case class Early(className: String) extends Server

  def server(context: SparkContext): Server = {
    val conf = context.hadoopConfiguration
    // Hadoop's own call for local files takes only subclasses of its class.
    val found = new Path("file:///").getFileSystem(conf).getClass.getName
    if (found == classOf[MillstreamLocalFileSystem].getName) Ours
    else Option(conf.getTrimmed(Key)).filter(_ == found).fold[Server](Early(found))(Chosen)
  }

  def warnIfEarly(context: SparkContext): Unit = if (context.conf.get(Switches.Listing)) server(context) match {
    case Ours =>
    case Chosen(className) => logInfo(s"$Key is $className, so Spark and Hadoop list and read local files")
    case Early(_) =>
      logWarning("Spark and Hadoop list and read local files, at their usual speed, because Millstream's jar was added after Spark had started, as jars of " +
        s"spark.jars (--jars) are. Results are the same. The missing setting is $Missing; `millstream spark-conf` prints it and all others. " +
        "This warning is not repeated.")
  }

  /** The jar that this class is from. */
  def jar: java.net.URL = classOf[MillstreamLocalFileSystem].getProtectionDomain.getCodeSource.getLocation
}
