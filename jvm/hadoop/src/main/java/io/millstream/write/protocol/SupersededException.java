package io.millstream.write.protocol;

import java.io.IOException;

/** A job is committed, but a writer that does not know the journal has changed what it wrote, or was to write. Nothing is left to do. */
public final class SupersededException extends IOException {
  private static final long serialVersionUID = 1;

  SupersededException(String message) {
    super(message);
  }
}
