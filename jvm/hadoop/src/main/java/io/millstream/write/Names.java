package io.millstream.write;

/** Which names readers leave out. */
final class Names {
  private Names() { }

  /** As Spark and Hive have it; a partition's directory is seen even if its column's name begins with an underscore. */
  static boolean isHidden(String name) {
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
  static void check(String directory, String name, String job) {
    if (isHidden(name) || name.contains("/") || !name.contains(job)) {
      throw new IllegalArgumentException("not a name for a file of job " + job + ": " + name);
    }
    if (!directory.isEmpty()) {
      for (String level : directory.split("/", -1)) {
        if (level.isEmpty() || level.equals("..") || isHidden(level)) {
          throw new IllegalArgumentException("not a directory of a table: " + directory);
        }
      }
    }
  }
}
