package io.millstream.write;

import java.io.Closeable;
import java.io.IOException;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A job that writes files straight into a table's directories, from the driver's side: {@link #begin}, tasks that write through the
 * {@link #placement}, then {@link #commit} or {@link #abort}. A job that is neither, because its driver died, is settled by the next
 * one that begins on the table, or by {@link Recovery}.
 */
public final class DirectJob implements Closeable {
  private DirectJob() { }

  /**
   * Why tables of a file system cannot be written directly.
   *
   * @param fs the table's
   * @return a sentence for a warning; empty if they can
   */
  public static Optional<String> whyNot(FileSystem fs) {
    throw new UnsupportedOperationException("not yet");
  }

  /**
   * Settles dead jobs of the table, then begins one.
   *
   * @param table the root of what is written, a table's or a partitioned directory's; made if it is not there
   * @param id of the job, a UUID that no other has; it is in the name of every file
   * @param conf of the file system, with {@link WriteOptions}
   * @param metastore for dead jobs that have committed; null if there is none, and then such a job is an error
   * @return the job
   * @throws IOException if the table cannot be reached, or a dead job cannot be settled
   */
  public static DirectJob begin(Path table, String id, Configuration conf, Metastore metastore) throws IOException {
    throw new UnsupportedOperationException("not yet");
  }

  /** The job's id. */
  public String id() {
    throw new UnsupportedOperationException("not yet");
  }

  /** Where its tasks write. */
  public Placement placement() {
    throw new UnsupportedOperationException("not yet");
  }

  /**
   * Commits: waits for the table's turn, lists what is overwritten, writes the commit record, and does what it says.
   *
   * @param plan what is to be done
   * @return what was done
   * @throws CommittedException if the record is written, but what it says is not all done: it will be, by the next writer or a
   *     recovery, and the job must not be aborted
   * @throws IOException if the job is not committed: the table is as it was, and the job is to be aborted
   */
  public CommitOutcome commit(CommitPlan plan) throws IOException {
    throw new UnsupportedOperationException("not yet");
  }

  /**
   * Removes everything that the job's attempts have written. Does nothing after a commit; what fails is logged, and left to a
   * recovery.
   */
  public void abort() {
    throw new UnsupportedOperationException("not yet");
  }

  /** Stops giving signs of life. A job that was not committed counts as dead from then on. */
  @Override
  public void close() {
    throw new UnsupportedOperationException("not yet");
  }
}
