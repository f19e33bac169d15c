package org.apache.spark.sql.execution.datasources.millstream.write

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.datasources.millstream.internals.SparkLine
import org.apache.spark.sql.execution.datasources.millstream.settings.{Keys, Switches}

/**
 * Replaces Spark's commands with commands that write directly.
 *
 * @param replaced Spark's commands, without their subclasses
 */
abstract class ReplaceCommands(session: SparkSession, replaced: Class[_ <: DataWritingCommand]*)
    extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (Keys.get(conf, Switches.DirectWrites)) {
      val leavesAll = isTangled(plan)
      plan.resolveOperators {
        case command: DataWritingCommand if replaced.contains(command.getClass) =>
          SparkLine.ifSupported(Some(guarded(command, leavesAll))).getOrElse(command)
      }
    } else {
      plan
    }

  /**
   * Whether a statement of several INSERTs (`FROM … INSERT … INSERT …`) reads its own target, so that the second INSERT
   * would take the first for another statement. A statement with commands of several kinds counts as well.
   */
  private def isTangled(plan: LogicalPlan): Boolean = {
    val all = plan.collect { case command: DataWritingCommand => command }
    val ours = all.filter(command => replaced.contains(command.getClass))
    val isTangled = ours.nonEmpty && all.size > 1 && (ours.size < all.size ||
      ours.exists(reader =>
        ours.exists(writer => ReadTables.doesRead(session, reader.query, root(writer), hadoopConf(writer)))))
    if (isTangled) ReplaceInserts.warn(
      root(ours.head).toString,
      "the statement has several INSERTs, and reads its own target or writes to tables of several kinds")
    isTangled
  }

  /** A command's reads are guarded even if Spark writes its result. */
  private def guarded(command: DataWritingCommand, isLeft: Boolean): LogicalPlan = {
    val found = if (isLeft) None else direct(command)
    val guards = ReadTables.guard(session, command.query, root(command), hadoopConf(command))
    found.foreach { ours =>
      ours.copyTagsFrom(command)
      ours.setTagValue(ReadTables.Guards, guards)
    }
    if (found.isEmpty) ReadTables.finishWrites(session, root(command), None, hadoopConf(command))
    found.getOrElse(command)
  }

  /** The target directory of a command. */
  protected def root(command: DataWritingCommand): Path

  /** The configuration of its file system. */
  protected def hadoopConf(command: DataWritingCommand): Configuration

  /** The equivalent direct command, if there is one. */
  protected def direct(command: DataWritingCommand): Option[DataWritingCommand]
}
