package io.millstream.write.store;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;

/** The keys of the Hadoop configuration that concern direct writes, read in one place. */
public final class WriteOptions {
    /**
     * How a commit becomes visible: a name of {@link Visibility}, with the suffix {@code -strict} if a statement should
     * fail rather than become visible in another way. Default {@code in-place}.
     */
    public static final String VISIBILITY = "fs.millstream.write.visibility";
    /** How many files a commit publishes or deletes at once. Default 64. */
    public static final String THREADS = "fs.millstream.write.threads";
    /**
     * The length of a job's lease in milliseconds: a job that has not renewed its lease for this time counts as dead,
     * so that others may resolve it. Default 120000. A driver renews three times per lease. The lease must be longer
     * than any request and any pause of the driver.
     */
    public static final String LEASE_MILLIS = "fs.millstream.write.lease.ms";
    /**
     * How long a commit waits for the commit lock while others commit to the table, in milliseconds. Default 3600000.
     */
    public static final String LOCK_WAIT_MILLIS = "fs.millstream.write.lock.wait.ms";
    /**
     * How long a committed job whose driver lives is left to that driver, before a statement that reads the table, or
     * waits for its commit lock, finishes it, in milliseconds. Default 3000.
     */
    public static final String HELP_AFTER_MILLIS = "fs.millstream.write.help.after.ms";
    /** Number of files from which a commit is applied by a job of the cluster. Default 5000. */
    public static final String DISTRIBUTE_FILES = "fs.millstream.write.distribute.files";
    /**
     * Whether files are synced to disk before the commit (fsync), so that it survives a power failure. Default true.
     */
    public static final String SYNC = "fs.millstream.write.sync";

    /**
     * The minimum time for which replaced files of a swap are kept, for queries planned before, in milliseconds.
     * Default 600000. The first job on the table after that time removes them.
     */
    public static final String KEEP_REPLACED_MILLIS = "fs.millstream.write.replaced.keep.ms";

    /**
     * Whether old files on HDFS are moved to the trash, if it is enabled there ({@code fs.trash.interval}). Default
     * false.
     */
    public static final String TRASH = "fs.millstream.write.replaced.trash";

    /** Set for statements that write with Hive's serdes, not by users. */
    private static final String INHERITS_ACCESS = "millstream.write.inherits.access";

    private static final String STRICT = "-strict";

    /** All keys. */
    public static final List<String> KEYS = List.of(
            VISIBILITY,
            THREADS,
            LEASE_MILLIS,
            LOCK_WAIT_MILLIS,
            HELP_AFTER_MILLIS,
            DISTRIBUTE_FILES,
            SYNC,
            KEEP_REPLACED_MILLIS,
            TRASH);

    /** When readers see a commit. */
    public enum Visibility {
        /** New files appear and old ones disappear one by one, within the time of the commit's apply. */
        IN_PLACE,
        /**
         * An overwrite becomes visible partition by partition, each at once, when its directory is exchanged with the
         * new one.
         */
        EXCHANGE,
        /**
         * An overwrite of a catalog table becomes visible at once, when one change of the catalog switches its
         * partitions to new directories.
         */
        METASTORE_SWAP;

        /** The name in the configuration. */
        public String word() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }

        static Visibility of(String word) {
            return Arrays.stream(values())
                    .filter(v -> v.word().equalsIgnoreCase(word))
                    .findFirst()
                    .orElseThrow(() -> new IllegalArgumentException(VISIBILITY + " must be one of "
                            + Arrays.stream(values()).map(Visibility::word).collect(Collectors.joining(", "))
                            + ", or one of them with " + STRICT + ", but was " + word));
        }
    }

    public final int threads;
    public final long leaseMillis;
    public final long lockWaitMillis;
    public final long helpAfterMillis;
    public final int distributeFiles;
    public final boolean sync;
    public final boolean trash;
    /** Whether new partitions on HDFS get the permissions of the directory above, as in Hive. */
    public final boolean inheritsAccess;

    public final long keepReplacedMillis;

    /**
     * Reads the options.
     *
     * @param conf the configuration
     * @throws IllegalArgumentException if a key has an invalid value
     */
    public WriteOptions(Configuration conf) {
        visibility(conf);
        threads = (int) atLeast(1, conf, THREADS, Parallel.THREADS);
        leaseMillis = atLeast(1, conf, LEASE_MILLIS, 120_000);
        lockWaitMillis = atLeast(0, conf, LOCK_WAIT_MILLIS, 3_600_000);
        helpAfterMillis = atLeast(0, conf, HELP_AFTER_MILLIS, 3000);
        distributeFiles = (int) atLeast(1, conf, DISTRIBUTE_FILES, 5000);
        sync = isSet(SYNC, conf.getTrimmed(SYNC, "true"));
        trash = isSet(TRASH, conf.getTrimmed(TRASH, "false"));
        inheritsAccess = conf.getBoolean(INHERITS_ACCESS, false);
        keepReplacedMillis = atLeast(0, conf, KEEP_REPLACED_MILLIS, 600_000);
    }

    /**
     * Makes new partitions on HDFS get the permissions of the directory above: a statement's own copy of the
     * configuration is changed.
     */
    public static void inheritAccess(Configuration conf) {
        conf.setBoolean(INHERITS_ACCESS, true);
    }

    /**
     * The requested visibility; whether it is available is decided when the statement is planned.
     *
     * @param conf the configuration
     * @return the mode
     * @throws IllegalArgumentException if the name is unknown
     */
    public static Visibility visibility(Configuration conf) {
        String word = conf.getTrimmed(VISIBILITY, Visibility.IN_PLACE.word());
        return Visibility.of(isStrict(conf) ? word.substring(0, word.length() - STRICT.length()) : word);
    }

    /**
     * Whether an overwrite must fail if the requested visibility is not available.
     *
     * @param conf the configuration
     * @return whether the value has the suffix {@code -strict}
     */
    public static boolean isStrict(Configuration conf) {
        return conf.getTrimmed(VISIBILITY, "").toLowerCase(Locale.ROOT).endsWith(STRICT);
    }

    private static boolean isSet(String key, String word) {
        if (!word.equalsIgnoreCase("true") && !word.equalsIgnoreCase("false")) {
            throw new IllegalArgumentException(key + " must be true or false, but was " + word);
        }
        return Boolean.parseBoolean(word);
    }

    private static long atLeast(long least, Configuration conf, String key, long defaultValue) {
        long value;
        try {
            value = conf.getLong(key, defaultValue);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(key + " must be a number, but was " + conf.get(key), e);
        }
        if (value < least || value > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    key + " must be from " + least + " to " + Integer.MAX_VALUE + ", but was " + value);
        }
        return value;
    }
}
