package io.millstream.write.protocol;

import java.io.IOException;
import java.util.Collection;
import java.util.Map;

/** What a commit is going to do, shown at the last moment at which it can still be refused. */
public interface CommitDraft {
  /** How many files, and how many bytes. */
  record Totals(long files, long bytes) {
    Totals plus(Totals other) {
      return new Totals(files + other.files, bytes + other.bytes);
    }
  }

  /** What is new, by directory relative to the table. */
  Map<String, Totals> added();

  /** What is deleted, by directory relative to the table. */
  Map<String, Totals> deleted();

  /**
   * What is there already, and is not left over from before a partition was dropped.
   *
   * @param directories relative to the table
   * @return by these; those with nothing in them are left out
   * @throws IOException if they cannot be listed
   */
  Map<String, Totals> present(Collection<String> directories) throws IOException;
}
