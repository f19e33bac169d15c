package org.apache.spark.sql.execution.datasources.millstream.write

import java.util.Collections
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.Try

import io.millstream.write.protocol.DirectJob
import io.millstream.write.store.WriteOptions
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.SparkException
import org.apache.spark.sql.{SaveMode, SparkSession}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand
import org.apache.spark.sql.execution.datasources.millstream.settings.Keys
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{BinaryType, StringType}

/**
 * Replaces the command that writes files of Spark's built-in data sources, and of Hive tables that Spark converts to
 * them.
 */
class ReplaceInserts(session: SparkSession)
    extends ReplaceCommands(session, classOf[InsertIntoHadoopFsRelationCommand]) {
  override protected def root(command: DataWritingCommand): Path =
    command.asInstanceOf[InsertIntoHadoopFsRelationCommand].outputPath

  override protected def hadoopConf(command: DataWritingCommand): Configuration =
    session.sessionState.newHadoopConfWithOptions(command.asInstanceOf[InsertIntoHadoopFsRelationCommand].options)

  override protected def direct(command: DataWritingCommand): Option[DataWritingCommand] = {
    val insert = command.asInstanceOf[InsertIntoHadoopFsRelationCommand]
    Keys.check(insert.options.keys)
    val isOfFiles =
      insert.catalogTable.forall(ReplaceInserts.isOfFiles(_, insert.mode == SaveMode.Overwrite, hadoopConf(insert)))
    Option.when(isOfFiles && ReplaceInserts.suits(
      insert.outputPath,
      insert.mode == SaveMode.Overwrite,
      hadoopConf(insert),
      conf,
      Option.when(insert.catalogTable.nonEmpty)(session))) {
      new DirectInsertIntoHadoopFsRelation(
        insert.outputPath,
        insert.staticPartitions,
        insert.ifPartitionNotExists,
        insert.partitionColumns,
        insert.bucketSpec,
        insert.fileFormat,
        insert.options,
        insert.query,
        insert.mode,
        insert.catalogTable,
        insert.fileIndex,
        insert.outputColumnNames)
    }
  }
}

object ReplaceInserts extends Logging {

  /** Spark's own protocols; it uses the second if hadoop-cloud is on the class path. */
  private val SparkProtocols = Set(
    "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
    "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol")

  /** A setting by which a committer does more than commit: it writes summaries, or is the user's own. */
  private def ownCommitter(hadoopConf: Configuration, conf: SQLConf): Option[String] =
    if (!SparkProtocols(conf.fileCommitProtocolClass)) {
      Some(s"${SQLConf.FILE_COMMIT_PROTOCOL_CLASS.key} is ${conf.fileCommitProtocolClass}")
    } else if (hadoopConf.get(SQLConf.OUTPUT_COMMITTER_CLASS.key) != null) {
      Some(s"${SQLConf.OUTPUT_COMMITTER_CLASS.key} is set")
    } else {
      Option(hadoopConf.get("parquet.summary.metadata.level")).filter(_ != "NONE").map(_ =>
        "Parquet summaries are enabled")
    }

  /**
   * Whether files below a path can be written directly; logs a warning if not.
   *
   * @param overwrites whether the statement overwrites
   * @param catalogued the session whose catalog has the table, if there is one
   */
  def suits(
      root: Path,
      overwrites: Boolean,
      hadoopConf: Configuration,
      conf: SQLConf,
      catalogued: Option[SparkSession] = None): Boolean = {
    FilesOfQuery.check()
    def whyNot = Option(DirectJob.whyNot(root.getFileSystem(hadoopConf)).orElse(null))
      .orElse(catalogued.flatMap(CatalogMetastore.of(_, None).whyNot))
    // A failure here will occur again in Spark's own command, with Spark's error.
    val reason = ownCommitter(hadoopConf, conf).orElse(Try(whyNot).getOrElse(Some("")))
    reason.filter(_.nonEmpty).foreach(leave(root.toString, _, overwrites, hadoopConf))
    reason.isEmpty
  }

  /**
   * Whether a table consists of plain files: not one of a storage handler, and not a transactional one. Logs a warning
   * if not.
   */
  def isOfFiles(table: CatalogTable, overwrites: Boolean, hadoopConf: Configuration): Boolean = {
    def has(key: String, value: String => Boolean): Boolean = table.properties.exists { case (name, found) =>
      name.equalsIgnoreCase(key) && value(found)
    }
    val reason = if (has("transactional", _.equalsIgnoreCase("true"))) Some("the table is transactional")
    else if (has("storage_handler", _ => true)) Some("the table uses a storage handler")
    else Option.when(table.storage.locationUri.isEmpty)("the table has no location")
    reason.foreach(leave(table.identifier.unquotedString, _, overwrites, hadoopConf))
    reason.isEmpty
  }

  /**
   * Whether this process cannot write to all directories of a statement; logs a warning if so.
   *
   * @param static the directory of the static partition; "" if there is none
   * @param dynamic the partition columns whose values are known only when rows are written
   */
  def lacksNames(
      target: String,
      root: Path,
      static: String,
      dynamic: Seq[Attribute],
      overwrites: Boolean,
      hadoopConf: Configuration): Boolean = {
    val names = Seq(root.toUri.getPath, static) ++ dynamic.map(_.name)
    val isText = dynamic.map(_.dataType).exists(kind => kind.isInstanceOf[StringType] || kind == BinaryType)
    val reason = Option(DirectJob.whyNoNames(root.getFileSystem(hadoopConf), names.asJava, isText).orElse(null))
    reason.foreach(leave(target, _, overwrites, hadoopConf))
    reason.nonEmpty
  }

  private val MaxWarned = 1000
  private val warned = Collections.newSetFromMap(new ConcurrentHashMap[(String, String), java.lang.Boolean])

  /** Limits warnings to one for each target and reason; bounded, because a driver may write to very many targets. */
  private def isNew(target: String, reason: String): Boolean = {
    if (warned.size >= MaxWarned) warned.clear()
    warned.add(target -> reason)
  }

  /** Warns that Spark writes; an error if an overwrite's visibility is strict. */
  def leave(target: String, reason: String, overwrites: Boolean, hadoopConf: Configuration): Unit =
    if (overwrites && WriteOptions.isStrict(hadoopConf)) refuse(target, reason, hadoopConf) else warn(target, reason)

  private def refuse(target: String, reason: String, hadoopConf: Configuration): Nothing =
    throw new SparkException(
      s"$target cannot be overwritten with ${WriteOptions.VISIBILITY}=${hadoopConf.getTrimmed(WriteOptions.VISIBILITY)}: $reason")

  def warn(target: String, reason: String): Unit =
    if (isNew(target, reason)) {
      logWarning(s"Spark writes to $target without Millstream, more slowly and not crash-safe: $reason")
    }

  /** Warns that a statement may read files of an unfinished write, which it does not look for. */
  def unguarded(files: String, cause: Throwable): Unit =
    if (isNew(files, cause.toString)) {
      logWarning(
        s"Statements that read $files will not notice unfinished writes there: ${Option(cause.getMessage).getOrElse(cause.toString)}")
    }

  /** Warns that an overwrite becomes visible in another way than requested; an error if its visibility is strict. */
  def inPlace(target: String, reason: String, hadoopConf: Configuration): Unit =
    if (WriteOptions.isStrict(hadoopConf)) refuse(target, reason, hadoopConf)
    else if (isNew(target, reason)) {
      logWarning(
        s"Millstream overwrites $target in place, although ${WriteOptions.VISIBILITY} requests another visibility: $reason")
    }
}
