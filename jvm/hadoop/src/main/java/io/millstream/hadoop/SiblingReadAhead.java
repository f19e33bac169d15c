package io.millstream.hadoop;

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
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lists the siblings of a directory before the caller asks for them.
 *
 * <p>Callers that recurse through the FileSystem API ({@code sc.textFile} over a glob, Spark's index over several roots,
 * Hadoop's Globber) list a directory and then its children one by one, and each call waits for the storage. Once a caller
 * asks for a second child, one native walk lists the following children in parallel, and they are handed out as the caller
 * arrives at them. If the caller had descended below the first child, the walk descends below the others, too. For a caller
 * that lists a single directory, nothing is listed ahead.
 *
 * <p>A listing made ahead is handed out once, while it is at most a few seconds old, and is dropped at any change made
 * through the same file system. Native threads stop when their queue is full, so a caller that does not return leaves little
 * behind.
 *
 * <p>The callers themselves drain the walk; this class has no thread of its own. One caller at a time drains it, and a
 * caller that finds another one draining lists its directory itself. No caller waits for storage while others wait for it: a
 * change only marks the listings as outdated, and the next or the draining caller drops them.
 */
final class SiblingReadAhead {
  private static final Logger LOG = LoggerFactory.getLogger(SiblingReadAhead.class);
  private static final int PARENTS_REMEMBERED = 64;
  private static final int CHILDREN_REMEMBERED = 200_000;
  private static final int EVIDENCE = 2;
  private static final int MAX_ENTRIES_READY = 1_000_000;
  /** A file opened for writing may grow unseen, so read-ahead pauses for this long after the last open for writing. */
  private static final long PAUSE_AFTER_OPEN_FOR_WRITE_MILLIS = 60_000;

  private final ListingOptions options;
  private final DirectoryWalk.Starter walks;
  private final int childrenRemembered;

  /**
   * Children of the directories that callers have listed, least recently used first; guarded by its own monitor, which is
   * never held while waiting.
   */
  private final Map<String, Siblings> parents = new LinkedHashMap<>(16, 0.75f, true);
  private int children;

  /** Counts changes. Listings made ahead before the last change are outdated. */
  private final AtomicLong generation = new AtomicLong();
  private volatile long pausedUntilMillis = nowMillis();

  /** Guards the fields below. It is held while waiting for the walk, so callers only ever try to lock it. */
  private final ReentrantLock draining = new ReentrantLock();
  private Ahead ahead;
  private long lastCallMillis = nowMillis();

  SiblingReadAhead(ListingOptions options, DirectoryWalk.Starter walks) {
    this(options, walks, CHILDREN_REMEMBERED);
  }

  SiblingReadAhead(ListingOptions options, DirectoryWalk.Starter walks, int childrenRemembered) {
    this.options = options;
    this.walks = walks;
    this.childrenRemembered = childrenRemembered;
  }

  /** The child directories of one directory, in the order in which it was listed. */
  private static final class Siblings {
    final List<String> children = new ArrayList<>();
    final Map<String, Integer> positions = new HashMap<>();
    int asked;
    boolean descended;
  }

  /** A walk ahead of the caller. */
  private static final class Ahead {
    final DirectoryWalk walk;
    final long generation;
    final Set<String> roots;
    final boolean recursive;
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
  List<DirectoryListing> take(String directory) throws InterruptedIOException {
    if (options.readAheadDirectories == 0 || !draining.tryLock()) {
      return null;
    }
    try {
      forgetOutdated();
      observe(directory);
      if (ahead == null || !ahead.covers(directory)) {
        return null;
      }
      List<DirectoryListing> parts = drainUntil(directory);
      boolean usable = parts != null && parts.get(0).errno() == 0
          && parts.get(0).ageMillis() <= options.readAheadMaxAgeMillis;
      return usable ? parts : null;
    } catch (InterruptedIOException | RuntimeException | LinkageError e) {
      stop();
      throw e;
    } finally {
      draining.unlock();
    }
  }

  /** Records that a caller was given these entries of a directory. */
  void listed(String directory, List<DirectoryListing> parts) {
    if (options.readAheadDirectories == 0) {
      return;
    }
    Siblings siblings = new Siblings();
    for (DirectoryListing part : parts) {
      for (int i = 0; i < part.count() && siblings.children.size() < childrenRemembered; i++) {
        if (part.isDirectory(i)) {
          String child = directory.endsWith("/") ? directory + part.name(i) : directory + "/" + part.name(i);
          siblings.positions.put(child, siblings.children.size());
          siblings.children.add(child);
        }
      }
    }
    if (siblings.children.size() > EVIDENCE) {
      remember(directory, siblings);
    }
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
  int childrenRemembered() {
    synchronized (parents) {
      return children;
    }
  }

  /** Records a change made through this file system. */
  void invalidate() {
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
  void invalidateAndPause() {
    pausedUntilMillis = nowMillis() + PAUSE_AFTER_OPEN_FOR_WRITE_MILLIS;
    invalidate();
  }

  private void forgetOutdated() {
    long now = nowMillis();
    if (now - lastCallMillis > options.readAheadMaxAgeMillis) {
      invalidate();
    }
    lastCallMillis = now;
    if (outdated()) {
      stop();
    }
  }

  private boolean outdated() {
    return ahead != null && ahead.generation != generation.get();
  }

  /** Records the caller's request, and starts to walk ahead if the requests so far are evidence enough. */
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
      LOG.debug("Listing {} directories ahead, from {}, descending: {}", roots.size(), directories.get(0), descend);
    }
  }

  /**
   * Drains the walk until it has listed the directory. Null if the walk ends, is outdated, has delivered too many other
   * entries first, or has delivered nothing for long: the storage that it waits for may not be that of this directory.
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
