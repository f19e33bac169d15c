package org.apache.spark.sql.execution.datasources.millstream

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * A session's settings for reading many files, by a DataFrame, an RDD or a compaction.
 *
 * @param openCostBytes cost of opening a file, in bytes, when files are packed into tasks
 * @param maxReaders maximum number of native threads with which a task reads ahead
 */
final case class ReadSettings private (openCostBytes: Long, maxReaders: Int)

object ReadSettings {
  private[millstream] val OpenCostBytes: ConfigEntry[Long] = SQLConf.buildConf("spark.millstream.read.openCostInBytes")
    .doc("The cost of opening a file, in bytes, when files are packed into tasks.")
    .bytesConf(ByteUnit.BYTE)
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(32L << 10)

  private[millstream] val MaxReaders: ConfigEntry[Int] = SQLConf.buildConf("spark.millstream.read.maxReaders")
    .doc("The maximum number of native threads with which a task reads ahead; they are started only if reading waits for the storage.")
    .intConf
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(32)

  private[millstream] def of(conf: SQLConf): ReadSettings = ReadSettings(Keys.get(conf, OpenCostBytes), Keys.get(conf, MaxReaders))

  def of(spark: SparkSession): ReadSettings = ReadSettings(get(spark, OpenCostBytes), get(spark, MaxReaders))

  /** The settings of the active session, or of the context if there is none. */
  private[millstream] def of(context: SparkContext): ReadSettings =
    sessionOf(context).fold(ReadSettings(context.conf.get(OpenCostBytes), context.conf.get(MaxReaders)))(of)

  private[millstream] def get[T](context: SparkContext, entry: ConfigEntry[T]): T =
    sessionOf(context).fold(context.conf.get(entry))(get(_, entry))

  private def get[T](spark: SparkSession, entry: ConfigEntry[T]): T = Keys.get(spark.sessionState.conf, entry)

  private def sessionOf(context: SparkContext): Option[SparkSession] =
    SparkSession.getActiveSession.orElse(SparkSession.getDefaultSession).filter(_.sparkContext eq context)
}
