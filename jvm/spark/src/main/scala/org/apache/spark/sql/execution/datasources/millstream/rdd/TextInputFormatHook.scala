package org.apache.spark.sql.execution.datasources.millstream.rdd

import scala.util.control.NonFatal

import io.millstream.hadoop.fs.{FileSystemInitializer, HadoopConstructors}
import org.apache.hadoop.mapred.TextInputFormat

import org.apache.spark.internal.Logging

/** Starts with the file system, so before the first RDD, in the driver and in executors. */
class TextInputFormatHook extends FileSystemInitializer {
  override def start(): Unit = TextInputFormatHook.install()
}

/**
 * Makes Hadoop create a [[PackedTextInputFormat]] when a `TextInputFormat` is requested ([[HadoopConstructors]]).
 *
 * Callers that create an input format differently from Spark's RDDs and Hive get Hadoop's own, and so do all callers if
 * Hadoop no longer has its cache of constructors.
 */
private[rdd] object TextInputFormatHook extends Logging {
  def install(): Unit =
    try {
      HadoopConstructors.replace(classOf[TextInputFormat], classOf[PackedTextInputFormat])
    } catch {
      case e @ (NonFatal(_) | _: LinkageError) =>
        logWarning("Millstream does not support this Hadoop, so sc.textFile makes tasks and reads files as it does without Millstream; results are the same. " +
          s"This warning is not repeated. Cause: $e")
    }

  def isInstalled: Boolean = HadoopConstructors.isReplaced(classOf[TextInputFormat], classOf[PackedTextInputFormat])
}
