package io.millstream.hadoop.fs;

import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Starts the {@link Companion}s of this JVM. */
public final class Companions {
    private static final Logger LOG = LoggerFactory.getLogger(Companions.class);
    private static final AtomicBoolean STARTED = new AtomicBoolean();

    private Companions() {}

    /** To be called when a file system is initialized; the first call starts them. */
    public static void start() {
        if (STARTED.compareAndSet(false, true)) {
            try {
                ServiceLoader.load(Companion.class, Companions.class.getClassLoader())
                        .forEach(Companion::start);
            } catch (ServiceConfigurationError | LinkageError e) {
                LOG.debug(
                        "A service of the file system cannot start; it may need a class that this JVM lacks, such as one of Spark's",
                        e);
            }
        }
    }
}
