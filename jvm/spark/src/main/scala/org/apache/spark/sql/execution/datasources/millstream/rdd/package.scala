package org.apache.spark.sql.execution.datasources.millstream

/**
 * Millstream below `sc.textFile`.
 *
 * {{{
 * driver:   MillstreamLocalFileSystem ─► TextInputFormatHook (a Companion: what Hadoop makes for TextInputFormat is ours)
 *           HadoopRDD.getPartitions ─► PackedTextInputFormat.getSplits: Hadoop's splits, many in one PackedSplit
 * executor: HadoopRDD.compute ─► PackedTextInputFormat.getRecordReader ─► PackedLineReader ─► NativeLines, or Hadoop's reader
 * }}}
 *
 * `SparkContext` names the class of the input format itself, so a configuration cannot choose another one.
 */
package object rdd
