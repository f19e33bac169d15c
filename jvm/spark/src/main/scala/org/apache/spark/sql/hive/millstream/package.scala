package org.apache.spark.sql.hive

/**
 * Direct INSERTs into Hive's serde tables and directories, as
 * `org.apache.spark.sql.execution.datasources.millstream.write` for data sources. It is a separate package because a
 * Spark without Hive lacks the classes that these extend. It is below `org.apache.spark.sql.hive` because Spark's
 * client of the metastore is private to that package.
 */
package object millstream
