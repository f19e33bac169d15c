package io.millstream.spark.sync

import java.nio.{ByteBuffer, CharBuffer}
import java.nio.charset.CodingErrorAction.REPORT
import java.nio.charset.StandardCharsets.UTF_8

/**
 * Lines about changes, in the form of rsync's `--itemize-changes`; `itemize.rs` of the engine does the same without
 * Spark.
 */
private[sync] object Itemized {

  /** The letters for something that is new, or in the place of something else. */
  def created(entry: Entry): String = s"${update(entry)}${kind(entry)}+++++++++"

  /**
   * The letters for a file or link that is copied over one of the same kind; how the contents differ, if they were
   * compared.
   */
  def replaced(entry: Entry, found: Entry, rules: Rules): String = {
    val attributes = Decision.differingAttributes(entry, found, rules).toSet
    val time =
      if (attributes("time")) "t" else if (rules.preserved.timeOf(entry)) "." else timeOfCopy(entry, found, rules)
    val isOtherSize = entry.isFile && entry.size != found.size
    val contents = if (!entry.isFile || rules.checksum) "c" else "."
    s"${update(entry)}${kind(entry)}$contents${if (isOtherSize) "s" else "."}$time${letters(attributes)}"
  }

  /** A time that is not preserved becomes that of the copy, though it may be left out only for links. */
  private def timeOfCopy(entry: Entry, found: Entry, rules: Rules): String =
    if (!rules.preserved.times) "T" else if (Decision.sameTime(entry, found, rules)) "." else "t"

  /** The letters for an entry of which attributes change, as of [[Decision.differingAttributes]]. */
  def amended(entry: Entry, differing: Seq[String]): String = "." + attributesOf(entry, differing)

  /** The letters for an entry that becomes a hard link to another one. */
  def linked(entry: Entry, found: Option[Entry], rules: Rules): String =
    found.filter(Special.areOfOneType(entry, _)).fold(s"h${kind(entry)}+++++++++") { found =>
      s"h${attributesOf(entry, Decision.differingAttributes(entry.copy(acls = found.acls, xattrs = found.xattrs), found, rules))}"
    }

  private def attributesOf(entry: Entry, differing: Seq[String]) =
    kind(entry) + (if (differing.isEmpty) " " * 9
                   else s"..${if (differing.contains("time")) "t" else "."}${letters(differing.toSet)}")

  private def letters(attributes: Set[String]): String = {
    def letter(name: String, letter: String) = if (attributes(name)) letter else "."
    Seq("mode" -> "p", "owner" -> "o", "group" -> "g").map((letter _).tupled).mkString + "." +
      Seq("access control list" -> "a", "extended attributes" -> "x").map((letter _).tupled).mkString
  }

  private def update(entry: Entry): String = if (entry.isFile) ">" else "c"

  private def kind(entry: Entry): String = entry.kind match {
    case Kind.File => "f"
    case Kind.Directory => "d"
    case Kind.Link => "L"
    case _ if entry.special.exists(Special.isDevice) => "D"
    case _ => "S"
  }

  /**
   * The line about a change; None if there is none.
   *
   * @param prefix what names of the transfer begin with
   * @param isItemized whether the line says what changes, as with `-i`, or is the name, as with `-v`
   * @param isAscii whether all that is not ASCII is escaped
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
   * A name as rsync prints it: what comes before the space in ASCII (apart from the tab), bytes that are no UTF-8, and
   * what looks like an escape are written as `\#ooo`.
   *
   * @param isAscii whether all that is not ASCII is, too
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
