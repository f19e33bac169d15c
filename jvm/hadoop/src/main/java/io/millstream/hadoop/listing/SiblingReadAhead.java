package io.millstream.hadoop.listing;

import io.millstream.hadoop.natives.LocalPaths;
import java.io.File;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lists the siblings of a directory before the caller asks for them.
 *
 * <p>Callers that recurse through the FileSystem API ({@code sc.textFile} over a glob, Spark's index over several
 * roots, Hadoop's Globber) list a directory and then its children one by one, and each call waits for the storage. Once
 * a caller asks for a second child, one native walk lists the following children in parallel, and they are returned as
 * the caller arrives at them. If the caller had descended below the first child, the walk descends below the others,
 * too. For a caller that lists a single directory, nothing is listed ahead.
 *
 * <p>A listing read ahead must not hide later changes by the caller or anyone else. It is returned once, while it is at
 * most a few seconds old, and only
 *
 * <ul>
 *   <li>to the thread that the walk was started for;
 *   <li>if that thread comes back immediately, as a recursion does, and not after writing files or running a job;
 *   <li>if the directory still has the modification time that its parent's listing shows, which was made before:
 *       nothing has been added or removed.
 * </ul>
 *
 * All listings are dropped at any change made through the same file system, and when none has been requested for a few
 * seconds.
 *
 * <p>The callers themselves drain the walk; this class has no separate thread. One caller at a time drains it, and a
 * caller that finds another one draining lists its directory itself. No caller waits for storage while others wait for
 * it: a change only marks the listings as outdated, and the next or the draining caller drops them.
 */
public final class SiblingReadAhead {
    private static final Logger LOG = LoggerFactory.getLogger(SiblingReadAhead.class);
    private static final int PARENTS_REMEMBERED = 64;
    private static final int CHILDREN_REMEMBERED = 200_000;
    private static final int EVIDENCE = 2;
    private static final int MAX_ENTRIES_READY = 1_000_000;
    /**
     * A file opened for writing may grow unseen, so read-ahead pauses for this long after the last open for writing.
     */
    private static final long PAUSE_AFTER_OPEN_FOR_WRITE_MILLIS = 60_000;
    /** How soon a recursion asks for the next directory, once it has the entries of the last one. */
    private static final long LONGEST_PAUSE_MILLIS = 20;
    /** Additional time for each of these entries, while the caller's code is not compiled yet. */
    private static final long PAUSE_MICROS_AN_ENTRY = 20;
    /**
     * A directory that was changed this shortly before it was listed may have been changed again with the same time.
     */
    private static final long SETTLED_MILLIS = 2_000;

    private final ListingOptions options;
    private final DirectoryWalk.Starter walks;
    private final int childrenRemembered;
    private final long longestPauseMillis;

    /**
     * Children of the directories that callers have listed, least recently used first; guarded by its own monitor,
     * which is never held while waiting.
     */
    private final Map<String, Siblings> parents = new LinkedHashMap<>(16, 0.75f, true);

    private int children;

    /** Counts changes. Listings read ahead before the last change are outdated. */
    private final AtomicLong generation = new AtomicLong();

    private volatile long pausedUntilMillis = nowMillis();

    /** Guards the fields below. It is held while waiting for the walk, so callers only ever try to lock it. */
    private final ReentrantLock draining = new ReentrantLock();

    private Ahead ahead;
    private long lastCallMillis = nowMillis();
    /** Until when the caller, if it is a recursion, may work on the last listing. */
    private final ThreadLocal<Long> returnExpectedMillis = ThreadLocal.withInitial(SiblingReadAhead::nowMillis);
    /** Whether a task waits to end an idle walk. */
    private boolean isWatched;

    public SiblingReadAhead(ListingOptions options, DirectoryWalk.Starter walks) {
        this(options, walks, CHILDREN_REMEMBERED, LONGEST_PAUSE_MILLIS);
    }

    public SiblingReadAhead(
            ListingOptions options, DirectoryWalk.Starter walks, int childrenRemembered, long longestPauseMillis) {
        this.options = options;
        this.walks = walks;
        this.childrenRemembered = childrenRemembered;
        this.longestPauseMillis = longestPauseMillis;
    }

    /** The child directories of one directory, in the order in which it was listed. */
    private static final class Siblings {
        static final long UNSETTLED = Long.MIN_VALUE;

        final List<String> children = new ArrayList<>();
        final Map<String, Integer> positions = new HashMap<>();
        /** By position, in milliseconds since 1970; {@link #UNSETTLED} if the time says nothing. */
        final List<Long> modified = new ArrayList<>();

        int asked;
        boolean descended;
    }

    /** A walk ahead of the caller. */
    private static final class Ahead {
        final DirectoryWalk walk;
        final long generation;
        final Set<String> roots;
        final boolean recursive;
        final long thread = Thread.currentThread().getId();
        final Map<String, List<DirectoryListing>> arrived = new HashMap<>();
        final Set<String> complete = new HashSet<>();
        final Set<String> taken = new HashSet<>();
        int entries;

        Ahead(DirectoryWalk walk, long generation, Set<String> roots, boolean recursive) {
            this.walk = walk;
            this.generation = generation;
            this.roots = roots;
            this.recursive = recursive;
        }

        boolean covers(String directory) {
            if (taken.contains(directory)) {
                return false;
            }
            boolean covered = roots.contains(directory);
            for (String d = directory; recursive && !covered && d.length() > 1; d = parentOf(d)) {
                covered = roots.contains(parentOf(d));
            }
            return covered;
        }

        void store(DirectoryListing listing) {
            if (listing.directory() == null || listing.isFile()) {
                return;
            }
            arrived.computeIfAbsent(listing.directory(), d -> new ArrayList<>()).add(listing);
            entries += listing.count();
            if (!listing.hasMore()) {
                complete.add(listing.directory());
            }
        }

        List<DirectoryListing> take(String directory) {
            if (!complete.remove(directory)) {
                return null;
            }
            taken.add(directory);
            List<DirectoryListing> parts = arrived.remove(directory);
            entries -= parts.stream().mapToInt(DirectoryListing::count).sum();
            return parts;
        }
    }

    /** The listing of a directory that was listed ahead, or null. */
    public List<DirectoryListing> take(String directory) throws InterruptedIOException {
        if (options.readAheadDirectories == 0 || !draining.tryLock()) {
            return null;
        }
        try {
            forgetOutdated();
            observe(directory);
            if (ahead == null || ahead.thread != Thread.currentThread().getId() || !ahead.covers(directory)) {
                return null;
            }
            List<DirectoryListing> parts = drainUntil(directory);
            boolean usable = parts != null
                    && parts.get(0).errno() == 0
                    && parts.get(0).ageMillis() <= options.readAheadMaxAgeMillis
                    && isUnchanged(directory);
            return usable ? parts : null;
        } catch (InterruptedIOException | RuntimeException | LinkageError e) {
            stop();
            throw e;
        } finally {
            draining.unlock();
        }
    }

    /**
     * Whether a directory has the modification time in its parent's listing, which is older than any listing read
     * ahead.
     */
    private boolean isUnchanged(String directory) {
        Long listed;
        synchronized (parents) {
            Siblings siblings = parents.get(parentOf(directory));
            Integer position = siblings == null ? null : siblings.positions.get(directory);
            listed = position == null ? null : siblings.modified.get(position);
        }
        // The time of a missing file is 0.
        return listed != null && listed != Siblings.UNSETTLED && listed == new File(directory).lastModified();
    }

    /** Records that a caller was given these entries of a directory, and is about to return to work on them. */
    public void listed(String directory, List<DirectoryListing> parts) {
        if (options.readAheadDirectories == 0) {
            return;
        }
        Siblings siblings = new Siblings();
        long settled = System.currentTimeMillis() - SETTLED_MILLIS;
        for (DirectoryListing part : parts) {
            for (int i = 0; i < part.count() && siblings.children.size() < childrenRemembered; i++) {
                if (part.isDirectory(i)) {
                    String child = directory.endsWith("/") ? directory + part.name(i) : directory + "/" + part.name(i);
                    siblings.positions.put(child, siblings.children.size());
                    siblings.children.add(child);
                    siblings.modified.add(
                            part.modificationTime(i) < settled ? part.modificationTime(i) : Siblings.UNSETTLED);
                }
            }
        }
        if (siblings.children.size() > EVIDENCE) {
            remember(directory, siblings);
        }
        long entries = parts.stream().mapToLong(DirectoryListing::count).sum();
        returnExpectedMillis.set(nowMillis() + longestPauseMillis + entries * PAUSE_MICROS_AN_ENTRY / 1_000);
    }

    private void remember(String directory, Siblings siblings) {
        synchronized (parents) {
            children += siblings.children.size();
            Siblings before = parents.put(directory, siblings);
            children -= before == null ? 0 : before.children.size();
            Iterator<Siblings> eldest = parents.values().iterator();
            while (parents.size() > PARENTS_REMEMBERED || children > childrenRemembered) {
                children -= eldest.next().children.size();
                eldest.remove();
            }
        }
    }

    /** Number of child directories that are remembered. */
    public int childrenRemembered() {
        synchronized (parents) {
            return children;
        }
    }

    /** Records a change made through this file system. */
    public void invalidate() {
        generation.incrementAndGet();
        synchronized (parents) {
            parents.clear();
            children = 0;
        }
        if (draining.tryLock()) {
            try {
                stop();
            } finally {
                draining.unlock();
            }
        }
    }

    /** Records that a file was opened for writing. */
    public void invalidateAndPause() {
        pausedUntilMillis = nowMillis() + PAUSE_AFTER_OPEN_FOR_WRITE_MILLIS;
        invalidate();
    }

    private void forgetOutdated() {
        long now = nowMillis();
        if (now - lastCallMillis > options.readAheadMaxAgeMillis) {
            invalidate();
        }
        lastCallMillis = now;
        boolean isLate =
                ahead != null && ahead.thread == Thread.currentThread().getId() && now > returnExpectedMillis.get();
        if (isLate || outdated()) {
            stop();
        }
    }

    private boolean outdated() {
        return ahead != null && ahead.generation != generation.get();
    }

    /** Records the caller's request, and starts a walk ahead if the requests so far suggest a recursion. */
    private void observe(String directory) {
        long now = generation.get();
        boolean descend;
        List<String> following;
        synchronized (parents) {
            for (String d = directory; d.length() > 1; d = parentOf(d)) {
                parents.get(d); // marks the directories above as recently used, so that they are remembered longest
            }
            String parent = parentOf(directory);
            Siblings aunts = parents.get(parentOf(parent));
            if (aunts != null && aunts.positions.containsKey(parent)) {
                aunts.descended = true;
            }
            Siblings siblings = parents.get(parent);
            Integer from = siblings == null ? null : siblings.positions.get(directory);
            if (from == null) {
                return;
            }
            siblings.asked++;
            boolean known = ahead != null && (ahead.covers(directory) || ahead.taken.contains(directory));
            if (lastCallMillis < pausedUntilMillis || siblings.asked < EVIDENCE || known) {
                return;
            }
            int to = (int) Math.min(siblings.children.size(), (long) from + options.readAheadDirectories);
            following = List.copyOf(siblings.children.subList(from, to));
            descend = siblings.descended;
        }
        start(following, descend, now);
    }

    private void start(List<String> directories, boolean descend, long now) {
        stop();
        Set<String> roots = new HashSet<>();
        List<byte[]> encoded = new ArrayList<>();
        for (String child : directories) {
            byte[] root = LocalPaths.encode(new File(child));
            if (root != null && roots.add(child)) {
                encoded.add(root);
            }
        }
        if (encoded.size() > 1) {
            int flags = NativeListing.DIRECTORIES | (descend ? NativeListing.RECURSIVE : 0);
            DirectoryWalk walk = walks.start(encoded.toArray(new byte[0][]), flags, options.threads);
            ahead = new Ahead(walk, now, roots, descend);
            if (!isWatched) {
                isWatched = true;
                stopOnceIdle();
            }
            LOG.debug(
                    "Listing {} directories ahead, from {}, descending: {}", roots.size(), directories.get(0), descend);
        }
    }

    /** Ends the walk when its listings have not been requested for as long as they stay valid. */
    private void stopOnceIdle() {
        CompletableFuture.delayedExecutor(options.readAheadMaxAgeMillis + 1L, TimeUnit.MILLISECONDS)
                .execute(() -> {
                    boolean isFree = draining.tryLock();
                    try {
                        if (isFree && nowMillis() - lastCallMillis > options.readAheadMaxAgeMillis) {
                            stop();
                        }
                        if (!isFree || ahead != null) {
                            stopOnceIdle();
                        } else {
                            isWatched = false;
                        }
                    } finally {
                        if (isFree) {
                            draining.unlock();
                        }
                    }
                });
    }

    /**
     * Drains the walk until it has listed the directory. Null if the walk ends, is outdated, has delivered too many
     * other entries first, or has delivered nothing for long: the storage that it waits for may not be that of this
     * directory.
     */
    private List<DirectoryListing> drainUntil(String directory) throws InterruptedIOException {
        long lastBatchMillis = nowMillis();
        while (!ahead.complete.contains(directory)) {
            List<DirectoryListing> batch = ahead.walk.poll();
            if (batch == null) {
                return null;
            }
            if (!batch.isEmpty()) {
                lastBatchMillis = nowMillis();
            }
            boolean stalled = nowMillis() - lastBatchMillis > options.readAheadMaxAgeMillis;
            if (stalled || outdated() || ahead.entries > MAX_ENTRIES_READY) {
                stop();
                return null;
            }
            batch.forEach(ahead::store);
        }
        return outdated() ? null : ahead.take(directory);
    }

    private void stop() {
        if (ahead != null) {
            ahead.walk.close();
            ahead = null;
        }
    }

    private static long nowMillis() {
        return System.nanoTime() / 1_000_000;
    }

    private static String parentOf(String directory) {
        int slash = directory.lastIndexOf('/');
        return slash <= 0 ? "/" : directory.substring(0, slash);
    }
}
