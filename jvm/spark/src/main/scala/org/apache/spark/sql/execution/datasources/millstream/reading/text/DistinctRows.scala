package org.apache.spark.sql.execution.datasources.millstream.reading.text

import org.apache.spark.sql.catalyst.expressions.{Attribute, Literal, NamedExpression}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Count, Partial, PartialMerge}
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.HashAggregateExec

/**
 * Groups whose rows are only counted, over a native scan: the scan returns distinct rows with their numbers of
 * occurrences, and the first aggregation merges these numbers instead of counting rows.
 *
 * The operators between the two must give the same result for equal rows.
 */
private[millstream] object DistinctRows {

  /** The aggregation equivalent to `aggregate`, if there is one. */
  def of(aggregate: HashAggregateExec): Option[SparkPlan] = aggregate.aggregateExpressions match {
    case _
        if aggregate.groupingExpressions.isEmpty || !aggregate.groupingExpressions.forall(
          _.deterministic) || aggregate.isStreaming => None
    case Seq() => distinct(aggregate)
    case Seq(count @ AggregateExpression(Count(Seq(Literal(value, _))), Partial, false, None, _)) if value != null =>
      merged(aggregate, count)
    case _ => None
  }

  /** Groups without functions: it does not matter how often a row occurs. */
  private def distinct(aggregate: HashAggregateExec): Option[SparkPlan] = {
    val occurrences = Count(Literal(1)).inputAggBufferAttributes.head
    over(aggregate.child, occurrences).map { child =>
      aggregate.withNewChildren(Seq(ProjectExec(aggregate.child.output, child)))
    }
  }

  private def merged(aggregate: HashAggregateExec, count: AggregateExpression): Option[SparkPlan] = {
    val occurrences = count.aggregateFunction.inputAggBufferAttributes.head
    over(aggregate.child, occurrences).map { child =>
      val groups = aggregate.groupingExpressions.map(_.toAttribute)
      aggregate.copy(
        groupingExpressions = groups,
        aggregateExpressions = Seq(count.copy(mode = PartialMerge)),
        aggregateAttributes = Seq(count.resultAttribute),
        initialInputBufferOffset = groups.length,
        child = ProjectExec(aggregate.groupingExpressions :+ occurrences, child))
    }
  }

  /** The same plan over distinct rows; its last column is the number of occurrences. */
  private def over(plan: SparkPlan, occurrences: Attribute): Option[SparkPlan] = plan match {
    case scan: NativeTextScanExec => scan.withOccurrences(occurrences)
    case FilterExec(condition, child) if condition.deterministic =>
      over(child, occurrences).map(FilterExec(condition, _))
    case ProjectExec(columns: Seq[NamedExpression], child) if columns.forall(_.deterministic) =>
      over(child, occurrences).map(ProjectExec(columns :+ occurrences, _))
    case _ => None
  }
}
