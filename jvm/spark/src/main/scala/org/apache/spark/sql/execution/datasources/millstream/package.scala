package org.apache.spark.sql.execution.datasources

/**
 * Millstream inside Spark's SQL session.
 *
 * {{{
 * MillstreamExtensions, Diagnosis                          installs the rules; checks a session
 *   rdd            write ◄─ sql.hive.millstream            sc.textFile; direct INSERTs
 *   reading ─► reading.text, reading.packed ─► reading.scan   scans
 *   listing        compressed                              file indexes; indexes of compressed files
 *   hadoop                                                 the file systems and codecs that Hadoop is given
 *   settings       internals        tasks                  keys; what differs between Sparks; sizes of tasks
 * }}}
 *
 * A package knows only those below it (`tests/architecture/check_dependencies.py`).
 *
 * The package is below `org.apache.spark.sql.execution.datasources` because Spark's partition discovery is private to
 * that package; a reimplementation would inevitably differ from it.
 */
package object millstream
