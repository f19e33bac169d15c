/**
 * File systems and codecs for Hadoop. They use Hadoop's public API only, so that one jar serves every Spark. Here are
 * the classes that Hadoop's configuration names; nothing below knows them.
 *
 * <pre>
 * MillstreamLocalFileSystem ── one directory, or a tree ──► NativeListing ──► libmillstream_jni (packed buffers)
 *      │        └── SiblingReadAhead: the caller lists one sibling after another, so list the others now
 *      └── DirectoryListing (columns) ──► FileNames (names to Paths) ──► ListedFileStatus
 * s3a.MillstreamS3AFileSystem, hdfs.MillstreamDistributedFileSystem ── data sets ──► DirectoryListing
 *                                                                   └─ bytes ──► RemoteFiles ◄── native threads of NativeScan and JoinedFiles
 * </pre>
 *
 * <p>Packages from the top down; each knows only those below it ({@code tests/architecture/check_dependencies.py}):
 *
 * <ul>
 *   <li>this one, {@code s3a} and {@code hdfs}: the file systems, and the codecs of {@code io.compression.codecs};
 *   <li>{@code fs}: how Hadoop comes to use them, and what streams they open;
 *   <li>{@code compact}: files that are merged, and the metadata that forbids it;
 *   <li>{@code reading}: ranges of files, scans of them, and how their bytes reach native threads;
 *   <li>{@code listing}: directories as native code lists them;
 *   <li>{@code codec}: compressed files as streams;
 *   <li>{@code tree}: the trees, filters and lists of files of {@code psync --spark};
 *   <li>{@code natives}: the native library, and how values and names cross to it.
 * </ul>
 *
 * If native code cannot answer exactly as Hadoop's own file system would, the superclass answers: the result is never
 * different, only slower.
 */
package io.millstream.hadoop;
