package io.millstream.write.store;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;

/**
 * Where the files of an overwrite are that is to be seen as a whole: below the table's directory, in one of the job's that readers of the
 * bare path leave out. They stay there if the metastore has switched the partitions to them. Its last level is never hidden, because Hadoop's input formats look at that one's name.
 *
 * <pre>
 * TABLE/.swap-JOB/k=1/part-…    a partition
 * TABLE/.swap-JOB/data/part-…   a table without partitions
 * TABLE/.swap-JOB/none/         where partitions without rows are for a moment
 * </pre>
 */
public final class SwapDirectories {
  private static final String PREFIX = ".swap-";
  private static final String DATA = "data";
  private static final String NONE = "none";
  private static final Pattern DIRECTORY = Pattern.compile(Pattern.quote(PREFIX) + "(?<job>" + Names.JOB + ")");
  private static final Pattern PLACE = Pattern.compile(DIRECTORY + "/(?<place>.+)", Pattern.DOTALL);

  private SwapDirectories() { }

  /**
   * Where a job puts a partition.
   *
   * @param job its id
   * @param partition its directory in a table that nobody has moved; empty for a table without partitions
   * @return a directory relative to the table's
   */
  public static String of(String job, String partition) {
    return root(job) + "/" + (partition.isEmpty() ? DATA : partition);
  }

  /** An empty directory of a job, relative to the table's. */
  public static String none(String job) {
    return root(job) + "/" + NONE;
  }

  /** All that a job puts somewhere, relative to the table's directory. */
  public static String root(String job) {
    return PREFIX + job;
  }

  /** The partition that a directory, relative to the table's, is of: the directory itself if it is none of these. */
  public static String partition(String directory) {
    Matcher place = PLACE.matcher(directory);
    return !place.matches() ? directory : place.group("place").equals(DATA) ? "" : place.group("place");
  }

  /**
   * The directory that has a table's journal.
   *
   * @param location of the table
   * @return what it was before a job put a table without partitions elsewhere
   */
  public static Path home(Path location) {
    Path parent = location.getParent();
    return location.getName().equals(DATA) && parent != null && isOne(parent.getName()) ? parent.getParent() : location;
  }

  public static boolean isOne(String name) {
    return job(name) != null;
  }

  /** The job whose directory has this name; null if it is another's. */
  public static String job(String name) {
    Matcher directory = DIRECTORY.matcher(name);
    return directory.matches() ? directory.group("job") : null;
  }
}
