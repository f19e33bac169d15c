package org.apache.spark.sql.execution.datasources.millstream.write

import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try}

import io.millstream.write.store.Names
import org.apache.hadoop.fs.Path

import org.apache.spark.SparkException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{EliminateSubqueryAliases, EliminateView}
import org.apache.spark.sql.catalyst.catalog.{
  CatalogTable,
  CatalogTablePartition,
  ExternalCatalogUtils,
  HiveTableRelation
}
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  AttributeSet,
  ExprId,
  Expression,
  IsNotNull,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.optimizer.{
  ComputeCurrentTime,
  ConstantFolding,
  InferFiltersFromConstraints,
  PushDownPredicates,
  ReplaceExpressions
}
import org.apache.spark.sql.catalyst.optimizer.{SimplifyCasts, UnwrapCastInBinaryComparison}
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{CTERelationRef, LeafNode, LogicalPlan, Project, WithCTE}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources.{
  FileIndex,
  HadoopFsRelation,
  LogicalRelation,
  PartitioningAwareFileIndex
}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}

/**
 * Files that a query reads: those of a table, of one of its partitions, or of a path.
 *
 * @param root the directory or file
 * @param table the table, if this is its own location
 * @param index the listing of the files, if Spark has one
 */
private[write] final case class FilesRead(root: Path, table: Option[CatalogTable], index: Option[FileIndex]) {

  /**
   * Compares indexes by identity: two indexes of the same paths are equal, but may have listed files at different
   * times.
   */
  override def equals(other: Any): Boolean = other match {
    case FilesRead(`root`, `table`, another) => index.orNull eq another.orNull
    case _ => false
  }

  override def hashCode: Int = root.hashCode
}

/**
 * Finds what a query reads, whatever kind of relation reads it. A partition may be anywhere, also inside another table,
 * so the catalog is asked where the partitions are. Filters on partition columns limit this request, as they limit
 * Spark's own, which comes later.
 */
private[write] final class StatementReads(session: SparkSession) {
  def of(query: LogicalPlan): Seq[FilesRead] = {
    val plain = EliminateSubqueryAliases(EliminateView(query))
    Try(withoutReferences(plain).map(StatementReads.filtersToRelations)).getOrElse(Seq(plain)).flatMap(found).distinct
  }

  /**
   * A query, and the common table expressions to which it refers more than once. Others are put where the query refers
   * to them, as Spark's optimizer does, so that conditions on them reach their relations.
   */
  private def withoutReferences(query: LogicalPlan): Seq[LogicalPlan] = {
    val references = query.collectWithSubqueries { case reference: CTERelationRef => reference.cteId }
    val shared = Seq.newBuilder[LogicalPlan]
    def inlined(plan: LogicalPlan, once: Map[Long, LogicalPlan]): LogicalPlan = plan match {
      case common: WithCTE =>
        inlined(
          common.plan,
          common.cteDefs.foldLeft(once) { (earlier, one) =>
            val definition = inlined(one.child, earlier)
            if (references.count(_ == one.id) == 1) earlier + (one.id -> definition)
            else { shared += definition; earlier }
          })
      case reference: CTERelationRef => once.get(reference.cteId).fold(plan) { definition =>
          Project(
            definition.output.zip(reference.output).map { case (from, to) => Alias(from, to.name)(exprId = to.exprId) },
            definition)
        }
      case other => other.mapChildren(inlined(_, once)).transformExpressions { case of: SubqueryExpression =>
          of.withNewPlan(inlined(of.plan, once))
        }
    }
    inlined(query, Map.empty) +: shared.result()
  }

  private def found(plan: LogicalPlan): Seq[FilesRead] = plan match {
    case PhysicalOperation(_, filters, leaf: LeafNode) =>
      ofLeaf(leaf, filters) ++ plan.collect { case node => node.subqueries }.flatten.flatMap(of)
    case other => other.children.flatMap(found) ++ other.subqueries.flatMap(of)
  }

  private def ofLeaf(leaf: LeafNode, filters: Seq[Expression]): Seq[FilesRead] = leaf match {
    case relation: HiveTableRelation =>
      ofTable(relation.tableMeta, None, relation.partitionCols.map(_.exprId).toSet, relation, filters)
    case relation @ LogicalRelation(of: HadoopFsRelation, _, Some(table), _, _) if table.storage.locationUri.nonEmpty =>
      val columns = of.partitionSchema.fieldNames.toSet
      ofTable(
        table,
        Some(of.location),
        relation.output.filter(column => columns(column.name)).map(_.exprId).toSet,
        relation,
        filters)
    case LogicalRelation(of: HadoopFsRelation, _, _, _, _) => ofPaths(of.location, of.options)
    case relation: DataSourceV2Relation => relation.table match {
        case files: FileTable => ofPaths(files.fileIndex, relation.options.asCaseSensitiveMap.asScala.toMap)
        case _ => Nil
      }
    case _ => Nil
  }

  private def ofPaths(index: FileIndex, options: Map[String, String]): Seq[FilesRead] = {
    val directories =
      directoriesOf(index, CaseInsensitiveMap(options).get("recursiveFileLookup").exists(_.equalsIgnoreCase("true")))
    (index.rootPaths ++ tablesInside(
      index,
      directories) ++ index.rootPaths.flatMap(TableLocations.linkedFrom(_, directories)))
      .distinct.map(FilesRead(_, None, Some(index)))
  }

  /** The directories below an index's paths that have its files. */
  private def directoriesOf(index: FileIndex, isRecursive: Boolean): Seq[Path] = index match {
    case files: PartitioningAwareFileIndex =>
      (if (isRecursive) files.allFiles().map(_.getPath.getParent)
       else files.partitionSpec().partitions.map(_.path)).distinct
    case _ => Nil
  }

  /** Directories below the paths that may be tables: those of the files, without their partition directories. */
  private def tablesInside(index: FileIndex, directories: Seq[Path]): Seq[Path] = {
    val roots = index.rootPaths.map(_.toUri.getPath).toSet
    def isTop(directory: Path) = roots(directory.toUri.getPath) || directory.getParent.isRoot // see Pointer
    directories.map(Names.tableOf(_, isTop(_))).distinct.filterNot(directory => roots(directory.toUri.getPath))
  }

  private def ofTable(
      table: CatalogTable,
      index: Option[FileIndex],
      partitionColumns: Set[ExprId],
      relation: LogicalPlan,
      filters: Seq[Expression]): Seq[FilesRead] =
    table.storage.locationUri.toSeq.flatMap { uri =>
      val root = new Path(uri)
      val columns = AttributeSet(relation.output.filter(column => partitionColumns(column.exprId)))
      FilesRead(
        root,
        Some(table),
        index) +: elsewhere(table, root, usable(filters, columns)).map(FilesRead(_, None, index))
    }

  /** Conditions by which the catalog can select partitions. */
  private def usable(filters: Seq[Expression], columns: AttributeSet): Seq[Expression] = filters.filter {
    case IsNotNull(_) => false
    case filter => filter.deterministic && filter.references.nonEmpty && filter.references.subsetOf(
        columns) && !SubqueryExpression.hasSubquery(filter)
  }

  /** The directories of partitions that are not below the table's, or are links to directories elsewhere. */
  private def elsewhere(table: CatalogTable, root: Path, filters: Seq[Expression]): Seq[Path] =
    if (table.partitionColumnNames.nonEmpty && (table.tracksPartitionsInCatalog || table.provider.forall(
        _.equalsIgnoreCase("hive")))) {
      val (
        far,
        near) = partitions(table, filters).flatMap(_.storage.locationUri).map(new Path(_)).partition { location =>
        location.toUri.getPath != root.toUri.getPath && !location.toUri.getPath.startsWith(s"${root.toUri.getPath}/") ||
        location.toUri.getScheme != root.toUri.getScheme || location.toUri.getAuthority != root.toUri.getAuthority
      }
      far ++ TableLocations.linkedFrom(root, near)
    } else {
      Nil
    }

  /**
   * The partitions that fulfil conditions, as far as the conditions can be evaluated before the statement is optimised.
   * None, with a warning, if the catalog does not list them or, without conditions, there are too many to be listed for
   * this purpose.
   */
  private def partitions(table: CatalogTable, filters: Seq[Expression]): Seq[CatalogTablePartition] = {
    val state = session.asInstanceOf[classic.SparkSession].sessionState
    def select(conditions: Seq[Expression]) =
      ExternalCatalogUtils.listPartitionsByFilter(state.conf, state.catalog, table, conditions)
    def all() = {
      val count = state.catalog.listPartitionNames(table.identifier).size
      if (count > StatementReads.MostPartitions) {
        throw new SparkException(
          s"it has $count partitions, and no condition on a partition column limits which of them are read")
      }
      select(Nil)
    }
    (if (filters.isEmpty) Try(all()) else Try(select(filters)).orElse(Try(all()))) match {
      case Success(selected) => selected
      case Failure(cause) =>
        ReplaceInserts.unguarded(s"partitions of ${table.identifier.unquotedString} outside its directory", cause)
        Nil
    }
  }
}

private object StatementReads {

  /** The rules of Spark's optimizer that move filters to the relations, in forms that a catalog understands. */
  private val FilterRules =
    Seq(
      ReplaceExpressions,
      ComputeCurrentTime,
      PushDownPredicates,
      InferFiltersFromConstraints,
      PushDownPredicates,
      ConstantFolding,
      UnwrapCastInBinaryComparison,
      SimplifyCasts)

  private def filtersToRelations(query: LogicalPlan): LogicalPlan =
    FilterRules.foldLeft(query)((plan, rule) => rule(plan))

  /** More partitions are not listed without conditions. A metastore takes seconds for so many. */
  private val MostPartitions = 10000
}
