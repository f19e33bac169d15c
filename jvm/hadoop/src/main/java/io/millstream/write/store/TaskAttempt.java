package io.millstream.write.store;

import java.io.IOException;
import java.util.List;
import java.util.function.Predicate;
import org.apache.hadoop.fs.Path;

/** The files of one task attempt: private to it until the job's commit names them. Used by one thread at a time. */
public interface TaskAttempt {
  /**
   * Where a writer is to write a file. It ends as the name does. The writer creates it, and closes it before {@link #commit}.
   *
   * @param directory the directory that the file will be in, relative to the table; empty for the table's own
   * @param name the name that it will have: it must contain the job's id
   * @return a path, nobody else's, for a writer whose configuration is prepared ({@code Placement.prepare})
   * @throws IOException if no file can be put there
   */
  Path file(String directory, String name) throws IOException;

  /**
   * Makes sure that the files written will survive, and says what they are. Files asked for but never created are left out.
   *
   * @param hasRows whether rows were written to a path that {@link #file} has given: such a file was created
   * @return for the commit, if this attempt is the one that counts
   * @throws IOException if they could not be kept, or one with rows is gone: the attempt is to be aborted
   */
  List<StagedFile> commit(Predicate<Path> hasRows) throws IOException;

  /** Removes what this attempt has written, and nothing else. What cannot be removed now is by the job's recovery. */
  void abort();
}
