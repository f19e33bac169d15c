package io.millstream.write;

import java.io.IOException;

/** Who keeps tables and partitions. */
public interface Metastore {
  /**
   * Carries out what a commit record says. May be called again with the same change, also by another job than the one that
   * committed; the answer must be the same.
   *
   * @param change what is to be
   * @throws IOException if it could not be done: the commit stays in the journal, and is rolled forward by the next writer
   */
  void apply(MetastoreChange change) throws IOException;
}
