package org.apache.spark.sql.execution.datasources.millstream

import io.millstream.hadoop.reading.ListedFileSystem
import org.apache.hadoop.fs.FileSystem

/**
 * Relations of files that are listed natively.
 *
 * {{{
 * DataFrameReader.load, format.`path` in SQL ─► IndexListedFiles (a hint rule: runs before Spark lists anything) ─┐
 * CREATE TEMPORARY VIEW, CREATE TABLE ─► ReplaceTableCommands ─────────────────────────────────────────────────┤
 *                                           ListedRelations ◄──────────────────────────────────────────────────┘
 *                                             ├─► LineSchema (csv and json without a schema)
 *                                             └─► HadoopFsRelation over CompactFileIndex ◄─ MillstreamLocalFileSystem
 * tables with partitions in the catalog ─► IndexCatalogTables ─► CompactCatalogFileIndex ─► CompactFileIndex
 * }}}
 */
package object listing {

  /** A file system that Millstream lists. */
  private[millstream] type Listed = FileSystem with ListedFileSystem
}
