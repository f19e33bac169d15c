package io.millstream.write.protocol;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.protocol.CommitPlan.Phase;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Does what a commit record says: publishes, deletes, tells the metastore. Every step may be done again, by anybody and at the same
 * time, so nobody has to know how far another came.
 */
public final class Apply {
  private static final Logger LOG = LoggerFactory.getLogger(Apply.class);
  private static final int BATCH_FILES = 1000;
  /** Enough for 64 requests of S3's bulk deletion at once. */
  private static final int DELETED_AT_ONCE = 16_000;
  private static final int NAMED_FILES = 5;

  private final TableAccess table;
  private final String job;
  private final CommitRecord record;
  private final CommitPlan.Distribution distribution;
  private final Phases phases;
  /** Whether the catalog no longer has the table that its change is for. */
  private boolean isForgotten;

  public Apply(TableAccess table, String job, CommitRecord record, CommitPlan.Distribution distribution, Phases phases) {
    this.table = table;
    this.job = job;
    this.record = record;
    this.distribution = distribution;
    this.phases = phases;
  }

  /**
   * By the job itself, which has just listed the old files.
   *
   * @throws IOException if something is left to do
   */
  public void finish() throws IOException {
    run(record.deleted(), ReplacedFiles.BY_OWNER);
  }

  /**
   * By another: old files that are not what they were, because somebody who knows nothing of the journal has written them anew, stay.
   *
   * @throws IOException if something is left to do
   */
  public void rollForward() throws IOException {
    if (record.change() != null && !isSettled() && !metastore().knows(record.change())) {
      LOG.warn("Job {} on {} is committed, but {}.{} is gone or another table: its files are put in their place, and {}", job, table.root(),
          record.change().database(), record.change().table(), record.isSwap()
              ? "no table is told of them: they stay in " + SwapDirectories.root(job) + ", and those that they were to replace where they are"
              : "its partitions are not made known, which MSCK REPAIR TABLE does");
      isForgotten = true;
    }
    if (record.isSwap()) {
      run(record.deleted(), ReplacedFiles.BY_ANOTHER);
      return;
    }
    run(table.unchanged(record.deleted()), ReplacedFiles.BY_ANOTHER);
  }

  private void run(List<OldFile> old, byte[] who) throws IOException {
    if (!phases.time(Phase.PUBLISH, this::publish) || isSettled()) {
      finishedByAnother();
      return;
    }
    if (record.isSwap()) {
      tellMetastore();
      if (record.hasReplaced() && !isForgotten) {
        table.store().replace(Journal.replaced(job), who);
      }
    } else {
      if (!(record.isExchange() ? exchange(old) : changeInPlace(old))) {
        finishedByAnother();
        return;
      }
      table.store().prune(emptied(), record.overwritten());
    }
    persist();
  }

  private void finishedByAnother() {
    LOG.warn("Job {} on {} has been finished by another", job, table.root());
  }

  /** False if another has finished the job. */
  private boolean exchange(List<OldFile> old) throws IOException {
    Exchanges exchanges = new Exchanges(table, job, record, this::isSettled);
    if (!phases.time(Phase.PUBLISH, exchanges::run)) {
      return false;
    }
    tellMetastore();
    List<OldFile> elsewhere = old.stream().filter(file -> !exchanges.concerns(file)).toList();
    if (!phases.time(Phase.DELETE, () -> delete(Stream.concat(exchanges.replaced().stream(), elsewhere.stream()).toList()))) {
      return false;
    }
    exchanges.dissolve();
    return true;
  }

  /** False if another has finished the job. */
  private boolean changeInPlace(List<OldFile> old) throws IOException {
    if (!phases.time(Phase.DELETE, () -> delete(old))) {
      return false;
    }
    tellMetastore();
    return true;
  }

  /** What was done is not to be lost once the journal has forgotten that it is to be done. */
  private void persist() throws IOException {
    Set<String> changed = new HashSet<>();
    record.added().forEach(f -> changed.add(place(f)));
    if (!record.isSwap()) {
      record.deleted().forEach(f -> changed.add(f.directory()));
    }
    table.store().persist(changed);
  }

  private void tellMetastore() throws IOException {
    if (record.change() == null || isForgotten || isSettled()) {
      return;
    }
    phases.time(Phase.METASTORE, () -> {
      if (record.isSwap()) {
        table.store().makeDirectories(directories(record.change()));
      }
      metastore().apply(record.change(), this::isSettled);
      return null;
    });
  }

  /** The directories of a swap: partitions may have got no files, and Hive's readers want one. */
  private static List<String> directories(MetastoreChange change) {
    Stream<String> ofPartitions = change.partitions().stream().map(MetastoreChange.Partition::location);
    return Stream.concat(ofPartitions, Stream.of(change.none(), change.tableLocation()))
        .filter(Objects::nonNull)
        .map(location -> new Path(location).toUri().getPath())
        .toList();
  }

  private Metastore metastore() throws IOException {
    if (table.metastore() == null) {
      throw new IOException("job " + job + " on " + table.root() + " is committed, and changes " + record.change().database() + "."
          + record.change().table() + " in the metastore, which is not at hand here: recover the table by its name");
    }
    return table.metastore();
  }

  /** Whether another has done all of this while this process was thought to be dead. */
  private boolean isSettled() throws IOException {
    return table.store().read(Journal.begin(job)) == null;
  }

  /** False if another has finished the job. */
  private boolean publish() throws IOException {
    List<StagedFile> missing = Collections.synchronizedList(new ArrayList<>());
    if (isDistributed(record.added().size())) {
      List<ApplyBatch> batches = slices(record.added(), BATCH_FILES).stream()
          .map(files -> new ApplyBatch(table.root(), job, files, List.of(), record.exchanges()))
          .toList();
      if (!distribute(batches)) {
        return false;
      }
    } else {
      AtomicInteger done = new AtomicInteger();
      Parallel.map(table.options().threads, record.added(), file -> {
        if (!publish(table.store(), file, record.exchanges())) {
          missing.add(file);
        }
        phases.progress(Phase.PUBLISH, done.incrementAndGet(), record.added().size());
        return null;
      });
    }
    if (missing.isEmpty()) {
      return true;
    }
    if (isSettled()) {
      return false;
    }
    throw missing(table.root(), job, missing);
  }

  /** A file may be where its directory is after the exchange. */
  public static boolean publish(Store store, StagedFile file, Map<String, String> exchanges) throws IOException {
    String place = exchanges.get(file.directory());
    return store.publish(file) || place != null && store.publish(file.in(place));
  }

  public static IOException missing(Path table, String job, List<StagedFile> files) {
    return new IOException(files.size() + " files of the committed job " + job + " are neither pending nor in their place, " + such(files)
        + ": somebody else has removed them. Who removes " + new Path(table, Store.JOURNAL + "/" + Journal.begin(job))
        + " gives them up, and old files that they were to replace stay");
  }

  public static String such(List<StagedFile> files) {
    return "such as " + files.stream().limit(NAMED_FILES).map(StagedFile::toString).collect(Collectors.joining(", "));
  }

  /** False if another has finished the job. */
  private boolean distribute(List<ApplyBatch> batches) throws IOException {
    try {
      distribution.run(batches);
      return true;
    } catch (Exception e) { // Scala's need not be declared
      if (isSettled()) {
        return false;
      }
      throw new IOException("job " + job + " on " + table.root() + " could not be applied in parts", e);
    }
  }

  /** False if another has finished the job. */
  private boolean delete(List<OldFile> deleted) throws IOException {
    if (isDistributed(deleted.size())) {
      return distribute(slices(deleted, BATCH_FILES).stream().map(files -> new ApplyBatch(table.root(), job, List.of(), files, Map.of())).toList());
    }
    int done = 0;
    for (List<OldFile> slice : slices(deleted, DELETED_AT_ONCE)) {
      table.store().delete(slice);
      done += slice.size();
      phases.progress(Phase.DELETE, done, deleted.size());
    }
    return true;
  }

  private boolean isDistributed(int files) {
    return distribution != null && files >= table.options().distributeFiles;
  }

  private static <T> List<List<T>> slices(List<T> all, int size) {
    List<List<T>> slices = new ArrayList<>();
    for (int start = 0; start < all.size(); start += size) {
      slices.add(all.subList(start, Math.min(all.size(), start + size)));
    }
    return slices;
  }

  /** Directories that have lost files and got none. */
  private Set<String> emptied() {
    Set<String> directories = new HashSet<>();
    record.deleted().forEach(f -> directories.add(f.directory()));
    record.added().forEach(f -> directories.remove(place(f)));
    return directories;
  }

  /** Where a new file is in the end. */
  private String place(StagedFile file) {
    return record.exchanges().getOrDefault(file.directory(), file.directory());
  }
}
