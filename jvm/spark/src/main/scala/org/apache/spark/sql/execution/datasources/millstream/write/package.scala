package org.apache.spark.sql.execution.datasources.millstream

/**
 * INSERT straight into a table's directories.
 *
 * {{{
 * analysed plan:  InsertIntoHadoopFsRelationCommand ─► ReplaceInserts ─► DirectInsertIntoHadoopFsRelation ─┐
 *                 InsertIntoHiveTable, …HiveDir     ─► ReplaceHiveInserts (sql.hive.millstream) ─► Direct… ┴─► DirectWrite
 * DirectWrite ─► FileFormatWriter (DirectWriteFiles) ─► DirectCommitProtocol ─► tasks: Placement     (io.millstream.write)
 *                                                                           └─► driver: DirectJob ◄─ CatalogChange (what the metastore is to be told)
 * recovery:       DirectJob of the next writer, or io.millstream.spark.Recover ─► Metastore (CatalogMetastore, HiveMetastore)
 * }}}
 *
 * The commands extend those of Spark that they stand for, so whoever looks for these (lineage, authorisation, Spark's own
 * rules) finds them, and what cannot be written directly is written by `super.run`.
 */
package object write
