package io.millstream.spark.console

import java.io.IOException

/** Errors in words, for the messages of commands. */
private[spark] object Failures {
  private val MaxMessageLength = 400

  /** An error's message on one line, without stack trace. */
  def oneLine(error: Throwable): String = {
    val lines = Option(error.getMessage).getOrElse(error.toString).linesIterator.map(_.trim)
    val words =
      lines.takeWhile(line => !line.startsWith("at ") && line != "Driver stacktrace:").filter(_.nonEmpty).mkString(" ")
    if (words.length > MaxMessageLength) s"${words.take(MaxMessageLength)} ..." else words
  }

  /** The kind of an error, and its message. */
  def reason(e: IOException): String =
    s"${e.getClass.getSimpleName.stripSuffix("Exception")}: ${e.getMessage}"
}
