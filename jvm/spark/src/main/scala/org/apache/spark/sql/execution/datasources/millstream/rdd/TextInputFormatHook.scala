package org.apache.spark.sql.execution.datasources.millstream.rdd

import java.lang.reflect.Constructor
import java.util.{Map => JavaMap}

import scala.util.control.NonFatal

import io.millstream.hadoop.Companion
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapred.TextInputFormat
import org.apache.hadoop.util.ReflectionUtils

import org.apache.spark.internal.Logging

/** Starts with the file system, so before the first RDD, in the driver and in executors. */
class TextInputFormatHook extends Companion {
  override def start(): Unit = TextInputFormatHook.install()
}

/**
 * Makes Hadoop create a [[PackedTextInputFormat]] when a `TextInputFormat` is requested.
 *
 * Spark's RDDs and Hive create their input formats with `ReflectionUtils.newInstance`, which caches the constructor of each
 * class. We replace the cached constructor by that of a subclass. Callers that create an input format in another way get
 * Hadoop's own, and so do all callers if Hadoop no longer has this cache.
 */
private[rdd] object TextInputFormatHook extends Logging {
  def install(): Unit =
    try {
      constructors.put(classOf[TextInputFormat], classOf[PackedTextInputFormat].getConstructor())
      if (!isInstalled) warn("it does not use the cache of constructors")
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
    logWarning("Millstream does not support this Hadoop, so sc.textFile makes tasks and reads files as without it; results are the same. " +
      s"This warning is not repeated. Cause: $cause")
}
