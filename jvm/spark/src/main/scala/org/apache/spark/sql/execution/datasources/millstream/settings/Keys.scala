package org.apache.spark.sql.execution.datasources.millstream.settings

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import io.millstream.hadoop.listing.ListingOptions
import io.millstream.write.store.WriteOptions

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.{ResetCommand, SetCommand}
import org.apache.spark.sql.internal.SQLConf

/** All of Millstream's keys, in Spark's and in Hadoop's configuration. */
private[sql] object Keys extends Logging {
  private val OfSpark: Seq[ConfigEntry[_]] = Seq(
    Switches.Listing,
    Switches.Reading,
    Switches.TextFiles,
    Switches.RemoteSystems,
    Switches.Codecs,
    ReadSettings.OpenCostBytes,
    ReadSettings.MaxReaders,
    IndexSettings.Enabled,
    IndexSettings.Directory,
    IndexSettings.MinSize,
    Switches.DirectWrites,
    SyncSettings.Threads,
    SyncSettings.Directory)
  private val SparkPrefix = "spark.millstream."
  private val HadoopPrefix = "fs.millstream."

  /** The prefix of Hadoop's keys in Spark's configuration. */
  private val HadoopInSpark = "spark.hadoop."

  val Known: Set[String] = (OfSpark.map(_.key) ++ ListingOptions.KEYS.asScala ++ WriteOptions.KEYS.asScala).toSet

  /** The session's value of a key; if it is unset there, the value at the start of the application. */
  def get[T](conf: SQLConf, entry: ConfigEntry[T]): T =
    if (conf.contains(entry.key)) conf.getConf(entry)
    else atStart(entry).fold(conf.getConf(entry))(entry.valueConverter)

  /** Whether a key has a value, in the session or from the start. */
  def isSet(conf: SQLConf, entry: ConfigEntry[_]): Boolean = conf.contains(entry.key) || atStart(entry).isDefined

  private def atStart(entry: ConfigEntry[_]): Option[String] =
    SparkContext.getActive.flatMap(_.getConf.getOption(entry.key))

  /**
   * An unknown key.
   *
   * @param meant the key that it is a misspelling of, if it is one
   */
  private[millstream] final case class Unknown(key: String, meant: Option[String])

  private val warned = ConcurrentHashMap.newKeySet[String]()

  /**
   * Refuses misspelt keys, and warns about other unknown ones, once each: a newer Millstream may have them, and
   * settings that an installation shares must not stop the statements of an older one.
   *
   * @throws IllegalArgumentException for a misspelt key; the message names the one that was meant
   */
  def check(keys: Iterable[String]): Unit = unknown(keys).foreach {
    case Unknown(key, Some(meant)) => throw new IllegalArgumentException(
        s"${misspelt(key, meant)} Correct it, or remove it (RESET, or spark.conf.unset)")
    case Unknown(key, None) =>
      if (warned.add(key))
        logWarning(s"$key is not a key of this version of Millstream and has no effect; a newer version may have it")
  }

  /**
   * Warns about Hadoop's keys that a session has with Spark's prefix, once each: they reach Hadoop only at the start of
   * an application.
   *
   * @param context the application's settings at its start, which its sessions also have
   */
  def checkPrefixes(keys: Iterable[(String, String)], context: SparkContext): Unit = keys.foreach {
    case (Ours(key, name), value) if key != name && !context.conf.getOption(key).contains(value) && warned.add(key) =>
      logWarning(s"$key has no effect in a running session: set $name, without $HadoopInSpark")
    case _ =>
  }

  private[millstream] def misspelt(key: String, meant: String): String =
    s"$key is not a key of Millstream; did you mean $meant?"

  private[millstream] def unknown(keys: Iterable[String]): Iterable[Unknown] = keys.collect {
    case Ours(key, name) if !Known(name) =>
      // Among equally near keys, prefers one with the same letters in another order.
      val nearest = Known.toSeq.sorted.filter(isNear(name, _)).minByOption(known =>
        (distance(name, known), known.sorted != name.sorted))
      Unknown(key, nearest.map(key.stripSuffix(name) + _))
  }

  /** A key with one of Millstream's prefixes, and its name without Spark's prefix for Hadoop's keys. */
  private object Ours {
    def unapply(key: String): Option[(String, String)] = {
      val name = key.stripPrefix(HadoopInSpark)
      Option.when(name.startsWith(HadoopPrefix) || key.startsWith(SparkPrefix))((key, name))
    }
  }

  /**
   * Whether one name is so near another that it counts as a misspelling of it: at most two characters differ, or its
   * last words are missing. So a new key must not be near one of an earlier version, which would refuse it
   * (`test_keys.py`).
   */
  def isNear(name: String, known: String): Boolean = known.startsWith(s"$name.") || distance(name, known) <= 2

  /** The edit distance: the number of characters to insert, delete or replace. */
  private def distance(one: String, other: String): Int =
    one.foldLeft((0 to other.length).toVector) { (row, character) =>
      other.indices.scanLeft(row.head + 1) { (left, i) =>
        math.min(math.min(left, row(i + 1)) + 1, row(i) + (if (character == other(i)) 0 else 1))
      }.toVector
    }.last

  /** The errors in the values of keys: the messages of their readers. */
  private[millstream] def invalidValues(context: SparkContext): Seq[String] = {
    val readers: Seq[() => Any] =
      OfSpark.map(entry => () => context.conf.getOption(entry.key).foreach(_ => context.conf.get(entry))) ++
        Seq(() => new ListingOptions(context.hadoopConfiguration), () => new WriteOptions(context.hadoopConfiguration))
    readers.flatMap(read =>
      try {
        read()
        None
      } catch {
        case e: IllegalArgumentException => Some(e.getMessage)
      })
  }
}

/** Refuses statements in a session with misspelt keys, except for statements that can remove these keys. */
class CheckKeys(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case _: SetCommand | _: ResetCommand =>
      case _ =>
        val all = conf.getAllConfs
        Keys.check(all.keys)
        Keys.checkPrefixes(all, session.sparkContext)
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
