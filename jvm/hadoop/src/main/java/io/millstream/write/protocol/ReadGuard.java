package io.millstream.write.protocol;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.store.Store;
import java.io.IOException;
import java.io.Serializable;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Guards a statement that reads a table. Before the table's files are listed, every committed job on it is finished, so that the statement sees all
 * files of each job or none. When the statement commits, the guard checks whether a job has changed the table since. See "Isolation" in
 * docs/direct-writes-protocol.md.
 *
 * @param root the table's directory
 * @param version the table's version before its files were listed
 * @param hasHelped whether a job had to be finished, so that earlier listings are outdated
 */
public record ReadGuard(Path root, TableVersion version, boolean hasHelped) implements Serializable {
  /**
   * Finishes the committed jobs of a table or directory before it is read.
   *
   * @param table its root
   * @param conf of the file system
   * @param metastore for jobs that change it; without one (null), such a job is an error
   * @return the guard, to be checked when the statement commits; empty if direct writes do not support the file system
   * @throws IOException if it cannot be reached, or a job cannot be finished
   */
  public static Optional<ReadGuard> of(Path table, Configuration conf, Metastore metastore) throws IOException {
    if (Store.whyNot(table.getFileSystem(conf)).isPresent()) {
      return Optional.empty();
    }
    return Optional.of(of(TableAccess.of(table, conf, metastore)));
  }

  static ReadGuard of(TableAccess table) throws IOException {
    Resolution resolution = new Resolution(table);
    Journal journal = Journal.of(table.store());
    boolean hasHelped = false;
    while (resolution.finishCommitted(journal)) {
      hasHelped = true;
      journal = Journal.of(table.store());
    }
    return new ReadGuard(table.root(), journal.version(), hasHelped);
  }

  /**
   * Refuses the statement if another one has overwritten a table that it only reads. Rows added meanwhile are no reason to refuse: the statement may
   * have seen all, some or none of them, as with any other writer.
   *
   * @param conf of the file system
   * @throws ConflictException if files that the statement listed may have been deleted before it read them
   * @throws IOException if the table cannot be reached
   */
  public void check(Configuration conf) throws IOException {
    check(TableAccess.of(root, conf, null));
  }

  void check(TableAccess table) throws IOException {
    Resolution resolution = new Resolution(table);
    Journal journal = Journal.of(table.store());
    boolean isOverwritten = journal.version().overwritten() != version.overwritten();
    for (Journal.Job job : journal.jobs()) {
      isOverwritten |= !job.isFinished() && resolution.isOverwrite(job);
    }
    if (isOverwritten) {
      throw new ConflictException("another statement has overwritten " + root + " since this one began to read it: nothing is written, and this"
          + " statement can be run again");
    }
  }
}
