package io.millstream.write;

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
}
