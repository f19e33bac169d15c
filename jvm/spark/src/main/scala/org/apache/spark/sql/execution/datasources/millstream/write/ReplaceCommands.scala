package org.apache.spark.sql.execution.datasources.millstream.write

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.datasources.millstream.{Keys, SparkLine}

/**
 * Puts commands that write directly in the place of Spark's.
 *
 * @param replaced those of Spark; not the ones that extend them
 */
abstract class ReplaceCommands(session: SparkSession, replaced: Class[_ <: DataWritingCommand]*) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (Keys.get(conf, ReplaceInserts.Enabled) && !isTangled(plan)) {
      plan.resolveOperators {
        case command: DataWritingCommand if replaced.contains(command.getClass) => SparkLine.ifItFits(tagged(command)).getOrElse(command)
      }
    } else {
      plan
    }

  /**
   * Whether a statement of several INSERTs (`FROM … INSERT … INSERT …`) reads what it writes: the second would take the first for another statement. One
   * that writes with commands of several kinds counts as such.
   */
  private def isTangled(plan: LogicalPlan): Boolean = {
    val all = plan.collect { case command: DataWritingCommand => command }
    val ours = all.filter(command => replaced.contains(command.getClass))
    val isTangled = ours.nonEmpty && all.size > 1 && (ours.size < all.size ||
      ours.exists(reader => ours.exists(writer => ReadTables.doesRead(reader.query, root(writer), hadoopConf(writer)))))
    if (isTangled) ReplaceInserts.warn(root(ours.head).toString, "the statement has several INSERTs, and reads what it writes or writes to tables of several kinds")
    isTangled
  }

  private def tagged(command: DataWritingCommand): Option[LogicalPlan] =
    direct(command).map { found =>
      found.copyTagsFrom(command)
      found.setTagValue(ReadTables.Guards, ReadTables.guard(session, command.query, root(command), hadoopConf(command)))
      found
    }

  /** Where a command writes. */
  protected def root(command: DataWritingCommand): Path

  /** With which it reaches its file system. */
  protected def hadoopConf(command: DataWritingCommand): Configuration

  /** What does the same directly, if that can be done. */
  protected def direct(command: DataWritingCommand): Option[DataWritingCommand]
}
