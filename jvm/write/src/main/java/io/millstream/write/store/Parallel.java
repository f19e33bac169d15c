package io.millstream.write.store;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Runs calls that wait for a store in parallel. */
public final class Parallel {
    /** A call for one item. */
    public interface Step<T, R> {
        R of(T item) throws IOException;
    }

    /** Number of concurrent calls that suits any store. */
    public static final int THREADS = 64;

    private static final int LONGEST_STEP_SECONDS = 60;

    private Parallel() {}

    /**
     * Runs a step for each item. After a failure, no further steps are started, and running ones are awaited.
     *
     * @return the results, in the order of the items
     * @throws IOException the first failure, with others as suppressed exceptions; failures of other classes are thrown
     *     as they are
     */
    public static <T, R> List<R> map(int threads, Collection<T> items, Step<T, R> step) throws IOException {
        if (threads == 1 || items.size() <= 1) {
            List<R> answers = new ArrayList<>(items.size());
            for (T item : items) {
                answers.add(step.of(item));
            }
            return answers;
        }
        ExecutorService pool = Executors.newFixedThreadPool(Math.min(threads, items.size()), Parallel::thread);
        try {
            AtomicBoolean failed = new AtomicBoolean();
            List<Future<R>> futures = new ArrayList<>(items.size());
            for (T item : items) {
                futures.add(pool.submit(unlessFailed(failed, item, step)));
            }
            return answers(futures);
        } catch (InterruptedIOException e) {
            Uninterrupted.run(() -> awaitEnd(pool));
            throw e;
        } finally {
            pool.shutdown();
        }
    }

    /** Waits for running steps, which could otherwise interfere with others after their caller has continued. */
    private static void awaitEnd(ExecutorService pool) {
        pool.shutdownNow();
        try {
            pool.awaitTermination(LONGEST_STEP_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static Thread thread(Runnable work) {
        Thread thread = new Thread(work, "millstream-write");
        thread.setDaemon(true);
        return thread;
    }

    private static <T, R> Callable<R> unlessFailed(AtomicBoolean failed, T item, Step<T, R> step) {
        return () -> {
            if (failed.get()) {
                return null;
            }
            try {
                return step.of(item);
            } catch (Throwable e) {
                failed.set(true);
                throw e;
            }
        };
    }

    private static <R> List<R> answers(List<Future<R>> futures) throws IOException {
        List<R> answers = new ArrayList<>(futures.size());
        Throwable failure = null;
        for (Future<R> future : futures) {
            try {
                answers.add(future.get());
            } catch (ExecutionException e) {
                if (failure == null) {
                    failure = e.getCause();
                } else if (failure != e.getCause()) {
                    failure.addSuppressed(e.getCause());
                }
            } catch (InterruptedException e) {
                futures.forEach(f -> f.cancel(true));
                Thread.currentThread().interrupt();
                throw (IOException) new InterruptedIOException("interrupted while waiting for the store").initCause(e);
            }
        }
        if (failure != null) {
            throw Parallel.<IOException>asThrown(failure);
        }
        return answers;
    }

    /**
     * The failure itself, whatever its class: a step written in Scala may throw checked exceptions that it does not
     * declare, such as Spark's.
     */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E asThrown(Throwable failure) throws E {
        throw (E) failure;
    }
}
