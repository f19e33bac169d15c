package org.apache.spark.sql.execution.datasources.millstream.settings

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.{ConfigEntry, DYN_ALLOCATION_ENABLED}
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * A session's settings for reading many files, by a DataFrame, an RDD or a compaction.
 *
 * @param openCostBytes cost of opening a file, in bytes, when files are packed into tasks
 * @param maxReaders maximum number of native threads with which a task reads ahead
 * @param isChosen whether the user has set that maximum
 */
final case class ReadSettings private (
    openCostBytes: Long,
    private val maxReaders: Int,
    private val isChosen: Boolean) {

  /**
   * The maximum number of native threads with which each of some tasks reads ahead. On a file system other than the
   * local one, concurrent tasks have `MostAtOnce` threads together, unless the user has set the number for each task: a
   * large cluster must not send more concurrent requests to a server.
   */
  def readers(tasks: Int, isLocal: Boolean, context: SparkContext): Int =
    if (isLocal || isChosen) {
      maxReaders
    } else {
      // A dynamic cluster may grow for these tasks.
      val room = if (context.conf.get(DYN_ALLOCATION_ENABLED)) tasks
      else context.maxNumConcurrentTasks(context.resourceProfileManager.defaultResourceProfile)
      val share = ReadSettings.MostAtOnce / math.max(1, math.min(tasks, room))
      math.min(maxReaders, math.max(ReadSettings.LeastReaders, share))
    }
}

object ReadSettings {
  private val MostAtOnce = 2048
  private val LeastReaders = 4

  private[millstream] val OpenCostBytes: ConfigEntry[Long] = SQLConf.buildConf("spark.millstream.read.openCostInBytes")
    .doc("The cost of opening a file, in bytes, when files are packed into tasks.")
    .bytesConf(ByteUnit.BYTE)
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(32L << 10)

  private[millstream] val MaxReaders: ConfigEntry[Int] = SQLConf.buildConf("spark.millstream.read.maxReaders")
    .doc("The maximum number of native threads that a task uses to read ahead; they start only if reading waits for the storage. On a "
      + "cluster with more than 64 cores, the default for S3 and HDFS is lower.")
    .intConf
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(32)

  private[millstream] def of(conf: SQLConf): ReadSettings =
    ReadSettings(Keys.get(conf, OpenCostBytes), Keys.get(conf, MaxReaders), Keys.isSet(conf, MaxReaders))

  def of(spark: SparkSession): ReadSettings = of(spark.sessionState.conf)

  /** The settings of the active session, or of the context if there is none. */
  private[millstream] def of(context: SparkContext): ReadSettings =
    sessionOf(context).fold(ReadSettings(
      context.conf.get(OpenCostBytes),
      context.conf.get(MaxReaders),
      context.conf.contains(MaxReaders)))(of)

  private[millstream] def get[T](context: SparkContext, entry: ConfigEntry[T]): T =
    sessionOf(context).fold(context.conf.get(entry))(get(_, entry))

  private def get[T](spark: SparkSession, entry: ConfigEntry[T]): T = Keys.get(spark.sessionState.conf, entry)

  private def sessionOf(context: SparkContext): Option[SparkSession] =
    SparkSession.getActiveSession.orElse(SparkSession.getDefaultSession).filter(_.sparkContext eq context)
}
