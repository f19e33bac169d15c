package io.millstream.hadoop.s3a;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.IntFunction;

/**
 * Lists keys with many workers in parallel.
 *
 * <p>A page must arrive before the next one can be requested, so a single listing is serial. A <em>shard</em> is a part
 * of the keys below one prefix, from one key to another, that one worker lists. It begins as all keys below a root. If
 * its first page is full, prefixes up to the next slash are requested: if they hold many keys each, they become
 * separate shards, otherwise they suggest cuts ({@link KeyCuts}). A worker without a shard takes half of the remainder
 * of the shard with most left. A cut costs at most one page, which overlaps the next shard; a shard with only a few
 * pages left is not cut.
 *
 * <p>Servers must list keys in order ({@link Keys#compare}), which directory buckets and some S3 imitations do not.
 * Every page is checked, and the listing fails if one is out of order.
 */
final class KeyListing {
    /** Directories of at least this many keys are listed separately. */
    private static final int KEYS_OF_A_SHARD = 500;
    /** A shard with fewer pages left is not cut. */
    private static final double PAGES_WORTH_A_CUT = 8;

    /** Receives the keys of a shard, in order. */
    interface Sink {
        /** Takes a key. */
        void add(Keys.Item item) throws IOException;
    }

    /** The server does not list keys in order. */
    static final class UnorderedException extends IOException {
        private static final long serialVersionUID = 1L;

        UnorderedException(String before, String key) {
            super("the server lists keys out of order: " + key + " after " + before);
        }
    }

    private static final class Shard {
        final int root;
        final String prefix;
        final KeyCuts cuts;
        final Sink sink;
        /** Keys up to this one belong to other shards. */
        final String from;
        /** The last key of the pages that have arrived. */
        String after;
        /** Keys after this one belong to other shards; null if there are none. */
        String until;

        String next;
        int pages;
        boolean ended;
        /** Whether it may be cut; not before its directories are known. */
        boolean mayBeCut;

        Shard(int root, String prefix, KeyCuts cuts, Sink sink, String from, String until) {
            this.root = root;
            this.prefix = prefix;
            this.cuts = cuts;
            this.sink = sink;
            this.from = from;
            this.after = from;
            this.until = until;
        }

        /** About how many pages are left. */
        double left() {
            double progress = cuts.progress(from, after, until);
            return progress == 0 ? pages : pages * (1 - progress) / progress;
        }
    }

    private final Keys keys;
    private final int threads;
    private final IntFunction<Sink> sinks;
    private final Deque<Shard> waiting = new ArrayDeque<>();
    private final List<Shard> active = new ArrayList<>();
    private final List<Thread> workers = new ArrayList<>();
    private IOException failure;
    private int running;
    private int requests;
    private int shards;

    /**
     * A listing.
     *
     * @param threads maximum number of concurrent requests
     * @param sinks creates the receiver of a shard's keys, given the index of its root
     */
    KeyListing(Keys keys, int threads, IntFunction<Sink> sinks) {
        this.keys = keys;
        this.threads = threads;
        this.sinks = sinks;
    }

    /**
     * Lists all keys that begin with these prefixes. Returns when all sinks have received theirs.
     *
     * @throws IOException the first error of a worker or sink
     */
    void run(List<String> prefixes) throws IOException {
        for (int root = 0; root < prefixes.size(); root++) {
            String prefix = prefixes.get(root);
            waiting.add(shard(root, prefix, new KeyCuts(prefix), null, null));
        }
        synchronized (this) {
            startWorkers(Math.min(threads, waiting.size()));
            try {
                while (running > 0) {
                    wait();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                fail(new InterruptedIOException("Interrupted while listing"));
                workers.forEach(Thread::interrupt);
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    /** Number of requests made. */
    synchronized int requests() {
        return requests;
    }

    /** Number of shards. */
    synchronized int shards() {
        return shards;
    }

    private synchronized Shard shard(int root, String prefix, KeyCuts cuts, String from, String until) {
        shards++;
        return new Shard(root, prefix, cuts, sinks.apply(root), from, until);
    }

    private void startWorkers(int count) {
        while (running < Math.min(count, threads)) {
            Thread worker = new Thread(this::work, "millstream-list");
            worker.setDaemon(true);
            worker.start();
            workers.add(worker);
            running++;
        }
    }

    private void work() {
        try {
            for (Shard shard = take(); shard != null; shard = take()) {
                list(shard);
            }
        } catch (IOException e) {
            fail(e);
        } catch (RuntimeException | Error e) {
            // Whatever the error, no thread may keep waiting for this worker's shard.
            fail(new IOException(e));
        } finally {
            synchronized (this) {
                running--;
                notifyAll();
            }
        }
    }

    private synchronized void fail(IOException e) {
        failure = failure == null ? e : failure;
        notifyAll();
    }

    /** A shard that no worker lists yet; null at the end. */
    private synchronized Shard take() throws InterruptedIOException {
        while (failure == null) {
            Shard shard = waiting.isEmpty() ? cut() : waiting.poll();
            if (shard != null) {
                active.add(shard);
                return shard;
            }
            if (active.isEmpty()) {
                return null;
            }
            try {
                wait();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new InterruptedIOException("Interrupted while listing");
            }
        }
        return null;
    }

    /** Half of the remainder of the shard with most left; null if no shard has much left. */
    private Shard cut() {
        Shard most = null;
        double left = PAGES_WORTH_A_CUT;
        for (Shard shard : active) {
            if (!shard.ended && shard.mayBeCut && shard.left() >= left) {
                most = shard;
                left = shard.left();
            }
        }
        String middle = most == null ? null : most.cuts.between(most.after, most.until);
        if (middle == null) {
            return null;
        }
        Shard half = shard(most.root, most.prefix, most.cuts, middle, most.until);
        most.until = middle;
        return half;
    }

    private void list(Shard shard) throws IOException {
        while (!shard.ended) {
            claim(shard, page(shard.prefix, null, shard.next == null ? shard.after : null, shard.next));
            if (!shard.ended && !shard.mayBeCut) {
                if (shard.from == null) {
                    survey(shard);
                }
                synchronized (this) {
                    shard.mayBeCut = true;
                    notifyAll();
                }
            }
        }
        synchronized (this) {
            active.remove(shard);
            notifyAll();
        }
    }

    private Keys.Page page(String prefix, String delimiter, String after, String next) throws IOException {
        synchronized (this) {
            requests++;
        }
        return keys.list(prefix, delimiter, after, next);
    }

    /** Takes the keys of a page that belong to the shard. */
    private void claim(Shard shard, Keys.Page page) throws IOException {
        String last = shard.after;
        for (Keys.Item item : page.items()) {
            if (last != null && Keys.compare(item.key(), last) <= 0
                    || !item.key().startsWith(shard.prefix)) {
                throw new UnorderedException(last, item.key());
            }
            last = item.key();
        }
        String until;
        synchronized (this) {
            // Later cuts are after this page, so every key of the page belongs to this shard or to an earlier cut.
            until = shard.until;
            if (!page.items().isEmpty()) {
                shard.cuts.learn(
                        page.items().get(0).key(),
                        page.items().get(page.items().size() - 1).key());
                learn(shard.cuts, page.items());
            }
            shard.after = last;
            shard.next = page.next();
            shard.pages++;
            boolean isPast = until != null && last != null && Keys.compare(last, until) >= 0;
            shard.ended = page.next() == null || isPast || failure != null;
            if (!shard.ended) {
                startWorkers(running + 1);
            }
            notifyAll();
        }
        for (Keys.Item item : page.items()) {
            if (until != null && Keys.compare(item.key(), until) > 0) {
                break;
            }
            shard.sink.add(item);
        }
    }

    private static void learn(KeyCuts cuts, List<Keys.Item> items) {
        int step = Math.max(1, items.size() / 16);
        for (int i = step; i < items.size(); i += step) {
            cuts.learn(items.get(i - step).key(), items.get(i).key());
        }
    }

    /** Requests the directories below a shard's prefix, and cuts it there. */
    private void survey(Shard shard) throws IOException {
        String last = shard.after;
        int slash = last.indexOf('/', shard.prefix.length());
        if (slash < 0) {
            return;
        }
        String first = last.substring(0, slash + 1);
        Keys.Page page = page(shard.prefix, "/", null, null);
        int directories = (int) page.prefixes().stream()
                .filter(prefix -> Keys.compare(prefix, first) < 0)
                .count();
        if (Keys.PAGE / (directories + 1) < KEYS_OF_A_SHARD) {
            synchronized (this) {
                shard.cuts.learnPrefixes(page.prefixes());
            }
        } else {
            cutAtDirectories(shard, first, page);
        }
    }

    /**
     * Turns each directory, beginning with the last key's, into a shard; the files next to them are in the pages of
     * directories.
     */
    private void cutAtDirectories(Shard shard, String first, Keys.Page firstPage) throws IOException {
        String last = shard.after;
        synchronized (this) {
            shard.until = last;
            shard.ended = true;
        }
        String before = null;
        for (Keys.Page page = firstPage; ; page = page(shard.prefix, "/", null, page.next())) {
            for (String prefix : page.prefixes()) {
                // A repeated prefix would be listed twice.
                if (before != null && Keys.compare(prefix, before) <= 0 || !prefix.startsWith(shard.prefix)) {
                    throw new UnorderedException(before, prefix);
                }
                before = prefix;
            }
            for (Keys.Item item : page.items()) {
                if (Keys.compare(item.key(), last) > 0) {
                    shard.sink.add(item);
                }
            }
            synchronized (this) {
                for (String prefix : page.prefixes()) {
                    if (Keys.compare(prefix, first) >= 0) {
                        waiting.add(shard(
                                shard.root, prefix, new KeyCuts(prefix), prefix.equals(first) ? last : null, null));
                    }
                }
                startWorkers(running + waiting.size());
                notifyAll();
            }
            if (page.next() == null) {
                return;
            }
        }
    }
}
