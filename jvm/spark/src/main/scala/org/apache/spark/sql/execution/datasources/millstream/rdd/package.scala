package org.apache.spark.sql.execution.datasources.millstream

/**
 * Millstream below `sc.textFile`.
 *
 * {{{
 * driver:   MillstreamLocalFileSystem ─► TextInputFormatHook (a FileSystemInitializer: Hadoop creates ours for TextInputFormat)
 *           HadoopRDD.getPartitions ─► PackedTextInputFormat.getSplits: Hadoop's splits, many in one PackedSplit
 * executor: HadoopRDD.compute ─► PackedTextInputFormat.getRecordReader ─► PackedLineReader ─► NativeLines, or Hadoop's reader
 * }}}
 *
 * `SparkContext` hard-codes the class of the input format, so a configuration cannot choose another one.
 */
package object rdd
