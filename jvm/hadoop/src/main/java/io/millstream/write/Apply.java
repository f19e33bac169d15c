package io.millstream.write;

import io.millstream.write.CommitPlan.Phase;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Does what a commit record says: publishes, deletes, tells the metastore. Every step may be done again, by anybody and at the same
 * time, so nobody has to know how far another came.
 */
final class Apply {
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

  Apply(TableAccess table, String job, CommitRecord record, CommitPlan.Distribution distribution, Phases phases) {
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
  void finish() throws IOException {
    run(record.deleted());
  }

  /**
   * By another: old files that are not what they were, because somebody who knows nothing of the journal has written them anew, stay.
   *
   * @throws IOException if something is left to do
   */
  void rollForward() throws IOException {
    Set<String> directories = record.deleted().stream().map(OldFile::directory).collect(Collectors.toSet());
    Set<OldFile> unchanged = new HashSet<>(table.store().list(directories, false));
    unchanged.retainAll(record.deleted());
    run(new ArrayList<>(unchanged));
  }

  private void run(List<OldFile> deleted) throws IOException {
    if (!phases.time(Phase.PUBLISH, this::publish) || isSettled()) {
      LOG.warn("Job {} on {} has been finished by another", job, table.root());
      return;
    }
    phases.time(Phase.DELETE, () -> {
      delete(deleted);
      return null;
    });
    if (record.change() != null && !isSettled()) {
      phases.time(Phase.METASTORE, () -> {
        metastore().apply(record.change());
        return null;
      });
    }
    table.store().prune(emptied(), record.overwritten());
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
    List<PendingFile> missing = Collections.synchronizedList(new ArrayList<>());
    if (isDistributed(record.added().size())) {
      List<ApplyBatch> batches = slices(record.added(), BATCH_FILES).stream()
          .map(files -> new ApplyBatch(table.root(), job, files, List.of()))
          .toList();
      distribution.run(batches);
    } else {
      AtomicInteger done = new AtomicInteger();
      Parallel.map(table.options().threads, record.added(), file -> {
        if (!table.store().publish(file)) {
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

  static IOException missing(Path table, String job, List<PendingFile> files) {
    return new IOException(files.size() + " files of the committed job " + job + " are neither pending nor in their place, such as "
        + files.stream().limit(NAMED_FILES).map(PendingFile::toString).collect(Collectors.joining(", "))
        + ": somebody else has removed them. Who removes " + new Path(table, Store.JOURNAL + "/" + Journal.begin(job))
        + " gives them up, and old files that they were to replace stay");
  }

  private void delete(List<OldFile> deleted) throws IOException {
    if (isDistributed(deleted.size())) {
      distribution.run(slices(deleted, BATCH_FILES).stream().map(files -> new ApplyBatch(table.root(), job, List.of(), files)).toList());
      return;
    }
    int done = 0;
    for (List<OldFile> slice : slices(deleted, DELETED_AT_ONCE)) {
      table.store().delete(slice);
      done += slice.size();
      phases.progress(Phase.DELETE, done, deleted.size());
    }
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

  /** Directories that have lost files and got none, below those that the statement names. */
  private Set<String> emptied() {
    Set<String> directories = new HashSet<>();
    if (!record.overwritten().isEmpty()) {
      record.deleted().forEach(f -> directories.add(f.directory()));
      record.added().forEach(f -> directories.remove(f.directory()));
    }
    return directories;
  }
}
