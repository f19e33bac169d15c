package io.millstream.hadoop.listing;

import java.util.List;
import org.apache.hadoop.conf.Configuration;

/** The keys of the Hadoop configuration that concern listing, read in one place. */
public final class ListingOptions {
    /** Whether directories are listed natively. Default true. */
    public static final String ENABLED = "fs.millstream.list.enabled";
    /**
     * False also disables native listing. A Spark driver's settings are system properties, but they are not set yet
     * when the driver creates its cached file system, so this key is read for each call; the Hadoop configuration
     * contains only settings that begin with {@code spark.hadoop}.
     */
    public static final String ENABLED_IN_DRIVER = "spark.millstream.list.enabled";
    /** Number of native threads; 0, the default, adapts the number to the storage. */
    static final String THREADS = "fs.millstream.list.threads";
    /** How many directories are listed ahead of a caller that lists siblings one by one; 0 for none. Default 1024. */
    public static final String READ_AHEAD_DIRECTORIES = "fs.millstream.list.readahead.directories";
    /** How old a directory listed ahead may be when it is handed out, in milliseconds. Default 3000. */
    public static final String READ_AHEAD_MAX_AGE_MILLIS = "fs.millstream.list.readahead.max.age.ms";

    /**
     * Whether native code may send requests to S3 itself. If not, S3A's client sends them. Read when a file system
     * makes its first such request. Default true.
     */
    public static final String NATIVE_S3 = "fs.millstream.s3a.native.enabled";

    /** All keys of the Hadoop configuration. */
    public static final List<String> KEYS =
            List.of(ENABLED, THREADS, READ_AHEAD_DIRECTORIES, READ_AHEAD_MAX_AGE_MILLIS, NATIVE_S3);

    private final boolean enabledInHadoop;
    public final int threads;
    final int readAheadDirectories;
    final int readAheadMaxAgeMillis;

    /**
     * The options in a configuration.
     *
     * @throws IllegalArgumentException if a key has an invalid value
     */
    public ListingOptions(Configuration conf) {
        enabledInHadoop = isTrue(ENABLED, conf.getTrimmed(ENABLED, "true"));
        isTrue(NATIVE_S3, conf.getTrimmed(NATIVE_S3, "true"));
        threads = nonNegative(conf, THREADS, 0);
        readAheadDirectories = nonNegative(conf, READ_AHEAD_DIRECTORIES, 1024);
        readAheadMaxAgeMillis = nonNegative(conf, READ_AHEAD_MAX_AGE_MILLIS, 3000);
    }

    /** Whether directories are listed natively. */
    public boolean enabled() {
        return enabledInHadoop && enabledInDriver();
    }

    /** The configured number of threads, otherwise {@code suitable}. */
    public int threadsOr(int suitable) {
        return threads == 0 ? suitable : threads;
    }

    private static boolean enabledInDriver() {
        return isTrue(
                ENABLED_IN_DRIVER, System.getProperty(ENABLED_IN_DRIVER, "true").strip());
    }

    /** Spark accepts the same two words and rejects all others. */
    private static boolean isTrue(String key, String word) {
        if (!word.equalsIgnoreCase("true") && !word.equalsIgnoreCase("false")) {
            throw new IllegalArgumentException(key + " should be boolean, but was " + word);
        }
        return Boolean.parseBoolean(word);
    }

    private static int nonNegative(Configuration conf, String key, int defaultValue) {
        int value;
        try {
            value = conf.getInt(key, defaultValue);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(key + " must be a number, but was " + conf.get(key), e);
        }
        if (value < 0) {
            throw new IllegalArgumentException(key + " must not be negative: " + value);
        }
        return value;
    }
}
