package io.millstream.write.store;

/** What has to be done though its thread was interrupted, as those of cancelled queries and killed tasks are: others would wait for it. */
public final class Uninterrupted {
  private Uninterrupted() { }

  /** Runs work as if the thread were not interrupted, which it is again afterwards. */
  public static void run(Runnable work) {
    boolean wasInterrupted = Thread.interrupted();
    try {
      work.run();
    } finally {
      if (wasInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
