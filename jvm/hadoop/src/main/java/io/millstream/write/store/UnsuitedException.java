package io.millstream.write.store;

import java.io.IOException;

/** A file system turns out not to have what direct writes need. What is thrown when a job begins leaves nothing behind. */
public final class UnsuitedException extends IOException {
  private static final long serialVersionUID = 1;

  public UnsuitedException(String message, Exception cause) {
    super(message, cause);
  }
}
