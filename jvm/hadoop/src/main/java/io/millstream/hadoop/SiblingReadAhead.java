package io.millstream.hadoop;

import java.io.File;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lists the siblings of a directory before the caller asks for them.
 *
 * <p>Callers that recurse through the FileSystem API ({@code sc.textFile} over a glob, Spark's index over several roots,
 * Hadoop's Globber) list a directory and then its children one by one, each call waiting for the storage. The second child
 * asked for is the evidence: from then on the following ones are listed by one native walk, in parallel, and handed out as
 * the caller arrives at them. If the caller had descended below the first child, the walk descends below the others, too.
 * Nothing is listed ahead of a caller that lists one directory.
 *
 * <p>What is handed out is at most some seconds old, is handed out once, and is dropped at any change made through the same
 * file system. Native threads stop when their queue is full, so a caller that walks away leaves little behind.
 *
 * <p>The walk is drained by the callers themselves: there is no thread here.
 */
final class SiblingReadAhead {
  private static final Logger LOG = LoggerFactory.getLogger(SiblingReadAhead.class);
  private static final int PARENTS_REMEMBERED = 64;
  private static final int EVIDENCE = 2;
  private static final int MAX_ENTRIES_READY = 1_000_000;
  /** Files opened for writing may grow unseen; read-ahead pauses so long after the last was opened. */
  private static final long PAUSE_AFTER_OPEN_FOR_WRITE_MILLIS = 60_000;

  private final ListingOptions options;
  private final Map<String, Siblings> parents = new LinkedHashMap<>(16, 0.75f, true) {
    private static final long serialVersionUID = 1L;

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, Siblings> eldest) {
      return size() > PARENTS_REMEMBERED;
    }
  };
  private Ahead ahead;
  private long lastCallMillis = nowMillis();
  private long pausedUntilMillis = lastCallMillis;

  SiblingReadAhead(ListingOptions options) {
    this.options = options;
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
    final NativeListing walk;
    final Set<String> roots;
    final boolean recursive;
    final Map<String, List<DirectoryListing>> arrived = new HashMap<>();
    final Set<String> complete = new HashSet<>();
    final Set<String> taken = new HashSet<>();
    int entries;

    Ahead(NativeListing walk, Set<String> roots, boolean recursive) {
      this.walk = walk;
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
  synchronized List<DirectoryListing> take(String directory) throws InterruptedIOException {
    forgetIfPaused();
    observe(directory);
    if (ahead == null || !ahead.covers(directory)) {
      return null;
    }
    List<DirectoryListing> parts = drainUntil(directory);
    boolean usable = parts != null && parts.get(0).errno() == 0
        && parts.get(0).ageMillis() <= options.readAheadMaxAgeMillis;
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
    if (siblings.children.size() > EVIDENCE) {
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
    pausedUntilMillis = nowMillis() + PAUSE_AFTER_OPEN_FOR_WRITE_MILLIS;
  }

  private void forgetIfPaused() {
    long now = nowMillis();
    if (now - lastCallMillis > options.readAheadMaxAgeMillis) {
      invalidate();
    }
    lastCallMillis = now;
  }

  /** Notes what the caller asks for, and starts to walk ahead if that is evidence enough. */
  private void observe(String directory) {
    for (String d = directory; d.length() > 1; d = parentOf(d)) {
      parents.get(d); // where a caller is at work, the directories above are remembered longest
    }
    String parent = parentOf(directory);
    Siblings aunts = parents.get(parentOf(parent));
    if (aunts != null && aunts.positions.containsKey(parent)) {
      aunts.descended = true;
    }
    Siblings siblings = parents.get(parent);
    if (siblings != null && siblings.positions.containsKey(directory)) {
      siblings.asked++;
      boolean wanted = options.readAheadDirectories > 0 && lastCallMillis >= pausedUntilMillis;
      boolean known = ahead != null && (ahead.covers(directory) || ahead.taken.contains(directory));
      if (wanted && siblings.asked >= EVIDENCE && !known) {
        start(siblings, directory);
      }
    }
  }

  private void start(Siblings siblings, String directory) {
    stop();
    int from = siblings.positions.get(directory);
    int to = (int) Math.min(siblings.children.size(), (long) from + options.readAheadDirectories);
    Set<String> roots = new HashSet<>();
    List<byte[]> encoded = new ArrayList<>();
    for (String child : siblings.children.subList(from, to)) {
      byte[] root = LocalPaths.encode(new File(child));
      if (root != null && roots.add(child)) {
        encoded.add(root);
      }
    }
    if (encoded.size() > 1) {
      int flags = NativeListing.DIRECTORIES | (siblings.descended ? NativeListing.RECURSIVE : 0);
      NativeListing walk = new NativeListing(encoded.toArray(new byte[0][]), flags, options.threads);
      ahead = new Ahead(walk, roots, siblings.descended);
      LOG.debug("Listing {} directories ahead, from {}, descending: {}", roots.size(), directory, siblings.descended);
    }
  }

  /** Null if the walk ends, or has brought too much, before it brings the directory. */
  private List<DirectoryListing> drainUntil(String directory) throws InterruptedIOException {
    while (!ahead.complete.contains(directory)) {
      List<DirectoryListing> batch = nextBatch();
      if (batch == null) {
        return null;
      }
      if (ahead.entries > MAX_ENTRIES_READY) {
        stop();
        return null;
      }
      batch.forEach(ahead::store);
    }
    return ahead.take(directory);
  }

  private List<DirectoryListing> nextBatch() throws InterruptedIOException {
    try {
      return ahead.walk.nextBatch();
    } catch (InterruptedIOException e) {
      stop();
      throw e;
    }
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
