package io.millstream.hadoop.fs;

import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Starts the {@link FileSystemInitializer}s of this JVM. */
public final class FileSystemInitializers {
    private static final Logger LOG = LoggerFactory.getLogger(FileSystemInitializers.class);
    private static final AtomicBoolean STARTED = new AtomicBoolean();

    private FileSystemInitializers() {}

    /** To be called when a file system is initialized; the first call starts them. */
    public static void start() {
        if (STARTED.compareAndSet(false, true)) {
            try {
                ServiceLoader.load(FileSystemInitializer.class, FileSystemInitializers.class.getClassLoader())
                        .forEach(FileSystemInitializer::start);
            } catch (ServiceConfigurationError | LinkageError e) {
                LOG.debug(
                        "A service of the file system cannot start; it may need a class that this JVM lacks, such as one of Spark's",
                        e);
            }
        }
    }
}
