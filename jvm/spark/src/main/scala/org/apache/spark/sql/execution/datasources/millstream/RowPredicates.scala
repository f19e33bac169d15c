package org.apache.spark.sql.execution.datasources.millstream

import java.io.{ByteArrayOutputStream, DataOutputStream}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Conditions that Spark puts on the one column of a text file, for the native scan.
 *
 * A condition is translated only where it is decided byte for byte: on strings of the default collation. Spark keeps its
 * filter above the scan, so what is not translated costs speed only. The encoding is documented at
 * `millstream_scan::Predicate::decode`.
 */
private[millstream] object RowPredicates {
  private val Always = Array[Byte]('t')

  /**
   * Those of `conditions` that can be translated, all in one.
   *
   * @return the encoded predicate, and the conditions that it stands for
   */
  def encode(conditions: Seq[Expression]): (Array[Byte], Seq[Expression]) = {
    val translated = conditions.flatMap(condition => encode(condition).map(condition -> _))
    translated.map(_._2) match {
      case Seq() => (Always, Nil)
      case Seq(one) => (one, translated.map(_._1))
      case several => (list('&', several), translated.map(_._1))
    }
  }

  private def encode(condition: Expression): Option[Array[Byte]] = condition match {
    case Contains(Column(), Text(text)) => Some(literal('c', text))
    case StartsWith(Column(), Text(text)) => Some(literal('s', text))
    case EndsWith(Column(), Text(text)) => Some(literal('e', text))
    case EqualTo(Column(), Text(text)) => Some(literal('=', text))
    case EqualTo(Text(text), Column()) => Some(literal('=', text))
    case Like(Column(), Text(pattern), escape) => like(pattern, escape)
    // A row is never null.
    case IsNotNull(Column()) => Some(Always)
    case And(left, right) => both('&', left, right)
    case Or(left, right) => both('|', left, right)
    case Not(negated) => encode(negated).map('!'.toByte +: _)
    case _ => None
  }

  private def both(operator: Char, left: Expression, right: Expression): Option[Array[Byte]] =
    for (a <- encode(left); b <- encode(right)) yield list(operator, Seq(a, b))

  /** A pattern whose only wildcard is `%`; what `_` stands for, a character, is not a matter of bytes. */
  private def like(pattern: UTF8String, escape: Char): Option[Array[Byte]] = {
    val text = pattern.toString
    // What is not UTF-8 has become something else in the string.
    val isExact = UTF8String.fromString(text) == pattern && text.forall(c => c != '_' && c != escape)
    Option.when(isExact) {
      text.split("%", -1) match {
        case Array(all) => literal('=', UTF8String.fromString(all))
        case parts => list('l', parts.toSeq.map(part => bytesOf(UTF8String.fromString(part))))
      }
    }
  }

  private def literal(operator: Char, text: UTF8String): Array[Byte] = operator.toByte +: bytesOf(text)

  private def bytesOf(text: UTF8String): Array[Byte] = written { out =>
    out.writeInt(text.numBytes)
    out.write(text.getBytes)
  }

  private def list(operator: Char, members: Seq[Array[Byte]]): Array[Byte] = written { out =>
    out.writeByte(operator)
    out.writeInt(members.length)
    members.foreach(member => out.write(member))
  }

  private def written(write: DataOutputStream => Unit): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    write(new DataOutputStream(bytes))
    bytes.toByteArray
  }

  private object Column {
    def unapply(expression: Expression): Boolean = expression match {
      case column: AttributeReference => column.dataType == StringType
      case _ => false
    }
  }

  private object Text {
    def unapply(expression: Expression): Option[UTF8String] = expression match {
      case Literal(text: UTF8String, StringType) => Some(text)
      case _ => None
    }
  }
}
