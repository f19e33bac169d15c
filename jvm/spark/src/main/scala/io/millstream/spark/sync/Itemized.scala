package io.millstream.spark.sync

import java.nio.{ByteBuffer, CharBuffer}
import java.nio.charset.CodingErrorAction.REPORT
import java.nio.charset.StandardCharsets.UTF_8

/**
 * Lines about changes, in the form of rsync's `--itemize-changes`; `itemize.rs` of the engine does the same without
 * Spark.
 */
private[sync] object Itemized {

  /**
   * The line about a change; None if there is none.
   *
   * @param prefix prefix of the transfer's names
   * @param isItemized whether the line shows the changes, as with `-i`, or only the name, as with `-v`
   * @param isAscii whether all non-ASCII characters are escaped
   */
  def line(outcome: Outcome, prefix: String, isItemized: Boolean, isAscii: Boolean = false): Option[String] = {
    def shown(name: String) = escaped(Names.bytes(name), isAscii)
    val isDirectory = outcome.kind == Kind.Directory
    val name = shown(Paths.within(prefix, outcome.path)) + (if (isDirectory) "/" else "")
    val target = outcome.target.fold("") { target =>
      if (outcome.action == Action.HardLink) s" => ${shown(Paths.within(prefix, target))}" else s" -> ${shown(target)}"
    }
    outcome.action match {
      case Action.Delete => Some(s"${if (isItemized) "*deleting  " else "deleting"} $name")
      case _ if outcome.changes.isEmpty || !isItemized && outcome.action == Action.Amend && !isDirectory => None
      case _ => Some((if (isItemized) s"${outcome.changes} " else "") + (if (name == "/") "./" else name) + target)
    }
  }

  /**
   * A name as rsync prints it: ASCII control characters (except the tab), invalid UTF-8, and text that looks like an
   * escape are written as `\#ooo`.
   *
   * @param isAscii whether to escape all non-ASCII characters, too
   */
  def escaped(name: Array[Byte], isAscii: Boolean = false): String = {
    val text = new StringBuilder
    val decoder = UTF_8.newDecoder().onMalformedInput(REPORT).onUnmappableCharacter(REPORT)
    val (in, out) = (ByteBuffer.wrap(name), CharBuffer.allocate(name.length))
    while (in.hasRemaining) {
      val result = decoder.reset().decode(in, out, true)
      text ++= escapedText(out.flip().toString, isAscii)
      out.clear()
      if (result.isError) for (_ <- 0 until result.length) text ++= octal(in.get() & 0xff)
    }
    text.toString
  }

  private def escapedText(text: String, isAscii: Boolean): String = {
    def isLikeEscape(at: Int) = text.substring(at, math.min(text.length, at + 5)).matches("""\\#[0-9]{3}""")
    val escaped = text.indices.map { at =>
      val char = text.charAt(at)
      if (char < ' ' && char != '\t' || char == '\\' && isLikeEscape(at)) octal(char) else char.toString
    }.mkString
    if (isAscii)
      escaped.getBytes(UTF_8).map(byte => if (byte < 0) octal(byte & 0xff) else byte.toChar.toString).mkString
    else escaped
  }

  private def octal(byte: Int): String = f"\\#$byte%03o"
}
