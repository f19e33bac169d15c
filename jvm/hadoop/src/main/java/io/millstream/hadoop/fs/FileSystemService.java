package io.millstream.hadoop.fs;

import org.apache.hadoop.fs.FileSystem;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes Hadoop use {@link io.millstream.hadoop.MillstreamLocalFileSystem} for {@code file:} in every JVM that has the
 * jar, without a setting.
 *
 * <p>A setting ({@code fs.file.impl}) would reach JVMs that lack the jar, such as spark-submit's own in cluster mode,
 * and break them. Instead, the jar names the class in {@code META-INF/services}, where Hadoop looks for file systems
 * before it creates the first one. If several classes serve a scheme, Hadoop takes the last one found, and Java skips a
 * class named before. Our entry follows one for {@code LocalFileSystem}, so it comes after Hadoop's in any order of the
 * class path. Hive's entry may still come later; then Hadoop's constructor cache gives it our class.
 * {@code fs.file.impl}, if set, takes precedence over all entries.
 */
public final class FileSystemService {
    private static final Logger LOG = LoggerFactory.getLogger(FileSystemService.class);
    private static final String HIVES = "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem";

    private FileSystemService() {}

    /**
     * To be called before Hadoop creates its first file system.
     *
     * @param ours the class for local files
     * @return whether it stands in for Hive's
     */
    public static boolean replaceHives(Class<? extends FileSystem> ours) {
        try {
            HadoopConstructors.replace(Class.forName(HIVES, false, FileSystemService.class.getClassLoader()), ours);
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            LOG.warn(
                    "Millstream does not support this Hadoop, so local files are listed and opened by Hive's class, at its usual speed; results are "
                            + "the same. Setting spark.hadoop.fs.file.impl to {} may help. Cause: {}",
                    ours.getName(),
                    e.toString());
            return false;
        }
    }
}
