package io.millstream.write;

import java.io.IOException;

/** Of many things to do, of which one that fails does not stop the others. */
final class Failures {
  /** One of them. */
  interface Work {
    void run() throws IOException;
  }

  private IOException first;

  void in(Work work) {
    try {
      work.run();
    } catch (IOException e) {
      if (first == null) {
        first = e;
      } else {
        first.addSuppressed(e);
      }
    }
  }

  /** Throws the first failure, if there was one; the others are suppressed in it. */
  void check() throws IOException {
    if (first != null) {
      throw first;
    }
  }
}
