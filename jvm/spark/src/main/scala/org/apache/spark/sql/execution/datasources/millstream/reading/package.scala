package org.apache.spark.sql.execution.datasources.millstream

/**
 * Scans of files in place of Spark's.
 *
 * {{{
 * physical plan ─► FileSourceScanExec ─► ReplaceFileScans (before transitions between rows and columns are inserted)
 *   text:   ├─► NativeTextScanExec ─► TextScanRDD ─► ScanBatches ◄─ NativeScan
 *   packed: └─► PackedFileScanExec ─► PackedFileScanRDD ─► Spark's readers ◄─ FileReadAhead
 *                                      small Parquet files ─► NativeColumns ◄──┘
 *   scan: what both have in common: the files (ScanFiles), and how tasks share them (PackedScan, RangePacking)
 * }}}
 */
package object reading
