package io.millstream.write.store;

import java.util.function.Predicate;
import org.apache.hadoop.fs.Path;

/** Names of files and directories: their paths, and which of them readers ignore. */
public final class Names {
    /** The prefix of files that hold a journal entry. */
    private static final String ENTRY = "_";
    /** The prefix of entries that are not complete yet. */
    private static final String DRAFT = ".";

    private Names() {}

    /** The journal entry that a job writes first. */
    public static String begin(String job) {
        return job + ".begin";
    }

    /** The journal entry that decides whether a job is committed. */
    public static String commit(String job) {
        return job + ".commit";
    }

    /** The journal entry of a job that is over and some of whose files are kept. */
    public static String superseded(String job) {
        return job + ".superseded";
    }

    /**
     * The path of a journal entry. The journal's directory is hidden, but a pattern such as {@code TABLE/*} matches it
     * anyway, and readers of a pattern's matches skip only hidden files. A draft is hidden already, because its name
     * begins with a dot.
     */
    public static Path entry(Path journal, String entry) {
        return path(journal, entry.startsWith(DRAFT) ? entry : ENTRY + entry);
    }

    /** The journal entry, or the draft of one, that a file holds; null if it is another program's. */
    public static String entryOf(Path file) {
        String name = file.getName();
        if (name.startsWith(DRAFT)) {
            return name;
        }
        return name.startsWith(ENTRY) ? name.substring(ENTRY.length()) : null;
    }

    /**
     * The path of a name relative to a directory; an absolute name is on the same file system. Hadoop's constructor
     * would take {@code a:b} for a URI.
     */
    public static Path path(Path directory, String relative) {
        return relative.isEmpty() ? directory : new Path(directory, new Path(null, null, relative));
    }

    /**
     * The root of the table that a directory may belong to: the directory itself, or its nearest ancestor whose name is
     * not that of a partition.
     *
     * @param isTop directories at which the search ends
     */
    public static Path tableOf(Path directory, Predicate<Path> isTop) {
        boolean isPart =
                directory.getParent() != null && directory.getName().indexOf('=') > 0 && !isTop.test(directory);
        return isPart ? tableOf(directory.getParent(), isTop) : directory;
    }

    /** The parent of a directory named relative to the table's. */
    public static String parent(String directory) {
        return directory.substring(0, Math.max(0, directory.lastIndexOf('/')));
    }

    /**
     * Whether readers ignore a name, as in Spark and Hive; a partition's directory is read even if its column's name
     * begins with an underscore.
     */
    public static boolean isHidden(String name) {
        if (name.equals("_metadata") || name.equals("_common_metadata")) {
            return false; // Parquet's summary of files that are being overwritten
        }
        return name.startsWith(".") || (name.startsWith("_") && !name.contains("="));
    }

    /**
     * Checks the directory and name of a new file.
     *
     * @throws IllegalArgumentException if it is outside the table, or readers would ignore it, or another job may use
     *     it
     */
    public static void check(String directory, String name, String job) {
        if (!name.contains(job)) {
            throw new IllegalArgumentException("not a name for a file of job " + job + ": " + name);
        }
        check(directory, name);
    }

    /**
     * Checks the directory and name of a new file, which may have been another job's.
     *
     * @throws IllegalArgumentException if it is outside the table, or readers would ignore it
     */
    public static void check(String directory, String name) {
        if (isHidden(name) || name.contains("/")) {
            throw new IllegalArgumentException("not a name for a file of a table: " + name);
        }
        if (!directory.isEmpty()) {
            String[] levels = directory.split("/", -1);
            boolean isSwapped = levels.length > 1 && SwapDirectories.isOne(levels[0]);
            for (int i = isSwapped ? 1 : 0; i < levels.length; i++) {
                if (levels[i].isEmpty() || levels[i].equals("..") || isHidden(levels[i])) {
                    throw new IllegalArgumentException("not a directory of a table: " + directory);
                }
            }
        }
    }
}
