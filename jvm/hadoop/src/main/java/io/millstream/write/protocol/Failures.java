package io.millstream.write.protocol;

import java.io.IOException;

/** Of many things to do, of which one that fails does not stop the others. */
public final class Failures {
  /** One of them. */
  public interface Work {
    void run() throws IOException;
  }

  private IOException first;

  public void in(Work work) {
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
  public void check() throws IOException {
    if (first != null) {
      throw first;
    }
  }
}
