package io.millstream.spark.compact

import java.nio.file.Path
import java.util.Locale

import io.millstream.hadoop.compact.TableLogs
import io.millstream.spark.console.Failures
import org.apache.hadoop.fs.{Path => HadoopPath}

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}

/**
 * Decides whether the files of a tree may be merged or replaced: not if the log of a table names them. [[TableLogs]]
 * finds logs in directories. Only the user knows of others (an Iceberg table whose metadata are elsewhere, a catalog in
 * a database), so for a compaction in place the user has to name a table of plain files, or to confirm that the files
 * are plain.
 */
private[spark] object CompactTables {

  /**
   * Refuses forbidden compactions.
   *
   * @return a warning about a tree that is only read
   */
  def check(tree: SourceTree, options: CompactOptions): Option[String] = tree.tableLog(options.inPlace) match {
    case Some(evidence) if evidence.isKnown || options.inPlace => throw new CompactFailure(evidence.message)
    case Some(evidence) => Some(s"${evidence.message}; the merged files may contain rows that such a table has removed")
    case None if options.inPlace && options.table.isEmpty && !options.plainFiles =>
      throw new CompactFailure(s"${tree.name}: not every table that a directory belongs to can be detected. Name the table of plain files whose files are to be replaced " +
        "(--table=DATABASE.TABLE, table=...), or add --plain-files (plain_files=True) if no table format and no other program keeps a list of these files")
    case None => None
  }

  /**
   * Refuses to finish or undo an earlier compaction in place if the tree has since become a table, or is being written
   * to.
   *
   * @param place the staging directory of the compaction
   */
  def checkEarlier(tree: SourceTree, place: Path, whatIsNot: String): Unit = {
    // One of two unfinished compactions has to finish first; each knows the files that it has read.
    tree.tableLog(true).filterNot(_.isUnfinished).foreach { evidence =>
      throw new CompactFailure(
        s"${evidence.message}; the earlier compaction with the staging directory $place is not $whatIsNot")
    }
    tree.refuseWrites(tree.listings().map(_.directory).filter(_ != null).distinct.toSeq)
  }

  /** Options for the files of the table that they name. */
  def resolved(spark: SparkSession, options: CompactOptions): CompactOptions = options.table.fold(options) { name =>
    val table = found(spark, name)
    whyNotPlain(table).foreach(reason => throw new CompactFailure(s"$name: $reason; its files are left alone"))
    val location = locationOf(table)
    if (options.source.nonEmpty && !isWithin(options.source, location)) {
      throw new CompactFailure(s"${options.source}: is not in the location of $name, which is $location")
    }
    val firstLines = if (options.firstLines == FirstLines.Unknown) firstLinesOf(table) else options.firstLines
    options.copy(source = if (options.source.isEmpty) location else options.source, firstLines = firstLines)
  }

  private def found(spark: SparkSession, name: String): CatalogTable =
    try {
      val identifier = spark.sessionState.sqlParser.parseMultipartIdentifier(name) match {
        case Seq("spark_catalog", database, table) => TableIdentifier(table, Some(database))
        case Seq(database, table) => TableIdentifier(table, Some(database))
        case Seq(table) => TableIdentifier(table)
        case _ => throw new CompactFailure(
            s"$name: not a table of the session's catalog (DATABASE.TABLE); tables of other catalogs have their own logs")
      }
      spark.sessionState.catalog.getTableMetadata(identifier)
    } catch {
      case e: AnalysisException => throw new CompactFailure(s"$name: ${Failures.oneLine(e)}")
    }

  private def locationOf(table: CatalogTable): String = {
    val uri = table.location
    if (uri.getScheme == null || uri.getScheme == "file") uri.getPath else new HadoopPath(uri).toString
  }

  private def isWithin(source: String, location: String): Boolean =
    try {
      if (location.startsWith("/")) Compaction.realDirectory(source).startsWith(Compaction.realDirectory(location))
      else s"${source.stripSuffix("/")}/".startsWith(s"${location.stripSuffix("/")}/")
    } catch {
      case _: CompactFailure => false
    }

  private val PlainFormats = Set("text", "csv", "json", "parquet")
  private val PlainInputs =
    Set("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat")
  private val Utf8 = Set("utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1")

  /** Why the files of a table cannot be replaced by others with the same lines or rows. */
  private def whyNotPlain(table: CatalogTable): Option[String] = {
    val settings = (table.properties ++ table.storage.properties).map { case (key, value) =>
      key.toLowerCase(Locale.ROOT) -> value
    }
    def isTrue(key: String) = settings.get(key).exists(_.equalsIgnoreCase("true"))
    val provider = table.provider.fold("")(_.toLowerCase(Locale.ROOT))
    val format = if (provider == "hive") table.storage.inputFormat.filterNot(PlainInputs)
    else Some(provider).filterNot(PlainFormats)
    Seq(
      Option.when(table.tableType == CatalogTableType.VIEW)("is a view"),
      format.map(other =>
        s"is not a table of text, csv, json or Parquet files, but of ${if (other.isEmpty) "an unknown format" else other}"),
      settings.get("table_type").filterNot(kind =>
        Set("MANAGED_TABLE", "EXTERNAL_TABLE")(kind.toUpperCase(Locale.ROOT))).map(kind => s"is a table of $kind"),
      settings.get("storage_handler").map(handler => s"is read by $handler"),
      settings.get("metadata_location").map(_ => "has a metadata location, so a log names its files"),
      Option.when(isTrue("transactional"))("is a transactional Hive table"),
      table.bucketSpec.map(_ => "is bucketed, and its file names contain the bucket numbers"),
      Option.when(isTrue("multiline") && provider == "json")("has multi-line JSON documents (multiLine)"),
      Option.when(isTrue("wholetext"))("reads each file as one row (wholetext)"),
      Seq("linesep", "line.delim").flatMap(settings.get).find(!Set("\n", "\\n", "10")(_)).map(_ =>
        "has a custom line separator"),
      Seq("encoding", "charset").flatMap(settings.get).find(name => !Utf8(name.toLowerCase(Locale.ROOT))).map(name =>
        s"is encoded in $name"),
      Seq("skip.header.line.count", "skip.footer.line.count").find(key => settings.get(key).exists(_ != "0")).map(key =>
        s"has $key")).flatten.headOption
  }

  private def firstLinesOf(table: CatalogTable): FirstLines = {
    val hasHeader = table.storage.properties.exists { case (key, value) =>
      key.equalsIgnoreCase("header") && value.equalsIgnoreCase("true")
    }
    if (hasHeader) FirstLines.Headers else FirstLines.Lines
  }
}
