package io.millstream.write.store;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.ThreadLocalRandom;

/** Waiting for others, or for the store. */
public final class Pause {
  private Pause() { }

  /**
   * Sleeps for half the given time to all of it, so that processes that wait for the same thing do not ask at the same moment.
   *
   * @param millis at most
   * @throws InterruptedIOException if the thread is interrupted, which it then still is
   */
  public static void sleep(long millis) throws IOException {
    try {
      Thread.sleep(ThreadLocalRandom.current().nextLong(millis / 2, millis + 1));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw (IOException) new InterruptedIOException("interrupted while waiting for others, or for the store").initCause(e);
    }
  }
}
