package org.apache.spark.sql.hive

/**
 * INSERT into Hive's serde tables and directories, straight: what `org.apache.spark.sql.execution.datasources.millstream.write`
 * is for data sources. It is a package of its own because a Spark without Hive has not what these classes extend; it lives below
 * `org.apache.spark.sql.hive` because Spark's client of the metastore is private to that package.
 */
package object millstream
