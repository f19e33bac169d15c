package org.apache.spark.sql.execution.datasources.millstream

import java.util.{Collections, WeakHashMap}

import io.millstream.hadoop.listing.ListingOptions

import org.apache.spark.SparkContext
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.millstream.hadoop.{FileCodecClasses, LocalFiles, RemoteFileSystems}
import org.apache.spark.sql.execution.datasources.millstream.internals.SparkLine
import org.apache.spark.sql.execution.datasources.millstream.listing.{
  IndexCatalogTables,
  IndexListedFiles,
  ReplaceTableCommands
}
import org.apache.spark.sql.execution.datasources.millstream.reading.ReplaceFileScans
import org.apache.spark.sql.execution.datasources.millstream.settings.{CheckKeys, Switches}
import org.apache.spark.sql.execution.datasources.millstream.write.{
  DirectInsertIntoHadoopFsRelation,
  FilesOfQuery,
  FinishBeforeChanges,
  ReplaceInserts,
  WarnOfSwapped
}
import org.apache.spark.util.Utils

/**
 * Installs Millstream's rules in every session. Spark finds this class through `META-INF/services`, so a user's
 * own `spark.sql.extensions` needs no change; naming the class there as well is harmless.
 */
class MillstreamExtensions extends SparkSessionExtensionsProvider {
  override def apply(extensions: SparkSessionExtensions): Unit =
    if (MillstreamExtensions.seen.add(extensions)) {
      SparkContext.getActive.foreach(MillstreamExtensions.passSwitchToExecutors)
      SparkLine.ifSupported(Some(MillstreamExtensions.checkSpark())).foreach { _ =>
        SparkContext.getActive.foreach(LocalFiles.warnIfEarly)
        SparkContext.getActive.foreach(RemoteFileSystems.install)
        SparkContext.getActive.foreach(FileCodecClasses.install)
        MillstreamExtensions.install(extensions)
      }
    }
}

private object MillstreamExtensions {

  /**
   * Looks up everything that differs between Spark's lines once, when the extension is installed, so that a mismatch
   * never surfaces within a statement.
   */
  def checkSpark(): Unit = {
    SparkLine.check()
    FilesOfQuery.check()
    DirectInsertIntoHadoopFsRelation.check()
  }

  private def install(extensions: SparkSessionExtensions): Unit = {
    extensions.injectResolutionRule(session => new CheckKeys(session))
    extensions.injectHintResolutionRule(session => new IndexListedFiles(session))
    extensions.injectColumnar(_ => new ReplaceFileScans)
    extensions.injectPostHocResolutionRule(session => new IndexCatalogTables(session))
    extensions.injectPostHocResolutionRule(session => new ReplaceTableCommands(session))
    extensions.injectPostHocResolutionRule(session => new ReplaceInserts(session))
    extensions.injectPostHocResolutionRule(session => new WarnOfSwapped(session))
    extensions.injectPostHocResolutionRule(session => new FinishBeforeChanges(session))
    hiveRule.foreach(rule => extensions.injectPostHocResolutionRule(rule))
  }

  /**
   * Executors also create their file system from a Hadoop configuration, which does not contain Spark's own
   * settings.
   */
  private def passSwitchToExecutors(context: SparkContext): Unit =
    if (!context.conf.get(Switches.Listing))
      context.hadoopConfiguration.setBoolean(ListingOptions.ENABLED, false)

  /** The rule for Hive's commands, if this Spark includes Hive. */
  private def hiveRule: Option[SparkSession => Rule[LogicalPlan]] =
    Option.when(Utils.classIsLoadable("org.apache.spark.sql.hive.execution.InsertIntoHiveTable")) {
      val rule = Utils.classForName[Rule[LogicalPlan]]("org.apache.spark.sql.hive.millstream.ReplaceHiveInserts")
      session => rule.getConstructor(classOf[SparkSession]).newInstance(session)
    }

  private val seen = Collections.synchronizedSet(
    Collections.newSetFromMap(new WeakHashMap[SparkSessionExtensions, java.lang.Boolean]))
}
