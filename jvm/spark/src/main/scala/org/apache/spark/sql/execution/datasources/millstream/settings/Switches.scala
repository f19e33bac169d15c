package org.apache.spark.sql.execution.datasources.millstream.settings

import io.millstream.hadoop.listing.ListingOptions

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.internal.SQLConf

/** What a session can switch on and off. */
private[sql] object Switches {
  val Listing: ConfigEntry[Boolean] = SQLConf.buildConf(ListingOptions.ENABLED_IN_DRIVER)
    .doc("Whether Millstream lists local files. If false when the driver starts, Spark and Hadoop do all listing; if set to " +
      "false in a running session, its DataFrames do not use the compact index.")
    .booleanConf
    .createWithDefault(true)

  val Reading: ConfigEntry[Boolean] = SQLConf.buildConf("spark.millstream.read.enabled")
    .doc("Whether Millstream scans files of local and mounted paths.")
    .booleanConf
    .createWithDefault(true)

  val TextFiles: ConfigEntry[Boolean] = SQLConf.buildConf("spark.millstream.rdd.enabled")
    .doc("Whether sc.textFile reads many small files in one task, and natively.")
    .booleanConf
    .createWithDefault(true)

  val RemoteSystems: ConfigEntry[Boolean] = SQLConf.buildConf("spark.millstream.remote.enabled")
    .doc("Whether Millstream lists and reads s3a: and hdfs:. If false when the first session is made, Spark and Hadoop do that themselves.")
    .booleanConf
    .createWithDefault(true)

  val Codecs: ConfigEntry[Boolean] = SQLConf.buildConf("spark.millstream.codecs.enabled")
    .doc("Whether Hadoop's readers decode .lz4, .snappy and .zst files natively. If false when the first session is made, Hadoop's own codecs decode them.")
    .booleanConf
    .createWithDefault(true)

  val DirectWrites: ConfigEntry[Boolean] = SQLConf.buildConf("spark.millstream.write.enabled")
    .doc("Whether Millstream writes the files of an INSERT directly to their destination directories, with one commit that survives crashes.")
    .booleanConf
    .createWithDefault(false)
}
