package io.millstream.write.store;

/**
 * Runs work that must complete although its thread was interrupted, as happens to cancelled queries and killed tasks,
 * because others would wait for it.
 */
public final class Uninterrupted {
    private Uninterrupted() {}

    /** Runs work with the thread's interrupt flag cleared, and restores the flag afterwards. */
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
