package org.apache.spark.sql.execution.datasources.millstream.settings

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * A session's settings for synchronizations.
 *
 * @param threads number of concurrent calls of a task; None for the default
 * @param directory where temporary working directories are created; None for the destination
 */
final case class SyncSettings(threads: Option[Int], directory: Option[String])

object SyncSettings {
  val Threads: ConfigEntry[Int] = SQLConf.buildConf("spark.millstream.sync.threads")
    .doc("The number of calls that a task of a synchronization has in flight at once; 0 means 32.")
    .intConf
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(0)

  val Directory: ConfigEntry[String] = SQLConf.buildConf("spark.millstream.sync.dir")
    .doc("The location of the temporary working directories of synchronizations; by default the destination or, with a local master, this machine.")
    .stringConf
    .createWithDefault("")

  def of(session: SparkSession): SyncSettings = {
    val conf = session.sessionState.conf
    SyncSettings(Some(Keys.get(conf, Threads)).filter(_ > 0), Some(Keys.get(conf, Directory)).filter(_.nonEmpty))
  }
}
