package io.millstream.write.store;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;

/**
 * The directories for an overwrite that becomes visible as a whole. They are below the table's directory, in a
 * directory of the job that readers of the bare path ignore. If the metastore switches the partitions to them, the
 * files stay there. The last name is never hidden, because Hadoop's input formats check it.
 *
 * <pre>
 * TABLE/.swap-JOB/k=1/part-…    a partition
 * TABLE/.swap-JOB/data/part-…   a table without partitions
 * TABLE/.swap-JOB/none/         temporary location of partitions without rows
 * </pre>
 */
public final class SwapDirectories {
    private static final String PREFIX = ".swap-";
    private static final String DATA = "data";
    private static final String NONE = "none";
    private static final Pattern DIRECTORY = Pattern.compile(Pattern.quote(PREFIX) + "(?<job>" + JobId.PATTERN + ")");
    private static final Pattern BELOW_ROOT = Pattern.compile(DIRECTORY + "/(?<partition>.+)", Pattern.DOTALL);

    private SwapDirectories() {}

    /**
     * The directory to which a job writes a partition.
     *
     * @param job its id
     * @param partition its directory in a table without swaps; empty for a table without partitions
     * @return a directory relative to the table's
     */
    public static String of(String job, String partition) {
        return root(job) + "/" + (partition.isEmpty() ? DATA : partition);
    }

    /** An empty directory of a job, relative to the table's. */
    public static String emptyDirectory(String job) {
        return root(job) + "/" + NONE;
    }

    /** The root of a job's directories, relative to the table's. */
    public static String root(String job) {
        return PREFIX + job;
    }

    /**
     * The partition that a directory, relative to the table's, belongs to; the directory itself if it is not a swap
     * directory.
     */
    public static String partition(String directory) {
        Matcher found = BELOW_ROOT.matcher(directory);
        return !found.matches() ? directory : found.group("partition").equals(DATA) ? "" : found.group("partition");
    }

    /**
     * The directory that contains a table's journal.
     *
     * @param location of the table
     * @return the location before a swap moved a table without partitions
     */
    public static Path home(Path location) {
        Path parent = location.getParent();
        return location.getName().equals(DATA) && parent != null && isOne(parent.getName())
                ? parent.getParent()
                : location;
    }

    public static boolean isOne(String name) {
        return job(name) != null;
    }

    /** The job whose root directory has this name; null for other names. */
    public static String job(String name) {
        Matcher directory = DIRECTORY.matcher(name);
        return directory.matches() ? directory.group("job") : null;
    }
}
