package org.apache.spark.sql.execution.datasources.millstream.listing

import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedDataSource}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.millstream.internals.{SchemaUse, SparkLine}
import org.apache.spark.sql.execution.datasources.millstream.settings.{Keys, Switches}

/**
 * Resolves `spark.read…load(path)` and `` select … from format.`path` `` on local files to relations over a
 * [[CompactFileIndex]] ([[ListedRelations]]).
 *
 * Hint rules run before the rules in which Spark lists the files of an unresolved data source or path, so Spark's own
 * index is never created. Unsupported relations stay unresolved, for Spark.
 */
class IndexListedFiles(spark: SparkSession) extends Rule[LogicalPlan] {
  import IndexListedFiles._

  private val relations = new ListedRelations(spark)

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (Keys.get(conf, Switches.Listing)) {
      plan.resolveOperatorsUp {
        case source: UnresolvedDataSource if !source.isStreaming =>
          SparkLine.ifSupported(resolve(source)).getOrElse(source)
        case path: UnresolvedRelation if !path.isStreaming => SparkLine.ifSupported(resolve(path)).getOrElse(path)
      }
    } else {
      plan
    }

  private def resolve(source: UnresolvedDataSource): Option[LogicalPlan] =
    for {
      format <- ListedRelations.format(source.format, conf)
      request <- Request.of(source, conf.legacyPathOptionBehavior)
      relation <- relations.of(format, request.paths, request.options, source.userSpecifiedSchema, SchemaUse.Reading)
    } yield LogicalRelation(relation)

  /**
   * A relation named by a format and a path, not by a table. If it fails, Spark repeats it and wraps the error.
   */
  private def resolve(relation: UnresolvedRelation): Option[LogicalPlan] = relation.multipartIdentifier match {
    case Seq(name, path)
        if ListedRelations.isShortName(name) && conf.runSQLonFile && path.nonEmpty &&
          !relation.options.containsKey(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES) =>
      for {
        format <- ListedRelations.formatOfVersion1(name, conf)
        options = relation.options.asScala.toMap
        if !options.keys.exists(_.equalsIgnoreCase("path")) && !isNamespace(name)
        relation <- Try(relations.of(format, Seq(path), options, None, SchemaUse.ReadingAndWriting)).toOption.flatten
      } yield LogicalRelation(relation)
    case _ => None
  }

  /**
   * Whether a catalog or a database has a format's name, so that it may have a table with the path's name.
   */
  private def isNamespace(name: String): Boolean =
    spark.catalog.currentCatalog() != SessionCatalogName || conf.getConfString(
      s"spark.sql.catalog.$name",
      "").nonEmpty ||
      Try(spark.sessionState.catalog.databaseExists(name.toLowerCase(Locale.ROOT))).getOrElse(true)
}

private object IndexListedFiles {
  private val SessionCatalogName = "spark_catalog"

  /** The paths and options of a read, with the paths that Spark's data source would use. */
  final case class Request(paths: Seq[String], options: Map[String, String])

  object Request {
    def of(source: UnresolvedDataSource, legacyPathOption: Boolean): Option[Request] = {
      val options = source.options
      val pathsTwice = (options.contains("path") || options.contains("paths")) && source.paths.nonEmpty
      val globbing = options.get(DataSource.GLOB_PATHS_KEY).forall(_ == "true")
      if (!globbing || pathsTwice && !legacyPathOption) {
        None
      } else if (!legacyPathOption && source.paths.length == 1) {
        Some(Request(source.paths, (options + ("path" -> source.paths.head)).originalMap))
      } else {
        Some(Request(options.get("path").toSeq ++ source.paths, options.originalMap))
      }
    }
  }
}
