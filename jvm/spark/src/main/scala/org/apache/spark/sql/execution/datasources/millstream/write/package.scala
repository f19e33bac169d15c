package org.apache.spark.sql.execution.datasources.millstream

/**
 * INSERT directly into a table's directories.
 *
 * {{{
 * analysed plan:  InsertIntoHadoopFsRelationCommand ─► ReplaceInserts ─► DirectInsertIntoHadoopFsRelation ─┐
 *                 InsertIntoHiveTable, …HiveDir     ─► ReplaceHiveInserts (sql.hive.millstream) ─► Direct… ┴─► DirectWrite
 * DirectWrite ─► FileFormatWriter (DirectWriteFiles) ─► DirectCommitProtocol ─► tasks: Placement     (io.millstream.write)
 *                                                                           └─► driver: DirectJob ◄─ CatalogChange (the change of the metastore)
 * recovery:       DirectJob of the next writer, or io.millstream.spark.Recover ─► Metastore (CatalogMetastore, HiveMetastore)
 * }}}
 *
 * The commands extend the Spark commands that they replace. So code that looks for Spark's commands (lineage,
 * authorisation, Spark's own rules) still finds them, and a write that cannot be direct is done by `super.run`.
 */
package object write
