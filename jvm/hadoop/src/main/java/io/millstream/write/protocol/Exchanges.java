package io.millstream.write.protocol;

import io.millstream.hadoop.NativeExchange.Outcome;
import io.millstream.write.metastore.Metastore;
import io.millstream.write.store.Exchange;
import io.millstream.write.store.Names;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The part of a commit in which each directory that the job has made ({@link SwapDirectories}) takes the place of the one that readers
 * list. The old files have then the names of the new ones' directory, to be deleted there; what others have put beside them since they
 * were listed goes back to the place.
 *
 * <p>As all of {@link Apply} this may be done again, by anybody and at the same time: whether a directory is in its place is seen from the
 * job's files in it. Where an exchange is not possible they are moved one by one.
 */
public final class Exchanges {
  private static final Logger LOG = LoggerFactory.getLogger(Exchanges.class);
  private static final long FIRST_PAUSE_MILLIS = 1;
  private static final long LONGEST_PAUSE_MILLIS = 1000;
  /** Each time somebody must have put something into a directory that nobody finds any more. */
  private static final int MOST_SWEEPS = 100;

  private final TableAccess table;
  private final String job;
  private final Metastore.Standing standing;
  private final Exchange exchange;
  private final Map<String, String> places;
  /** New files by the directories that the job has made. */
  private final Map<String, List<StagedFile>> added;
  /** Old files, by the same, as they are named once they have lost their place. */
  private final Map<String, Set<OldFile>> displaced = new HashMap<>();
  private final List<OldFile> inPlaces = new ArrayList<>();
  private final Map<String, String> madeByPlace = new HashMap<>();
  private final List<String> mixed = new ArrayList<>();

  public Exchanges(TableAccess table, String job, CommitRecord record, Metastore.Standing standing) throws IOException {
    this.table = table;
    this.job = job;
    this.standing = standing;
    this.exchange = of(table);
    this.places = record.exchanges();
    this.added = byDirectory(record.added());
    places.forEach((made, place) -> madeByPlace.put(place, made));
    for (OldFile file : record.deleted()) {
      String place = place(file.directory());
      if (place != null) {
        String made = madeByPlace.get(place);
        String directory = made + file.directory().substring(place.length());
        displaced.computeIfAbsent(made, key -> new HashSet<>()).add(new OldFile(directory, file.name(), file.bytes(), file.modifiedMillis()));
        inPlaces.add(file);
      }
    }
  }

  private static Exchange of(TableAccess table) throws IOException {
    Exchange exchange = table.store().exchange();
    if (exchange == null) {
      throw new IOException("directories of " + table.root() + " cannot be exchanged");
    }
    return exchange;
  }

  private static Map<String, List<StagedFile>> byDirectory(List<StagedFile> files) {
    Map<String, List<StagedFile>> directories = new LinkedHashMap<>();
    files.forEach(file -> directories.computeIfAbsent(file.directory(), key -> new ArrayList<>()).add(file));
    return directories;
  }

  /**
   * Sees that the commit can be carried out, before it is decided.
   *
   * @throws IOException if not
   */
  public static void rehearse(TableAccess table, List<StagedFile> files, Map<String, String> places) throws IOException {
    Exchange exchange = of(table);
    Parallel.map(table.options().threads, byDirectory(files).entrySet(), made -> {
      exchange.rehearse(made.getValue().get(0), places.get(made.getKey()));
      return null;
    });
  }

  /** The place that a directory is, or is in; null if it is in none. */
  private String place(String directory) {
    String up = directory;
    while (!up.isEmpty() && !madeByPlace.containsKey(up)) {
      up = Names.parent(up);
    }
    return madeByPlace.containsKey(up) ? up : null;
  }

  /** Whether an old file is in one of the places, and not in a directory that gets no new ones. */
  public boolean concerns(OldFile file) {
    return place(file.directory()) != null;
  }

  /**
   * Puts all directories into their places.
   *
   * @return false if another has finished the job
   * @throws IOException if something is left to do
   */
  public boolean run() throws IOException {
    table.store().persist(added.keySet());
    for (Map.Entry<String, List<StagedFile>> made : added.entrySet()) {
      if (!run(made.getKey(), places.get(made.getKey()), made.getValue())) {
        return false;
      }
    }
    // Nothing is deleted before that is so after a power failure, too.
    Set<String> parents = new HashSet<>();
    places.forEach((made, place) -> parents.addAll(List.of(Names.parent(made), Names.parent(place))));
    table.store().persist(parents);
    return true;
  }

  private boolean run(String made, String place, List<StagedFile> files) throws IOException {
    table.store().makeDirectories(List.of(place));
    Outcome outcome = exchange(made, place, files.get(0).name());
    if (outcome == Outcome.OVER || outcome != Outcome.EXCHANGED && !moveAll(files, place)) {
      return false;
    }
    exchange.carryOver(job, made, place, displaced.getOrDefault(made, Set.of()));
    if (outcome != Outcome.DONE_BEFORE && isMixed(made, place)) {
      mixed.add(place);
    }
    return true;
  }

  /**
   * Whether another program has overwritten a place after it was decided that all is published: its files are beside the job's, and old ones are gone
   * that nobody who knows the journal has deleted yet; or there were none.
   */
  private boolean isMixed(String made, String place) throws IOException {
    Set<OldFile> found = new HashSet<>(table.store().list(List.of(made, place), true));
    Set<String> own = added.get(made).stream().map(StagedFile::name).collect(Collectors.toSet());
    Set<OldFile> old = displaced.getOrDefault(made, Set.of());
    Set<OldFile> oldInPlace = inPlaces.stream().filter(file -> place.equals(place(file.directory()))).collect(Collectors.toSet());
    boolean hasForeign = found.stream().anyMatch(file -> place.equals(place(file.directory())) && !own.contains(file.name()) && !oldInPlace.contains(file));
    boolean hasLost = found.stream().filter(file -> old.contains(file) || oldInPlace.contains(file)).count() < old.size();
    return hasForeign && (hasLost || old.isEmpty());
  }

  /** Places that another program has overwritten after it was decided that all is published, so that the rows of both are there. */
  List<String> mixed() {
    return mixed;
  }

  /** What has become of it; null if it is not possible. */
  private Outcome exchange(String made, String place, String witness) throws IOException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(table.options().lockWaitMillis);
    for (long pauseMillis = FIRST_PAUSE_MILLIS; ; pauseMillis = Math.min(2 * pauseMillis, LONGEST_PAUSE_MILLIS)) {
      Outcome outcome = tryExchange(made, place, witness);
      if (outcome != Outcome.BUSY) {
        return outcome;
      }
      if (System.nanoTime() > deadline) {
        throw new IOException("another process has been at the point of exchanging directories of job " + job + " on " + table.root()
            + " for " + table.options().lockWaitMillis + " ms, and hangs there");
      }
      table.waiting().pause(pauseMillis);
    }
  }

  private Outcome tryExchange(String made, String place, String witness) {
    try {
      return exchange.exchange(job, made, place, witness);
    } catch (IOException e) {
      LOG.warn("New files of job {} appear one by one in {} of {}: {}", job, place, table.root(), e.getMessage());
      return null;
    }
  }

  /** The first is the witness. False if another has finished the job. */
  private boolean moveAll(List<StagedFile> files, String place) throws IOException {
    List<StagedFile> missing = new ArrayList<>();
    for (StagedFile file : files) {
      if (!exchange.move(file, place)) {
        missing.add(file);
      }
    }
    if (missing.isEmpty()) {
      return true;
    }
    if (standing.isFinished()) {
      return false;
    }
    throw new IOException(Apply.missing(table.root(), missing));
  }

  /** The old files of the places, wherever they are now. */
  public List<OldFile> replaced() throws IOException {
    List<OldFile> files = new ArrayList<>(inPlaces);
    displaced.values().forEach(files::addAll);
    return table.unchanged(files);
  }

  /**
   * Removes the job's directories.
   *
   * @throws IOException if something is left in them
   */
  public void dissolve() throws IOException {
    for (int sweeps = 1; ; sweeps++) {
      table.store().prune(added.keySet(), List.of());
      int found = 0;
      for (String made : added.keySet()) {
        found += exchange.carryOver(job, made, places.get(made), Set.of());
      }
      if (found == 0) {
        table.store().removeEmptyTree(SwapDirectories.root(job));
        return;
      }
      if (sweeps == MOST_SWEEPS) {
        throw new IOException("somebody writes into " + SwapDirectories.root(job) + " of " + table.root() + " all the time");
      }
    }
  }
}
