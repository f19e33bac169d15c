package org.apache.spark.sql.execution.datasources

import io.millstream.hadoop.reading.ListedFileSystem
import org.apache.hadoop.fs.FileSystem

/**
 * Millstream inside Spark's SQL session.
 *
 * {{{
 * DataFrameReader.load, format.`path` in SQL ─► IndexListedFiles (a hint rule: runs before Spark lists anything) ─┐
 * CREATE TEMPORARY VIEW, CREATE TABLE ─► ReplaceTableCommands ─────────────────────────────────────────────────┤
 *                                           ListedRelations ◄──────────────────────────────────────────────────┘
 *                                             ├─► LineSchema (csv and json without a schema)
 *                                             └─► HadoopFsRelation over CompactFileIndex ◄─ MillstreamLocalFileSystem
 * tables with partitions in the catalog ─► IndexCatalogTables ─► CompactCatalogFileIndex ─► CompactFileIndex
 * physical plan ─► FileSourceScanExec ─► ReplaceFileScans (before transitions between rows and columns are inserted)
 *                                            ├─► NativeTextScanExec ─► TextScanRDD ─► ScanBatches ◄─ NativeScan
 *                                            └─► PackedFileScanExec ─► PackedFileScanRDD ─► Spark's readers ◄─ FileReadAhead
 *                                                                       small Parquet files ─► NativeColumns ◄──┘
 * }}}
 *
 * The package is below `org.apache.spark.sql.execution.datasources` because Spark's partition discovery is private to
 * that package; a reimplementation would inevitably differ from it.
 */
package object millstream {

  /** A file system that Millstream lists. */
  private[millstream] type Listed = FileSystem with ListedFileSystem
}
