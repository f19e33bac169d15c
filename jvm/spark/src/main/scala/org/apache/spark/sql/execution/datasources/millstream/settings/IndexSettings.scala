package org.apache.spark.sql.execution.datasources.millstream.settings

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.internal.SQLConf

/**
 * A session's settings for indexes of compressed files.
 *
 * @param directory where they are kept; None for a directory next to each file
 * @param minSize bytes of the smallest file that several tasks read
 */
private[millstream] final case class IndexSettings(isEnabled: Boolean, directory: Option[String], minSize: Long)

private[millstream] object IndexSettings {
  val Enabled: ConfigEntry[Boolean] = SQLConf.buildConf("spark.millstream.index.enabled")
    .doc("Whether large compressed text files are read by several tasks, with an index that is made when a file is first read.")
    .booleanConf
    .createWithDefault(true)

  val Directory: ConfigEntry[String] = SQLConf.buildConf("spark.millstream.index.directory")
    .doc("The directory for the indexes of compressed files; by default the directory _millstream next to each file.")
    .stringConf
    .createWithDefault("")

  val MinSize: ConfigEntry[Long] = SQLConf.buildConf("spark.millstream.index.minSize")
    .doc("A compressed file of fewer bytes than this gets no index, and one task reads it.")
    .bytesConf(ByteUnit.BYTE)
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(4L << 20)

  def of(conf: SQLConf): IndexSettings =
    make(Keys.get(conf, Enabled), Keys.get(conf, Directory), Keys.get(conf, MinSize))

  /** The settings of the active session, or of the context if there is none. */
  def of(context: SparkContext): IndexSettings =
    make(ReadSettings.get(context, Enabled), ReadSettings.get(context, Directory), ReadSettings.get(context, MinSize))

  private def make(isEnabled: Boolean, directory: String, minSize: Long) =
    IndexSettings(isEnabled, Option(directory).filter(_.nonEmpty), minSize)
}
