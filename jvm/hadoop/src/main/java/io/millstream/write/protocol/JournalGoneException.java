package io.millstream.write.protocol;

import java.io.IOException;

/** The journal of a committed job is gone while the commit is carried out: whether the job can be finished is known where the table is now. */
final class JournalGoneException extends IOException {
  private static final long serialVersionUID = 1;

  JournalGoneException(String message) {
    super(message);
  }
}
