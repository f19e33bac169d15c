/** Listing and reading on HDFS. Only this package uses HDFS's client; it is loaded for {@code hdfs:} only. */
package io.millstream.hadoop.hdfs;
