package io.millstream.write;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** Settles jobs whose drivers have died: what is committed is finished, everything else is removed. */
public final class Recovery {
  /** Whether anything is changed. */
  public enum Run { DRY, REAL }

  /** What becomes of a job. */
  public enum Verdict {
    /** It gives signs of life: it is left alone. */
    ALIVE,
    /** It is committed: its record is carried out. */
    ROLL_FORWARD,
    /** It is not committed: its files and uploads are removed. */
    ROLL_BACK
  }

  /**
   * What was found of a job, and what was or would be done.
   *
   * @param job its id
   * @param owner who ran it
   * @param verdict what becomes of it
   * @param steps each file to publish, to delete or to remove, and each partition to change, one line each
   */
  public record Finding(String job, String owner, Verdict verdict, List<String> steps) { }

  private Recovery() { }

  /**
   * Settles the dead jobs of a table.
   *
   * @param table its root
   * @param conf of the file system, with {@link WriteOptions}
   * @param metastore for jobs that have committed; null if there is none, and then such a job is an error
   * @param run whether anything is changed
   * @return a finding for each job in the journal, dead or alive
   * @throws IOException if the table cannot be reached, or a job cannot be settled
   */
  public static List<Finding> recover(Path table, Configuration conf, Metastore metastore, Run run) throws IOException {
    throw new UnsupportedOperationException("not yet");
  }
}
