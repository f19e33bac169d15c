package io.millstream.write.protocol;

import java.io.IOException;

/** A job is committed, but what its record says is not all done yet. */
public final class CommittedException extends IOException {
  private static final long serialVersionUID = 1;

  public CommittedException(String message, Throwable cause) {
    super(message, cause);
  }
}
