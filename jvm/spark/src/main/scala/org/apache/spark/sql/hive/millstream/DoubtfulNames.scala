package org.apache.spark.sql.hive.millstream

import java.lang.Character.UnicodeBlock
import java.text.Normalizer
import java.util.Locale

/** Names of partitions that the database behind a metastore may be unable to distinguish or to store. */
private object DoubtfulNames {

  /** Every database can store and index as many characters. */
  private val SurelyShort = 190

  /**
   * Equal for names that some database takes for equal: they differ in spaces at the end, in case, in accents, or in
   * characters without width.
   */
  def fold(name: String): String =
    Normalizer.normalize(name, Normalizer.Form.NFKD).replaceAll(
      "[\\p{M}\\p{C}]+",
      "").toUpperCase(Locale.ROOT).toLowerCase(Locale.ROOT).stripTrailing

  /** A few names, such that a database that can store them can store all: the longest ones, and one for each script. */
  def toTest(names: Seq[String]): Seq[String] = {
    val long = names.filter(_.length > SurelyShort)
    val longest = if (long.isEmpty) Nil else Seq(long.maxBy(_.length), long.maxBy(_.split('/').map(_.length).max))
    val scripts = names.flatMap(name => blocks(name).map(_ -> name)).toMap.values
    (longest ++ scripts).distinct
  }

  private def blocks(name: String): Seq[UnicodeBlock] =
    if (name.forall(_ < 128)) Nil else name.codePoints.toArray.toSeq.filter(_ >= 128).map(UnicodeBlock.of)
}
