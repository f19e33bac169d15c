/** Listing and reading on HDFS. Only this package knows HDFS's client; it is loaded for {@code hdfs:} alone. */
package io.millstream.hadoop.hdfs;
