package org.apache.spark.sql.execution.datasources.millstream.rdd

import java.lang.reflect.Constructor
import java.util.{Map => JavaMap}

import scala.util.control.NonFatal

import io.millstream.hadoop.Companion
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapred.TextInputFormat
import org.apache.hadoop.util.ReflectionUtils

import org.apache.spark.internal.Logging

/** Starts with the file system: before the first RDD, in the driver and in executors. */
class TextInputFormatHook extends Companion {
  override def start(): Unit = TextInputFormatHook.install()
}

/**
 * Makes Hadoop create [[PackedTextInputFormat]] where a `TextInputFormat` is asked for.
 *
 * Spark's RDDs and Hive have their input formats made by `ReflectionUtils.newInstance`, which keeps the constructor of each
 * class that it has met. We put the constructor of a subclass in its place. Whoever makes an input format in another way
 * gets Hadoop's own, and so does everybody if Hadoop no longer works like this.
 */
private[rdd] object TextInputFormatHook extends Logging {
  def install(): Unit =
    try {
      constructors.put(classOf[TextInputFormat], classOf[PackedTextInputFormat].getConstructor())
      if (!isInstalled) warn("its constructors are not taken from there")
    } catch {
      case e @ (NonFatal(_) | _: LinkageError) => warn(e.toString)
    }

  def isInstalled: Boolean =
    ReflectionUtils.newInstance(classOf[TextInputFormat], new Configuration(false)).isInstanceOf[PackedTextInputFormat]

  private def constructors: JavaMap[Class[_], Constructor[_]] = {
    val field = classOf[ReflectionUtils].getDeclaredField("CONSTRUCTOR_CACHE")
    field.setAccessible(true)
    field.get(null).asInstanceOf[JavaMap[Class[_], Constructor[_]]]
  }

  private def warn(cause: String): Unit =
    logWarning("Millstream does not fit this Hadoop, so sc.textFile makes tasks and reads files as without it; results are the same. " +
      s"This is said once. Cause: $cause")
}
