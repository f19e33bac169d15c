package org.apache.spark.sql.execution.datasources.millstream.reading

import org.apache.spark.sql.catalyst.expressions.{InputFileBlockLength, InputFileBlockStart, InputFileName}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{
  ColumnarRule,
  FileSourceScanExec,
  FilterExec,
  GenerateExec,
  ProjectExec,
  SparkPlan
}
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.datasources.millstream.internals.SparkLine
import org.apache.spark.sql.execution.datasources.millstream.listing.ListedRelations
import org.apache.spark.sql.execution.datasources.millstream.reading.packed.PackedFileScan
import org.apache.spark.sql.execution.datasources.millstream.reading.scan.{PackedScan, ScanFiles}
import org.apache.spark.sql.execution.datasources.millstream.reading.text.{
  DistinctRows,
  NativeTextScan,
  NativeTextScanExec,
  Words
}
import org.apache.spark.sql.execution.datasources.millstream.settings.{Keys, Switches}

/**
 * Replaces Spark's file scans with ours where these return the same rows: text scans with [[NativeTextScanExec]] if it
 * supports them, and all others with `PackedFileScanExec`.
 *
 * The rule sees the physical plan before Spark inserts transitions between rows and columns, so pruning and the filters
 * above the scan are Spark's.
 */
class ReplaceFileScans extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = plan =>
    if (Keys.get(plan.conf, Switches.Reading)) {
      lazy val asksForFile = plan.exists(_.expressions.exists(_.exists {
        case _: InputFileName | _: InputFileBlockStart | _: InputFileBlockLength => true
        case _ => false
      }))
      plan.transformUp {
        case scan: FileSourceScanExec =>
          SparkLine.ifSupported(ReplaceFileScans.replaced(scan, asksForFile)).getOrElse(scan)
        case generate: GenerateExec => SparkLine.ifSupported(Words.of(generate)).getOrElse(generate)
        case aggregate: HashAggregateExec => SparkLine.ifSupported(DistinctRows.of(aggregate)).getOrElse(aggregate)
        case project: ProjectExec => SparkLine.ifSupported(ReplaceFileScans.withoutLines(project)).getOrElse(project)
      }
    } else {
      plan
    }
}

private[millstream] object ReplaceFileScans {
  private def replaced(scan: FileSourceScanExec, asksForFile: => Boolean): Option[SparkPlan] =
    for {
      _ <- Option.when(PackedScan.suits(scan) && ListedRelations.supports(scan.relation.fileFormat))(())
      files <- ScanFiles.of(scan)
      ours <- NativeTextScan.of(scan, files, asksForFile).orElse(PackedFileScan.of(scan, files))
    } yield ours

  /**
   * Removes a filter that a native scan evaluates itself. If nothing else uses the lines, the scan does not return
   * them.
   */
  private def withoutLines(project: ProjectExec): Option[SparkPlan] = project.child match {
    case filter: FilterExec =>
      filter.child match {
        case scan: NativeTextScanExec if scan.decides(filter.condition) && !project.references.exists(scan.isLine) =>
          Some(project.withNewChildren(Seq(scan.withoutLines)))
        case _ => None
      }
    case _ => None
  }
}
