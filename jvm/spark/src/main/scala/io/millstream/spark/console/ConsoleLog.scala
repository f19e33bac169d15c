package io.millstream.spark.console

import scala.jdk.CollectionConverters._

import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.{Filter, LogEvent, LoggerContext}
import org.apache.logging.log4j.core.appender.ConsoleAppender
import org.apache.logging.log4j.core.config.Configurator
import org.apache.logging.log4j.core.filter.AbstractFilter

import org.apache.spark.SparkConf
import org.apache.spark.internal.Logging

/** The log of a command whose user wants to know what it did, not where in Spark a task failed. */
private[spark] object ConsoleLog extends Logging {
  private val Detailed = Set("ALL", "TRACE", "DEBUG", "INFO")

  /** Includes Hadoop and Parquet. */
  private val OfSpark = "org.apache."

  /** It repeats the summary's statement about an output. */
  private val OfFailedTasks = "org.apache.spark.scheduler.TaskSetManager"

  def isDetailed(conf: SparkConf): Boolean =
    Detailed(conf.get("spark.log.level", "WARN").toUpperCase(java.util.Locale.ROOT))

  /** Sets the level, as a session would, for a command without a session. */
  def setLevel(conf: SparkConf): Unit = {
    initializeLogIfNecessary(isInterpreter = false)
    Configurator.setRootLevel(Level.toLevel(conf.get("spark.log.level", "WARN")))
  }

  /** Keeps stack traces off the console, unless the user asks for Spark's log. Other appenders receive them. */
  def withoutTraces(): Unit =
    if (!isDetailed(new SparkConf)) {
      // spark-submit leaves it to the program to configure the log; changes made here would be lost then.
      initializeLogIfNecessary(isInterpreter = false)
      LogManager.getContext(false) match {
        case context: LoggerContext =>
          context.getConfiguration.getAppenders.values.asScala.foreach {
            case console: ConsoleAppender => console.addFilter(WithoutTraces)
            case _ =>
          }
        case _ =>
      }
    }

  private object WithoutTraces extends AbstractFilter {
    override def filter(event: LogEvent): Filter.Result = {
      val name = event.getLoggerName
      def hasTrace = event.getThrown != null || event.getMessage.getFormattedMessage.contains("\n\tat ")
      if (name == OfFailedTasks || (name.startsWith(OfSpark) && hasTrace)) Filter.Result.DENY else Filter.Result.NEUTRAL
    }
  }
}
