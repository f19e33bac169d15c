package org.apache.spark.sql.execution.datasources.millstream.reading.scan

import io.millstream.hadoop.reading.RequestCounts

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

/**
 * The requests of a scan to a file system other than the local one.
 *
 * @param all metrics by name
 */
private[millstream] final class RequestMetrics private (val all: Map[String, SQLMetric]) extends Serializable {
  def add(counts: RequestCounts): Unit =
    if (all.nonEmpty) RequestMetrics.All.foreach(kind => all(kind.name) += kind.of(counts))
}

private[millstream] object RequestMetrics {

  /**
   * A number of requests.
   *
   * @param name the name of its metric
   * @param label the metric in Spark's UI
   */
  private final case class Kind(name: String, label: String, of: RequestCounts => Long)

  private val All = Seq(
    Kind("requests", "number of requests for data", _.requests),
    Kind("nativeRequests", "number of requests made natively", _.nativeRequests),
    Kind("retries", "number of requests retried", _.retries),
    Kind("throttled", "number of requests throttled by the server", _.throttled))

  /**
   * The metrics of a scan.
   *
   * @param files its files; null if it will not run. Local files have no metrics
   */
  def of(files: ScanFiles, context: SparkContext): RequestMetrics =
    new RequestMetrics(
      if (files == null || files.isLocal) Map.empty
      else All.map(kind => kind.name -> SQLMetrics.createMetric(context, kind.label)).toMap)
}
