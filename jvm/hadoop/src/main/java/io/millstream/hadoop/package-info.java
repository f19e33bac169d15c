/**
 * File systems for Hadoop, on Hadoop's public API only, so that one jar serves every Spark.
 *
 * <pre>
 * MillstreamLocalFileSystem ── one directory, or a tree ──► NativeListing ──► libmillstream_jni (packed buffers)
 *      │        └── SiblingReadAhead: the caller lists one sibling after another, so list the others now
 *      └── DirectoryListing (columns) ──► LocalPaths (names to Paths) ──► ListedFileStatus
 * </pre>
 *
 * Whatever the native side cannot do, or does not answer exactly as Hadoop's own file system would, goes to the
 * superclass: the result is never different, only slower.
 */
package io.millstream.hadoop;
