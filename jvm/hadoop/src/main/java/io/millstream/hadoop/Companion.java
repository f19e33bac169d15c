package io.millstream.hadoop;

/**
 * What else is to happen in a JVM whose file system of {@code file:} is ours: {@link #start} is called once, when the first
 * {@link MillstreamLocalFileSystem} is made. Found by {@link java.util.ServiceLoader}, because this module knows no Spark.
 */
public interface Companion {
  /** Must not fail, and not wait for the file system. */
  void start();
}
