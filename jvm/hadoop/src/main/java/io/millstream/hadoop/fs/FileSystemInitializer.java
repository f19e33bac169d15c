package io.millstream.hadoop.fs;

/**
 * Additional set-up for a JVM that uses our {@code file:} file system: {@link #start} is called once, when the first
 * {@link io.millstream.hadoop.MillstreamLocalFileSystem} is initialized. Implementations are found by
 * {@link java.util.ServiceLoader}, because this module knows no Spark.
 */
public interface FileSystemInitializer {
    /** Must neither fail nor wait for the file system. */
    void start();
}
