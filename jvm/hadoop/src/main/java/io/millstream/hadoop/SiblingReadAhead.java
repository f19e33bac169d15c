package io.millstream.hadoop;

import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Lists the siblings of a directory before the caller asks for them.
 *
 * <p>Callers that recurse through the FileSystem API ({@code sc.textFile} over a glob, Spark's index over several roots,
 * Hadoop's Globber) list a directory and then its children one by one, each call waiting for the storage. The second
 * child asked for within a moment is the evidence: then the following ones are listed by one native walk, in parallel,
 * and handed out as the caller arrives at them. Nothing is listed ahead of a caller that lists one directory, and never
 * anything below the siblings.
 *
 * <p>What is handed out is at most some seconds old, is handed out once, and is dropped at any change made through the same
 * file system. Native threads stop when their queue is full, so a caller that walks away leaves little behind.
 *
 * <p>The walk is drained by the callers themselves: there is no thread here.
 */
final class SiblingReadAhead {
  private static final int PARENTS_REMEMBERED = 64;
  private static final int MIN_SIBLINGS = 2;
  private static final int MAX_ENTRIES_READY = 1_000_000;
  /** Files opened for writing may grow unseen; read-ahead pauses so long after the last was opened. */
  private static final long PAUSE_AFTER_OPEN_FOR_WRITE_NANOS = 60_000_000_000L;

  private final ListingOptions options;
  private final Map<String, Siblings> parents = new LinkedHashMap<>(16, 0.75f, true) {
    private static final long serialVersionUID = 1L;

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, Siblings> eldest) {
      return size() > PARENTS_REMEMBERED;
    }
  };
  private final Map<String, List<DirectoryListing>> ready = new HashMap<>();
  private final Set<String> pending = new HashSet<>();
  private NativeListing walk;
  private int entriesReady;
  private boolean paused;
  private long pausedAtNanos;

  SiblingReadAhead(ListingOptions options) {
    this.options = options;
  }

  /** Child directories of one directory, in the order in which it was listed. */
  private static final class Siblings {
    final List<String> children = new ArrayList<>();
    final Map<String, Integer> positions = new HashMap<>();
    final long listedAtNanos = System.nanoTime();
    int asked;
  }

  /** The listing of a directory that was listed ahead, or null. */
  synchronized List<DirectoryListing> take(String directory) throws InterruptedIOException {
    Siblings siblings = parents.get(parentOf(directory));
    if (siblings != null && siblings.positions.containsKey(directory)) {
      siblings.asked++;
      if (siblings.asked >= MIN_SIBLINGS && !pending.contains(directory) && !ready.containsKey(directory)) {
        start(siblings, directory);
      }
    }
    drainUntil(directory);
    List<DirectoryListing> parts = ready.remove(directory);
    if (parts == null) {
      return null;
    }
    entriesReady -= parts.stream().mapToInt(DirectoryListing::count).sum();
    DirectoryListing first = parts.get(0);
    boolean usable = first.errno() == 0 && !first.isFile() && isFresh(first);
    return usable ? parts : null;
  }

  /** The caller has been given these entries of a directory. */
  synchronized void listed(String directory, List<DirectoryListing> parts) {
    Siblings siblings = new Siblings();
    for (DirectoryListing part : parts) {
      for (int i = 0; i < part.count(); i++) {
        if (part.isDirectory(i)) {
          String child = directory.endsWith("/") ? directory + part.name(i) : directory + "/" + part.name(i);
          siblings.positions.put(child, siblings.children.size());
          siblings.children.add(child);
        }
      }
    }
    if (siblings.children.size() > MIN_SIBLINGS) {
      parents.put(directory, siblings);
    }
  }

  /** Something was changed through this file system. */
  synchronized void invalidate() {
    stop();
    parents.clear();
  }

  /** A file was opened for writing. */
  synchronized void invalidateAndPause() {
    invalidate();
    paused = true;
    pausedAtNanos = System.nanoTime();
  }

  private void start(Siblings siblings, String directory) {
    stop();
    if (isPaused() || elapsedMillis(siblings.listedAtNanos) > evidenceMillis(siblings)) {
      return;
    }
    int from = siblings.positions.get(directory);
    int to = Math.min(siblings.children.size(), from + options.readAheadDirectories);
    List<byte[]> roots = new ArrayList<>();
    for (String child : siblings.children.subList(from, to)) {
      byte[] root = LocalPaths.encode(new java.io.File(child));
      if (root != null) {
        roots.add(root);
        pending.add(child);
      }
    }
    if (roots.size() >= MIN_SIBLINGS) {
      walk = new NativeListing(roots.toArray(new byte[0][]), NativeListing.DIRECTORIES, options.threads);
    } else {
      pending.clear();
    }
  }

  /** The parent's names age, too; a caller that is still at work gets the same time again for every child. */
  private long evidenceMillis(Siblings siblings) {
    return (long) options.readAheadMaxAgeMillis * siblings.asked;
  }

  private boolean isPaused() {
    paused = paused && System.nanoTime() - pausedAtNanos < PAUSE_AFTER_OPEN_FOR_WRITE_NANOS;
    return paused || options.readAheadDirectories == 0;
  }

  private void drainUntil(String directory) throws InterruptedIOException {
    while (walk != null && pending.contains(directory)) {
      List<DirectoryListing> batch = nextBatch();
      if (batch == null || entriesReady > MAX_ENTRIES_READY) {
        stop(batch == null ? Keep.READY : Keep.NOTHING);
        return;
      }
      batch.forEach(this::store);
    }
  }

  private List<DirectoryListing> nextBatch() throws InterruptedIOException {
    try {
      return walk.nextBatch();
    } catch (InterruptedIOException e) {
      stop();
      throw e;
    }
  }

  private void store(DirectoryListing listing) {
    if (listing.directory() == null) {
      return;
    }
    ready.computeIfAbsent(listing.directory(), d -> new ArrayList<>()).add(listing);
    entriesReady += listing.count();
    if (!listing.hasMore()) {
      pending.remove(listing.directory());
    }
  }

  private boolean isFresh(DirectoryListing listing) {
    return listing.ageMillis() <= options.readAheadMaxAgeMillis;
  }

  private enum Keep { READY, NOTHING }

  private void stop() {
    stop(Keep.NOTHING);
  }

  private void stop(Keep keep) {
    if (walk != null) {
      walk.close();
      walk = null;
    }
    pending.clear();
    if (keep == Keep.NOTHING) {
      ready.clear();
      entriesReady = 0;
    }
  }

  private static long elapsedMillis(long sinceNanos) {
    return (System.nanoTime() - sinceNanos) / 1_000_000;
  }

  private static String parentOf(String directory) {
    int slash = directory.lastIndexOf('/');
    return slash <= 0 ? "/" : directory.substring(0, slash);
  }
}
