/**
 * File systems for Hadoop. They use Hadoop's public API only, so that one jar serves every Spark.
 *
 * <pre>
 * MillstreamLocalFileSystem ── one directory, or a tree ──► NativeListing ──► libmillstream_jni (packed buffers)
 *      │        └── SiblingReadAhead: the caller lists one sibling after another, so list the others now
 *      └── DirectoryListing (columns) ──► FileNames (names to Paths) ──► ListedFileStatus
 * s3a.MillstreamS3AFileSystem, hdfs.MillstreamDistributedFileSystem ── data sets ──► DirectoryListing
 *                                                                   └─ bytes ──► RemoteFiles ◄── native threads of NativeScan and JoinedFiles
 * </pre>
 *
 * If native code cannot answer exactly as Hadoop's own file system would, the superclass answers: the result is never
 * different, only slower.
 */
package io.millstream.hadoop;
