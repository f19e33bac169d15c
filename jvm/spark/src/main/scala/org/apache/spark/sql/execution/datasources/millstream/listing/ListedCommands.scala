package org.apache.spark.sql.execution.datasources.millstream.listing

import scala.util.Try

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogUtils}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.command.CreateDataSourceTableCommand
import org.apache.spark.sql.execution.datasources.{
  CreateTempViewUsing,
  DataSource,
  FileFormat,
  HadoopFsRelation,
  LogicalRelation
}
import org.apache.spark.sql.execution.datasources.millstream.internals.{SchemaUse, SparkLine}
import org.apache.spark.sql.execution.datasources.millstream.settings.{Keys, Switches}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/**
 * Replaces the commands that list files, and infer their schema, while they run: `CREATE TEMPORARY VIEW … USING` and
 * `CREATE TABLE … USING … LOCATION` without columns.
 */
class ReplaceTableCommands(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (Keys.get(conf, Switches.Listing)) {
      plan.resolveOperators {
        case command: CreateTempViewUsing if command.getClass == classOf[CreateTempViewUsing] =>
          new CreateLocalView(
            command.tableIdent,
            command.userSpecifiedSchema,
            command.replace,
            command.global,
            command.provider,
            command.options)
        case command: CreateDataSourceTableCommand
            if command.getClass == classOf[CreateDataSourceTableCommand] && command.table.schema.isEmpty =>
          new CreateLocalTable(command.table, command.ignoreIfExists)
      }
    } else {
      plan
    }
}

/**
 * Creates a temporary view of local files over a [[CompactFileIndex]]; Spark creates any other, and any that fails.
 */
private final class CreateLocalView(
    tableIdent: TableIdentifier,
    userSpecifiedSchema: Option[StructType],
    replace: Boolean,
    global: Boolean,
    provider: String,
    options: Map[String, String])
    extends CreateTempViewUsing(tableIdent, userSpecifiedSchema, replace, global, provider, options) {

  // Rules keep the old node if the new one is equal.
  override def canEqual(other: Any): Boolean = other.isInstanceOf[CreateLocalView]

  override def run(session: SparkSession): Seq[Row] =
    ListedCommands.relation(
      session,
      provider,
      options,
      userSpecifiedSchema,
      ListedRelations.format(provider, _)).fold(super.run(session)) { relation =>
      val view = classic.Dataset.ofRows(session.asInstanceOf[classic.SparkSession], LogicalRelation(relation))
      val name = tableIdent.quotedString
      (global, replace) match {
        case (true, true) => view.createOrReplaceGlobalTempView(name)
        case (true, false) => view.createGlobalTempView(name)
        case (false, true) => view.createOrReplaceTempView(name)
        case (false, false) => view.createTempView(name)
      }
      Nil
    }
}

/**
 * Infers the schema of a new table from local files with their [[CompactFileIndex]], and has Spark create the table
 * with it.
 */
private final class CreateLocalTable(table: CatalogTable, ignoreIfExists: Boolean)
    extends CreateDataSourceTableCommand(table, ignoreIfExists) {

  override def canEqual(other: Any): Boolean = other.isInstanceOf[CreateLocalTable]

  override def run(session: SparkSession): Seq[Row] =
    SparkLine.ifSupported(inferred(session)).fold(super.run(session))(_.run(session))

  /** The same command with the schema; none if Spark has to infer it. */
  private def inferred(session: SparkSession): Option[CreateDataSourceTableCommand] =
    for {
      provider <- table.provider.filter(_ => isPlain(session))
      location = table.storage.locationUri.map("path" -> CatalogUtils.URIToString(_))
      relation <- ListedCommands.relation(
        session,
        provider,
        table.storage.properties ++ location,
        None,
        ListedRelations.formatOfVersion1(provider, _))
      // Spark stores no schema for a table whose partition columns are in its files as well.
      if relation.overlappedPartCols.isEmpty && relation.dataSchema.nonEmpty
    } yield CreateDataSourceTableCommand(withSchema(relation), ignoreIfExists)

  private def isPlain(session: SparkSession): Boolean =
    table.bucketSpec.isEmpty && table.storage.locationUri.nonEmpty && !session.sessionState.catalog.tableExists(
      table.identifier) &&
      !session.sessionState.conf.getConfString(ListedCommands.KeepsNotNull, "false").toBoolean

  private def withSchema(relation: HadoopFsRelation) =
    SparkLine.withSchema(relation.schema, relation.partitionSchema.fieldNames.toSeq, table)
}

private object ListedCommands {

  /** Since 4.1, a new table records which columns are not null. */
  val KeepsNotNull = "spark.sql.fileSource.insert.enforceNotNull"

  /** The relation over local files; none if Spark is to create it, or to report why it cannot. */
  def relation(
      session: SparkSession,
      provider: String,
      options: Map[String, String],
      schema: Option[StructType],
      formatOf: SQLConf => Option[FileFormat]): Option[HadoopFsRelation] = SparkLine.ifSupported {
    for {
      format <- formatOf(session.sessionState.conf)
      if options.get(DataSource.GLOB_PATHS_KEY).forall(_ == "true")
      path <- options.collectFirst { case (key, value) if key.equalsIgnoreCase("path") => value }
      relation <- Try(new ListedRelations(session).of(
        format,
        Seq(path),
        options,
        schema,
        SchemaUse.ReadingAndWriting)).toOption.flatten
    } yield relation
  }
}
