package org.apache.spark

import java.util.{Collections, IdentityHashMap}

import _root_.io.millstream.hadoop.MillstreamLocalFileSystem
import org.apache.hadoop.fs.{FSDataInputStream, Path}

/**
 * Replaces the class of this name in Spark's tests, which is the file system of `file:` in their sessions. It does the
 * same on Millstream's file system: it records open streams, and, as on HDFS, `rename` creates no directories.
 */
class DebugFilesystem extends MillstreamLocalFileSystem {
  override def open(path: Path, bufferSize: Int): FSDataInputStream =
    new FSDataInputStream(super.open(path, bufferSize).getWrappedStream) {
      DebugFilesystem.addOpenStream(this)

      override def close(): Unit = {
        super.close()
        DebugFilesystem.removeOpenStream(this)
      }
    }

  override def rename(source: Path, target: Path): Boolean = exists(target.getParent) && super.rename(source, target)
}

object DebugFilesystem {
  private val openedAt = Collections.synchronizedMap(new IdentityHashMap[FSDataInputStream, Throwable])

  def addOpenStream(stream: FSDataInputStream): Unit = openedAt.put(stream, new Throwable("opened here and not closed"))

  def removeOpenStream(stream: FSDataInputStream): Unit = openedAt.remove(stream)

  def clearOpenStreams(): Unit = openedAt.clear()

  def assertNoOpenStreams(): Unit =
    if (!openedAt.isEmpty) {
      throw new IllegalStateException(s"${openedAt.size} streams are still open", openedAt.values.iterator.next())
    }
}
