package io.millstream.write.metastore;

import java.io.IOException;
import java.util.Collection;
import java.util.Map;
import org.apache.hadoop.fs.Path;

/** Who keeps tables and partitions. */
public interface Metastore {
  /** What has become of the job whose change is carried out. */
  @FunctionalInterface
  interface Standing {
    /**
     * Whether another has done all of it, so that the next jobs may be at work.
     *
     * @return true if nothing is left to do
     * @throws IOException if that cannot be said, as when the table's directory is gone
     */
    boolean isFinished() throws IOException;
  }

  /**
   * Carries out what a commit record says. May be called again with the same change, also by another job than the one that
   * committed; the answer must be the same.
   *
   * @param change what is to be
   * @param standing to be asked before each request of many that changes where rows are found
   * @throws IOException if it could not be done: the commit stays in the journal, and is rolled forward by the next writer
   */
  void apply(MetastoreChange change, Standing standing) throws IOException;

  /**
   * A change under the name that its table has now.
   *
   * @param change what a commit record says
   * @param root the directory that the table has now
   * @return the change, with another name if the table was renamed; null if the table is gone, or only another of its name is there
   * @throws IOException if it is a table of another catalog, or cannot be asked
   */
  MetastoreChange current(MetastoreChange change, Path root) throws IOException;

  /**
   * Where partitions are.
   *
   * @param database of the table
   * @param table its name
   * @param partitions their names; an empty one is the table itself
   * @return their locations, by these names; those that there are not are left out
   * @throws IOException if it cannot be asked
   */
  Map<String, String> locations(String database, String table, Collection<String> partitions) throws IOException;
}
