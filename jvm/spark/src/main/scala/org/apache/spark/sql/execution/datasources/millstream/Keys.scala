package org.apache.spark.sql.execution.datasources.millstream

import scala.jdk.CollectionConverters._

import io.millstream.hadoop.ListingOptions
import io.millstream.write.store.WriteOptions

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.{ResetCommand, SetCommand}
import org.apache.spark.sql.execution.datasources.millstream.rdd.PackedTextInputFormat
import org.apache.spark.sql.execution.datasources.millstream.write.ReplaceInserts
import org.apache.spark.sql.internal.SQLConf

/** All of Millstream's keys, in Spark's and in Hadoop's configuration. */
private[sql] object Keys {
  private val OfSpark: Seq[ConfigEntry[_]] = Seq(IndexListedFiles.Enabled, ReplaceFileScans.Enabled, PackedTextInputFormat.Enabled,
    RemoteFileSystems.Enabled, FileCodecClasses.Enabled,
    ReadSettings.OpenCostBytes, ReadSettings.MaxReaders, IndexSettings.Enabled, IndexSettings.Directory, IndexSettings.MinSize,
    ReplaceInserts.Enabled, SyncSettings.Threads, SyncSettings.Directory)
  private val SparkPrefix = "spark.millstream."
  private val HadoopPrefix = "fs.millstream."
  /** The prefix of Hadoop's keys in Spark's configuration. */
  private val HadoopInSpark = "spark.hadoop."

  val Known: Set[String] = (OfSpark.map(_.key) ++ ListingOptions.KEYS.asScala ++ WriteOptions.KEYS.asScala).toSet

  /** The session's value of a key; if it is unset there, the value with which the application was started. */
  def get[T](conf: SQLConf, entry: ConfigEntry[T]): T =
    if (conf.contains(entry.key)) conf.getConf(entry) else atStart(entry).fold(conf.getConf(entry))(entry.valueConverter)

  /** Whether a key has a value, in the session or from the start. */
  def isSet(conf: SQLConf, entry: ConfigEntry[_]): Boolean = conf.contains(entry.key) || atStart(entry).isDefined

  private def atStart(entry: ConfigEntry[_]): Option[String] = SparkContext.getActive.flatMap(_.getConf.getOption(entry.key))

  /**
   * Refuses keys that do not exist.
   *
   * @throws IllegalArgumentException for an unknown key; the message names the most similar known key
   */
  def check(keys: Iterable[String]): Unit = keys.foreach { key =>
    val name = key.stripPrefix(HadoopInSpark)
    if ((name.startsWith(HadoopPrefix) || key.startsWith(SparkPrefix)) && !Known(name)) {
      val nearest = Known.toSeq.sorted.minBy(distance(name, _))
      throw new IllegalArgumentException(s"$key is not a key of Millstream; did you mean ${key.stripSuffix(name)}$nearest? Correct it, or remove it " +
        "(RESET, or spark.conf.unset)")
    }
  }

  /** The edit distance: the number of characters to insert, delete or replace. */
  private def distance(one: String, other: String): Int =
    one.foldLeft((0 to other.length).toVector) { (row, character) =>
      other.indices.scanLeft(row.head + 1) { (left, i) =>
        math.min(math.min(left, row(i + 1)) + 1, row(i) + (if (character == other(i)) 0 else 1))
      }.toVector
    }.last
}

/** Refuses statements in a session with unknown keys, except for statements that can remove these keys. */
class CheckKeys(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case _: SetCommand | _: ResetCommand =>
      case _ =>
        Keys.check(conf.getAllConfs.keys)
        CheckKeys.once(session.sparkContext)
    }
    plan
  }
}

private object CheckKeys {
  @volatile private var checked: SparkContext = _

  /** Checks Hadoop's configuration once per context, because core-site.xml does not change. */
  private def once(context: SparkContext): Unit = if (checked ne context) {
    Keys.check(context.hadoopConfiguration.asScala.map(_.getKey))
    checked = context
  }
}
