package io.millstream.write.store;

import org.apache.hadoop.fs.Path;

/** Names of files and directories: which of them readers leave out, and their paths. */
public final class Names {
  /** A regular expression for the ids of jobs, which are in the names of their files: UUIDs. */
  public static final String JOB = "\\p{XDigit}{8}(?:-\\p{XDigit}{4}){3}-\\p{XDigit}{12}";

  private Names() { }

  /** The entry of the journal that a job makes first. */
  public static String begin(String job) {
    return job + ".begin";
  }


  /**
   * The path of what is named relative to a directory; what is named absolutely is on the same file system. Not by Hadoop's constructor,
   * which takes {@code a:b} for a URI.
   */
  public static Path path(Path directory, String relative) {
    return relative.isEmpty() ? directory : new Path(directory, new Path(null, null, relative));
  }

  /** The directory in which a directory is that is named relative to the table's. */
  public static String parent(String directory) {
    return directory.substring(0, Math.max(0, directory.lastIndexOf('/')));
  }

  /** As Spark and Hive have it; a partition's directory is seen even if its column's name begins with an underscore. */
  public static boolean isHidden(String name) {
    if (name.equals("_metadata") || name.equals("_common_metadata")) {
      return false; // Parquet's summary of files that are being overwritten
    }
    return name.startsWith(".") || (name.startsWith("_") && !name.contains("="));
  }

  /**
   * Checks what a caller gives as the place of a new file.
   *
   * @throws IllegalArgumentException if it is out of the table, or readers would leave it out, or another job may have it
   */
  public static void check(String directory, String name, String job) {
    if (isHidden(name) || name.contains("/") || !name.contains(job)) {
      throw new IllegalArgumentException("not a name for a file of job " + job + ": " + name);
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
