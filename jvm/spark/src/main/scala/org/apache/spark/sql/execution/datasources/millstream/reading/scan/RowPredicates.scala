package org.apache.spark.sql.execution.datasources.millstream.reading.scan

import scala.jdk.OptionConverters._

import io.millstream.hadoop.natives.WireWriter
import io.millstream.hadoop.reading.{NativeScan, PortableRegex}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.StringUtils
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Translates conditions on the single column of a text file for the native scan.
 *
 * The translation is exact: a translated condition holds for exactly the rows for which Spark's condition holds, so
 * rows need not be checked again (and a count needs no rows). Therefore a condition is only translated as a whole, on
 * strings of the default collation and without nulls in lists: byte for byte, or as a regular expression that means the
 * same ([[PortableRegex]]). All other conditions stay in Spark's filter above the scan. For some of them the scan
 * checks a necessary condition, such as the literal of `lower(value) LIKE '%literal%'`, so that fewer rows reach the
 * filter. The encoding is documented at `millstream_scan::Predicate::decode`.
 */
private final class RowPredicates(rowsAreLines: Boolean) extends PredicateHelper {
  import RowPredicates._

  def encode(condition: Expression, depth: Int): Option[Array[Byte]] = condition match {
    case _ if depth > MaxDepth => None
    case Contains(Column(), Text(text)) => Some(literal('c', text))
    case StartsWith(Column(), Text(text)) => Some(literal('s', text))
    case EndsWith(Column(), Text(text)) => Some(literal('e', text))
    case EqualTo(Column(), Text(text)) => Some(literal('=', text))
    case EqualTo(Text(text), Column()) => Some(literal('=', text))
    case EqualNullSafe(Column(), Text(text)) => Some(literal('=', text))
    case EqualNullSafe(Text(text), Column()) => Some(literal('=', text))
    case In(Column(), values) => in(values.map(Text.unapply))
    case InSet(Column(), values) => in(values.toSeq.map(Option(_).collect { case text: UTF8String => text }))
    case Like(Column(), Text(pattern), escape) => like(pattern, escape)
    case RLike(Column(), Text(pattern)) =>
      exact(pattern).filterNot(_.exists(RegexCharacters.contains(_))).map(_ => literal('c', pattern))
        .orElse(PortableRegex.ofRegex(pattern.toString, rowsAreLines).toScala.flatMap(regex))
    case Comparison(Length(Column()), least, most) => Some(length(least, most))
    case Comparison(Length(StringTrim(Column(), None)), 0, 0) => Some(Blank)
    case Comparison(Length(StringTrim(Column(), None)), 1, Int.MaxValue) => Some(not(Blank))
    case EqualTo(StringTrim(Column(), None), Text(text)) if text.numBytes == 0 => Some(Blank)
    case EqualTo(Substring(Column(), Literal(0 | 1, _), Literal(characters: Int, _)), Text(text))
        if characters > 0 && text.isValid =>
      beginning(text, characters)
    // A row is never null.
    case IsNotNull(Column()) => Some(Always)
    case _: And => all('&', splitConjunctivePredicates(condition), depth)
    case _: Or => all('|', splitDisjunctivePredicates(condition), depth)
    case Not(negated) => encode(negated, depth + 1).map(not)
    case _ => None
  }

  /** Translates a necessary condition of `condition`. */
  def necessary(condition: Expression, depth: Int): Option[Array[Byte]] = condition match {
    case _ if depth > MaxDepth => None
    case Contains(OneCase(), Text(text)) => ignoringCase(text.toString)
    case StartsWith(OneCase(), Text(text)) => ignoringCase(text.toString)
    case EndsWith(OneCase(), Text(text)) => ignoringCase(text.toString)
    case EqualTo(OneCase(), Text(text)) => ignoringCase(text.toString)
    case EqualTo(Text(text), OneCase()) => ignoringCase(text.toString)
    case Like(OneCase(), Text(pattern), escape) =>
      pattern.toString.split(Array('%', '_', escape)).maxByOption(_.length).flatMap(ignoringCase)
    case RLike(Column(), Text(pattern)) => PortableRegex.ofNecessary(pattern.toString).toScala.flatMap(regex)
    case _: And =>
      val operands = upToFirstThatMayFail(splitConjunctivePredicates(condition)).flatMap(either(_, depth + 1))
      Option.when(operands.nonEmpty)(list('&', operands))
    case _: Or => whole(splitDisjunctivePredicates(condition).map(either(_, depth + 1))).map(list('|', _))
    case _ => None
  }

  /** The conditions, in the order of their evaluation, up to and including the first that may fail. */
  private def upToFirstThatMayFail(conditions: Seq[Expression]): Seq[Expression] = {
    val (safe, others) = conditions.span(neverFails)
    safe ++ others.headOption
  }

  /** Whether a condition is known to have a result for every row. */
  private def neverFails(condition: Expression): Boolean = condition match {
    case And(left, right) => neverFails(left) && neverFails(right)
    case Or(left, right) => neverFails(left) && neverFails(right)
    case Not(negated) => neverFails(negated)
    case IsNull(value) => isSimple(value)
    case IsNotNull(value) => isSimple(value)
    case comparison: BinaryComparison => isSimple(comparison.left) && isSimple(comparison.right)
    case In(value, values) => isSimple(value) && values.forall(isSimple)
    case InSet(value, _) => isSimple(value)
    case Contains(left, right) => isSimple(left) && isSimple(right)
    case StartsWith(left, right) => isSimple(left) && isSimple(right)
    case EndsWith(left, right) => isSimple(left) && isSimple(right)
    // Malformed patterns are not translated.
    case _: Like | _: RLike => either(condition, 1).isDefined
    case _ => false
  }

  private def isSimple(value: Expression): Boolean = value match {
    case _: Literal | _: AttributeReference => true
    case Lower(of) => isSimple(of)
    case Upper(of) => isSimple(of)
    case Length(of) => isSimple(of)
    case StringTrim(of, None) => isSimple(of)
    case Substring(of, _: Literal, _: Literal) => isSimple(of)
    case _ => false
  }

  private def either(condition: Expression, depth: Int): Option[Array[Byte]] =
    encode(condition, depth).orElse(necessary(condition, depth))

  /** The row contains the longest ASCII part of `text` in upper or lower case, unless the row is not ASCII. */
  private def ignoringCase(text: String): Option[Array[Byte]] =
    text.split("[^\\x00-\\x7f]").maxByOption(_.length).filter(part => part.nonEmpty && part.length < MaxLiteralLength)
      .map(part => literal('i', UTF8String.fromString(part)))

  /** The meaning of `substring(value, 1, characters) = text`. */
  private def beginning(text: UTF8String, characters: Int): Option[Array[Byte]] = text.numChars match {
    case `characters` => Some(literal('s', text))
    case fewer if fewer < characters => Some(literal('=', text))
    case _ => None
  }

  private def all(operator: Char, operands: Seq[Expression], depth: Int): Option[Array[Byte]] =
    whole(operands.map(encode(_, depth + 1))).map(list(operator, _))

  /** A list that contains null is not translated: for a value that is not in it, the result is null, not false. */
  private def in(values: Seq[Option[UTF8String]]): Option[Array[Byte]] =
    whole(values).filter(_.length <= MaxListLength).map(texts => list('|', texts.map(literal('=', _))))

  private def whole[T](parts: Seq[Option[T]]): Option[Seq[T]] = Option.when(parts.forall(_.isDefined))(parts.flatten)

  /** Translates a pattern: byte for byte if `%` is its only wildcard, otherwise to a regular expression. */
  private def like(pattern: UTF8String, escape: Char): Option[Array[Byte]] =
    exact(pattern).filter(_.forall(c =>
      c != '_' && c != escape && !(LikeSplitsPairs && Character.isSurrogate(c)))).map {
      _.split("%", -1) match {
        case Array(all) => literal('=', UTF8String.fromString(all))
        case parts => list('l', parts.toSeq.map(part => prefixed(UTF8String.fromString(part))))
      }
    }.orElse(PortableRegex.ofLike(pattern.toString, escape).toScala.flatMap(regex))

  /** A regular expression, if it is not too large. */
  private def regex(found: PortableRegex): Option[Array[Byte]] =
    Some('r'.toByte +: (prefixed(UTF8String.fromString(found.pattern)) ++ prefixed(
      UTF8String.fromString(found.literal)))).filter(NativeScan.accepts)

  /** The string of a pattern, if matching bytes is equivalent to Spark's matching of strings. */
  private def exact(pattern: UTF8String): Option[String] = Option(pattern.toString).filterNot(_.contains(Replacement))
}

private[millstream] object RowPredicates {

  /** The predicate that holds for every row. */
  val Always: Array[Byte] = Array[Byte]('t')

  /** The native side's limit, less one for the list of all conditions. */
  private val MaxDepth = 63

  /** For longer lists, Spark's filter is better, because it uses hashing. */
  private val MaxListLength = 64

  /** Longer ones would make large automata. */
  private val MaxLiteralLength = 1000
  private val Blank = Array[Byte]('b')
  private val RegexCharacters = "\\^$.|?*+()[]{}"

  /** Invalid UTF-8 becomes this character in a string of the JVM, against which Spark matches patterns. */
  private val Replacement = '\uFFFD'

  /** Spark 4.0 quotes the two halves of a character beyond U+FFFF separately, and so never finds it. */
  private lazy val LikeSplitsPairs = {
    val pair = Character.toString(0x1f642)
    !StringUtils.escapeLikeRegex(pair, '\\').contains(pair)
  }

  /**
   * Translates those of `conditions` that can be translated, and necessary conditions of the others, into one
   * predicate.
   *
   * Spark checks conditions in order. A row that one rejects never reaches the following ones, and a row for which one
   * fails makes the query fail, as an assertion should. So conditions after one that may fail are not translated.
   *
   * @param rowsAreLines whether rows contain neither LF nor CR
   * @return the encoded predicate, the conditions that it replaces, and those for which it is necessary
   */
  def encode(conditions: Seq[Expression], rowsAreLines: Boolean): (Array[Byte], Seq[Expression], Seq[Expression]) = {
    val encoder = new RowPredicates(rowsAreLines)
    val checked = encoder.upToFirstThatMayFail(conditions)
    val exact = checked.flatMap(condition => encoder.encode(condition, 1).map(condition -> _))
    val others = checked.filterNot(condition => exact.exists(_._1 eq condition))
    val wider = others.flatMap(condition => encoder.necessary(condition, 1).map(condition -> _))
    val predicate = (exact ++ wider).map(_._2) match {
      case Seq() => Always
      case Seq(one) => one
      case several => list('&', several)
    }
    (predicate, exact.map(_._1), wider.map(_._1))
  }

  private def not(predicate: Array[Byte]): Array[Byte] = '!'.toByte +: predicate

  private def length(least: Int, most: Int): Array[Byte] = new WireWriter().u8('n').u32(least).u32(most).toByteArray

  private def literal(operator: Char, text: UTF8String): Array[Byte] = operator.toByte +: prefixed(text)

  private def prefixed(text: UTF8String): Array[Byte] = new WireWriter().prefixed(text.getBytes).toByteArray

  private def list(operator: Char, members: Seq[Array[Byte]]): Array[Byte] = {
    val out = new WireWriter().u8(operator).u32(members.length)
    members.foreach(member => out.bytes(member))
    out.toByteArray
  }

  private object Column {
    def unapply(expression: Expression): Boolean = expression match {
      case column: AttributeReference => column.dataType == StringType
      case _ => false
    }
  }

  /** The column in upper or lower case. */
  private object OneCase {
    def unapply(expression: Expression): Boolean = expression match {
      case Lower(Column()) | Upper(Column()) => true
      case _ => false
    }
  }

  /** A comparison of an integer that is not negative: the smallest and the largest number for which it holds. */
  private object Comparison {
    def unapply(expression: Expression): Option[(Expression, Int, Int)] = expression match {
      case EqualTo(number, Literal(n: Int, _)) if n >= 0 => Some((number, n, n))
      case GreaterThan(number, Literal(n: Int, _)) if n >= 0 && n < Int.MaxValue => Some((number, n + 1, Int.MaxValue))
      case GreaterThanOrEqual(number, Literal(n: Int, _)) if n >= 0 => Some((number, n, Int.MaxValue))
      case LessThan(number, Literal(n: Int, _)) if n > 0 => Some((number, 0, n - 1))
      case LessThanOrEqual(number, Literal(n: Int, _)) if n >= 0 => Some((number, 0, n))
      case turned: BinaryComparison if turned.left.isInstanceOf[Literal] && !turned.right.isInstanceOf[Literal] =>
        turned match {
          case EqualTo(literal, number) => unapply(EqualTo(number, literal))
          case GreaterThan(literal, number) => unapply(LessThan(number, literal))
          case GreaterThanOrEqual(literal, number) => unapply(LessThanOrEqual(number, literal))
          case LessThan(literal, number) => unapply(GreaterThan(number, literal))
          case LessThanOrEqual(literal, number) => unapply(GreaterThanOrEqual(number, literal))
          case _ => None
        }
      case _ => None
    }
  }

  private object Text {
    def unapply(expression: Expression): Option[UTF8String] = expression match {
      case Literal(text: UTF8String, StringType) => Some(text)
      case _ => None
    }
  }
}
