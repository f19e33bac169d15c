package org.apache.spark.sql.execution.datasources.millstream

import java.util.{Collections, WeakHashMap}

import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}

/**
 * Installs Millstream's rules in every session. Spark finds it through `META-INF/services`, so a user's own
 * `spark.sql.extensions` stays as it is; naming it there as well does no harm.
 */
class MillstreamExtensions extends SparkSessionExtensionsProvider {
  override def apply(extensions: SparkSessionExtensions): Unit =
    if (MillstreamExtensions.seen.add(extensions)) {
      extensions.injectHintResolutionRule(session => new IndexLocalFiles(session))
    }
}

private object MillstreamExtensions {
  private val seen = Collections.synchronizedSet(
    Collections.newSetFromMap(new WeakHashMap[SparkSessionExtensions, java.lang.Boolean]))
}
