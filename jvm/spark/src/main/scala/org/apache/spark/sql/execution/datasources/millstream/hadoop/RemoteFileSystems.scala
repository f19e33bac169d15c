package org.apache.spark.sql.execution.datasources.millstream.hadoop

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.datasources.millstream.settings.Switches
import org.apache.spark.util.Utils

/**
 * Makes Hadoop use our subclasses of its file systems for S3 and HDFS.
 *
 * Unlike the one for `file:`, Hadoop does not find them in the jar itself: a class path may lack their superclasses, or
 * get them only with jars that Spark adds later (`spark.jars.packages`). So they are set when the first session has
 * been created, if they load and no other class is configured. A file system that was created earlier stays unchanged,
 * and so do listing and reading on it.
 */
private[millstream] object RemoteFileSystems extends Logging {

  /** A scheme, Hadoop's key for its class, the default class, and ours. */
  private final case class Subclass(scheme: String, key: String, hadoops: String, ours: String)

  private val Subclasses = Seq(
    Subclass(
      "s3a",
      "fs.s3a.impl",
      "org.apache.hadoop.fs.s3a.S3AFileSystem",
      "io.millstream.hadoop.s3a.MillstreamS3AFileSystem"),
    Subclass(
      "hdfs",
      "fs.hdfs.impl",
      "org.apache.hadoop.hdfs.DistributedFileSystem",
      "io.millstream.hadoop.hdfs.MillstreamDistributedFileSystem"))

  /** Which file system serves a scheme, with its class. */
  private[millstream] sealed trait Server

  /** @param className our class */
  private[millstream] final case class Ours(key: String, className: String) extends Server
  private[millstream] final case class SwitchedOff(className: String) extends Server
  private[millstream] final case class Chosen(key: String, className: String) extends Server

  /** The configured class does not load. */
  private[millstream] final case class Missing(key: String, className: String, reason: String) extends Server

  /** Hadoop's class is on the class path, but ours cannot be used with it. */
  private[millstream] final case class Apart(key: String, className: String, reason: String) extends Server

  /** There is no class for this scheme. */
  private[millstream] case object Nobody extends Server

  def install(context: SparkContext): Unit =
    if (context.conf.get(Switches.RemoteSystems)) Subclasses.foreach { subclass =>
      server(context, subclass) match {
        case Ours(key, className) => context.hadoopConfiguration.set(key, className)
        case Chosen(key, className) => logInfo(s"$key is $className, so Spark and Hadoop list and read these files")
        case Apart(key, className, reason) =>
          logInfo(s"$key stays $className, because Millstream's class path lacks it (docs/remote.md): $reason")
        case Missing(key, className, reason) => logInfo(s"$key is $className, which does not load: $reason")
        case SwitchedOff(_) | Nobody =>
      }
    }

  /** The file system of each scheme. */
  def servers(context: SparkContext): Seq[(String, Server)] =
    Subclasses.map(subclass => subclass.scheme -> server(context, subclass))

  private def server(context: SparkContext, subclass: Subclass): Server = {
    val chosen = context.hadoopConfiguration.getTrimmed(subclass.key, subclass.hadoops)
    if (chosen != subclass.hadoops && chosen != subclass.ours) {
      whyNot(chosen).fold[Server](Chosen(subclass.key, chosen))(Missing(subclass.key, chosen, _))
    } else if (chosen == subclass.hadoops && !context.conf.get(Switches.RemoteSystems)) {
      SwitchedOff(chosen)
    } else {
      whyNot(subclass.ours) match {
        case None => Ours(subclass.key, subclass.ours)
        case Some(reason) if Utils.classIsLoadable(subclass.hadoops) => Apart(subclass.key, subclass.hadoops, reason)
        case Some(_) => Nobody
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
