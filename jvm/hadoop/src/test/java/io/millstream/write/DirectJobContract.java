package io.millstream.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.Recovery.Finding;
import io.millstream.write.Recovery.Run;
import io.millstream.write.Recovery.Verdict;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.mockito.AdditionalAnswers;
import org.mockito.Mockito;

/** What the protocol promises, over any store. The rows of the failure matrix in docs/direct-writes.md name their tests here. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
abstract class DirectJobContract {
  protected TableBed bed;

  /** A directory that is this test's alone. */
  abstract Path newTable() throws IOException;

  /** What a file system needs. */
  abstract Configuration newConfiguration();

  /** Longer than the clock of the store is coarse. */
  abstract int shortLeaseMillis();

  /** Whether directories are there though nothing is in them. */
  abstract boolean hasDirectories();

  @BeforeEach
  void makeTable() throws IOException {
    bed = new TableBed(newTable(), newConfiguration());
  }

  private TableBed with(String key, int value) throws IOException {
    Configuration conf = newConfiguration();
    conf.setInt(key, value);
    return new TableBed(bed.table, conf);
  }

  private TableBed shortLease() throws IOException {
    return with(WriteOptions.LEASE_MILLIS, shortLeaseMillis());
  }

  private static Set<String> rows(String... rows) {
    return new TreeSet<>(List.of(rows));
  }

  @Test
  void insertIntoAddsAndNothingIsLeft() throws IOException {
    bed.put("k=1/old", "a");

    CommitOutcome outcome = bed.run(Overwrite.nothing(), "k=1", "b", "k=2/l=3", "c", "", "d");

    assertEquals(rows("k=1:a", "k=1:b", "k=2/l=3:c", ":d"), bed.rows());
    assertEquals(List.of(), bed.hidden());
    assertFalse(bed.fs.exists(new Path(bed.table, Store.JOURNAL)));
    assertEquals(3, outcome.addedFiles());
    assertEquals(3, outcome.addedBytes());
    assertEquals(3, outcome.directories());
  }

  @Test
  void nothingIsSeenBeforeTheCommit() throws IOException {
    bed.put("k=1/old", "a");
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, bed.conf, null)) {
      bed.attempt(job.placement(), id, "0", "k=1", "b", "k=2", "c").commit();

      assertEquals(rows("k=1:a"), bed.rows());

      job.abort();
    }
    assertEquals(rows("k=1:a"), bed.rows());
  }

  @Test
  void dynamicOverwriteReplacesWhatItTouches() throws IOException {
    bed.put("k=1/old", "a");
    bed.put("k=1/l=1/below", "below");
    bed.put("k=2/old", "b");
    bed.put("k=1/_SUCCESS", "");

    CommitOutcome outcome = bed.run(Overwrite.touched(), "k=1", "c", "k=3", "d");

    assertEquals(rows("k=1:c", "k=1/l=1:below", "k=2:b", "k=3:d"), bed.rows());
    assertEquals(1, outcome.deletedFiles());
    assertTrue(bed.fs.exists(new Path(bed.table, "k=1/_SUCCESS")));
  }

  @Test
  void staticOverwriteReplacesAllBelowAndLeavesNoEmptyDirectories() throws IOException {
    bed.put("k=1/l=1/m=1/old", "a");
    bed.put("k=1/l=2/old", "b");
    bed.put("k=1/_l=3/old", "c");
    bed.put("k=2/old", "d");

    bed.run(Overwrite.below(List.of("k=1")), "k=1/l=2", "e");

    assertEquals(rows("k=1/l=2:e", "k=2:d"), bed.rows());
    assertFalse(bed.fs.exists(new Path(bed.table, "k=1/l=1")));
    assertFalse(bed.fs.exists(new Path(bed.table, "k=1/_l=3")));
  }

  @Test
  void overwriteByNothingEmptiesWhatIsNamedAndKeepsItsDirectory() throws IOException {
    bed.put("k=1/old", "a");
    bed.put("k=2/old", "b");

    bed.run(Overwrite.below(List.of("k=1")));

    assertEquals(rows("k=2:b"), bed.rows());
    assertEquals(hasDirectories(), bed.fs.exists(new Path(bed.table, "k=1")));
  }

  @Test
  void overwriteOfTheTableTakesTheSummariesOfParquetToo() throws IOException {
    bed.put("old", "a");
    bed.put("_metadata", "summary");
    bed.put(".hive-staging_1/x", "another's");

    bed.run(Overwrite.below(List.of("")), "", "b");

    assertEquals(rows(":b"), bed.rows());
    assertFalse(bed.fs.exists(new Path(bed.table, "_metadata")));
    assertTrue(bed.fs.exists(new Path(bed.table, ".hive-staging_1/x")));
  }

  @Test
  void valuesOfPartitionsMayHaveAnyName() throws IOException {
    String[] directories = {"k=a%2Fb", "k=with space", "k=ünï日本", "k=__HIVE_DEFAULT_PARTITION__", "k=100%25", "k=a#b?c"};
    for (String partition : directories) {
      bed.put(partition + "/old", "old");
    }
    List<String> files = new ArrayList<>();
    TreeSet<String> expected = new TreeSet<>();
    for (String partition : directories) {
      Collections.addAll(files, partition, "new");
      expected.add(partition + ":new");
    }

    bed.run(Overwrite.touched(), files.toArray(new String[0]));

    assertEquals(expected, bed.rows());
  }

  @Test
  void placesOutOfTheTableOrOfOtherJobsAreRefused() throws IOException {
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, bed.conf, null)) {
      TaskAttempt task = job.placement().attempt("0", bed.conf);
      assertThrows(IllegalArgumentException.class, () -> task.file("../other", "part-" + id));
      assertThrows(IllegalArgumentException.class, () -> task.file("k=1/.hidden", "part-" + id));
      assertThrows(IllegalArgumentException.class, () -> task.file("k=1", "_part-" + id));
      assertThrows(IllegalArgumentException.class, () -> task.file("k=1", "part-0"));
      assertThrows(IllegalArgumentException.class, () -> job.placement().attempt("1-2", bed.conf));
      job.abort();
    }
  }

  @Test
  void aFailedAttemptRemovesItsFilesAndNoOthers() throws IOException {
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, bed.conf, null)) {
      TaskAttempt failed = bed.attempt(job.placement(), id, "0", "k=1", "half");
      TaskAttempt repeated = bed.attempt(job.placement(), id, "1", "k=1", "whole");
      failed.abort();
      job.commit(new CommitPlan(repeated.commit(), Overwrite.nothing()));
    }
    assertEquals(rows("k=1:whole"), bed.rows());
    assertEquals(List.of(), bed.hidden());
  }

  @Test
  void aSpeculativeTwinAndAZombieStayOut() throws IOException {
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, bed.conf, null)) {
      TaskAttempt counts = bed.attempt(job.placement(), id, "0", "k=1", "a");
      bed.attempt(job.placement(), id, "1", "k=1", "a").commit();
      TaskAttempt zombie = job.placement().attempt("2", bed.conf);
      job.commit(new CommitPlan(counts.commit(), Overwrite.touched()));
      TableBed.fill(bed.fs, zombie, id, "k=1", "late");
      zombie.commit();
    }
    assertEquals(rows("k=1:a"), bed.rows());
  }

  @Test
  void filesAskedForButNotWrittenAreLeftOut() throws IOException {
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, bed.conf, null)) {
      TaskAttempt task = bed.attempt(job.placement(), id, "0", "k=1", "a");
      task.file("k=2", "part-00009-" + id);
      assertEquals(1, job.commit(new CommitPlan(task.commit(), Overwrite.nothing())).addedFiles());
    }
  }

  @Test
  void anInsertIntoThatCommitsAfterAnOverwriteHasListedIsKept() throws Exception {
    bed.put("k=1/old", "old");
    String overwrite = TableBed.newId();
    String insert = TableBed.newId();
    CountDownLatch listed = new CountDownLatch(1);
    Thread[] other = new Thread[1];
    try (DirectJob job = DirectJob.begin(bed.table, overwrite, bed.conf, null);
        DirectJob into = DirectJob.begin(bed.table, insert, bed.conf, null)) {
      List<PendingFile> added = bed.attempt(into.placement(), insert, "0", "k=1", "inserted").commit();
      other[0] = new Thread(() -> {
        try {
          listed.await();
          into.commit(new CommitPlan(added, Overwrite.nothing()));
        } catch (IOException | InterruptedException e) {
          throw new AssertionError(e);
        }
      });
      other[0].start();
      job.commit(new CommitPlan(bed.attempt(job.placement(), overwrite, "0", "k=1", "new").commit(), Overwrite.touched())
          .metastore(draft -> {
            listed.countDown();
            return null;
          }));
      other[0].join();
    }
    assertEquals(rows("k=1:inserted", "k=1:new"), bed.rows());
  }

  @Test
  void theLastOfManyOverwritesAtOnceWins() throws Exception {
    List<Thread> writers = new ArrayList<>();
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    for (int i = 0; i < 8; i++) {
      String row = "writer" + i;
      Thread writer = new Thread(() -> {
        try {
          bed.run(Overwrite.below(List.of("")), "k=1", row, "k=2", row);
        } catch (IOException | RuntimeException e) {
          failures.add(e);
        }
      });
      writers.add(writer);
      writer.start();
    }
    for (Thread writer : writers) {
      writer.join();
    }
    assertEquals(List.of(), failures);
    TreeSet<String> rows = bed.rows();
    assertEquals(2, rows.size(), rows::toString);
    assertEquals(rows.first().substring("k=1:".length()), rows.last().substring("k=2:".length()));
    assertEquals(List.of(), bed.hidden());
  }

  @Test
  void aRefusedCommitLeavesTheTableAsItWas() throws IOException {
    bed.put("k=1/old", "a");
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, bed.conf, null)) {
      CommitPlan plan = new CommitPlan(bed.attempt(job.placement(), id, "0", "k=1", "b").commit(), Overwrite.touched());
      IOException e = assertThrows(IOException.class, () -> job.commit(plan.metastore(draft -> {
        assertEquals(1, draft.added().get("k=1").files());
        assertEquals(1, draft.deleted().get("k=1").bytes());
        throw new IOException("too many partitions");
      })));
      assertEquals("too many partitions", e.getMessage());
      job.abort();
    }
    assertEquals(rows("k=1:a"), bed.rows());
    assertEquals(rows("k=1:c"), runOn(bed, Overwrite.touched(), "k=1", "c"));
  }

  private static Set<String> runOn(TableBed bed, Overwrite overwrite, String... files) throws IOException {
    bed.run(overwrite, files);
    return bed.rows();
  }

  @Test
  void aStoreThatTakesNoRecordLeavesTheJobToARecovery() throws IOException {
    bed.put("k=1/old", "a");
    String id = TableBed.newId();
    TableAccess table = bed.access(null);
    Store full = Mockito.mock(Store.class, AdditionalAnswers.delegatesTo(table.store()));
    Mockito.doAnswer(call -> {
      throw new IOException("No space left on device");
    }).when(full).create(Mockito.endsWith(".commit"), Mockito.any());
    try (DirectJob job = DirectJob.begin(table.through(full), id)) {
      CommitPlan plan = new CommitPlan(bed.attempt(job.placement(), id, "0", "k=1", "b").commit(), Overwrite.touched());
      IOException e = assertThrows(IOException.class, () -> job.commit(plan));
      assertTrue(e.getMessage().contains("not known"), e::getMessage);
      job.abort();
    }

    assertEquals(Verdict.ROLL_BACK, only(Recovery.recover(bed.table, bed.conf, null, Run.REAL)).verdict());

    assertEquals(rows("k=1:a"), bed.rows());
    assertEquals(List.of(), table.store().leftovers(id::equals));
  }

  @Test
  void aMetastoreThatIsDownIsToldLater() throws IOException {
    TableBed.Partitions metastore = new TableBed.Partitions();
    metastore.isDown = true;
    bed.put("k=1/old", "a");
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, bed.conf, metastore)) {
      CommitPlan plan = new CommitPlan(bed.attempt(job.placement(), id, "0", "k=2", "b").commit(), Overwrite.below(List.of("")));
      assertThrows(CommittedException.class, () -> job.commit(plan.metastore(TableBed::count)));
      job.abort();
    }
    assertEquals(rows("k=2:b"), bed.rows());
    IOException withoutMetastore = assertThrows(IOException.class, () -> DirectJob.begin(bed.table, TableBed.newId(), bed.conf, null));
    assertTrue(withoutMetastore.getMessage().contains("db.t"), withoutMetastore::getMessage);
    metastore.isDown = false;
    metastore.parameters.put("k=1", java.util.Map.of());

    DirectJob next = DirectJob.begin(bed.table, TableBed.newId(), bed.conf, metastore);
    next.abort();
    next.close();

    assertEquals("{k=2={numFiles=1}}", metastore.parameters.toString());
    assertEquals(rows("k=2:b"), bed.rows());
  }

  @Test
  void aJobThatGivesSignsOfLifeIsLeftAloneAndADeadOneIsRolledBack() throws Exception {
    TableBed shortLived = shortLease();
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(shortLived.table, id, shortLived.conf, null)) {
      shortLived.attempt(job.placement(), id, "0", "k=1", "a").commit();
      Thread.sleep(3 * shortLeaseMillis());
      assertEquals(Verdict.ALIVE, only(Recovery.recover(shortLived.table, shortLived.conf, null, Run.REAL)).verdict());
    }

    Finding dry = only(Recovery.recover(shortLived.table, shortLived.conf, null, Run.DRY));
    assertEquals(Verdict.ROLL_BACK, dry.verdict());
    assertEquals(id, dry.job());
    assertEquals(1, dry.steps().size());
    assertEquals(1, shortLived.access(null).store().leftovers(id::equals).size());
    Finding real = only(Recovery.recover(shortLived.table, shortLived.conf, null, Run.REAL));
    assertEquals(dry.steps(), real.steps());
    assertEquals(0, shortLived.access(null).store().leftovers(id::equals).size());
  }

  private static Finding only(List<Finding> findings) {
    assertEquals(1, findings.size(), findings::toString);
    return findings.get(0);
  }

  @Test
  void aJobThatSleptBeyondItsLeaseCannotCommitAfterItWasSettled() throws Exception {
    TableBed shortLived = shortLease();
    shortLived.put("k=1/old", "old");
    String id = TableBed.newId();
    Store store = Mockito.mock(Store.class, AdditionalAnswers.delegatesTo(shortLived.access(null).store()));
    Mockito.doThrow(new IOException("asleep")).when(store).replace(Mockito.anyString(), Mockito.any());
    TableAccess table = shortLived.access(null);
    DirectJob sleeper = DirectJob.begin(table.through(store), id);
    List<PendingFile> files = shortLived.attempt(sleeper.placement(), id, "0", "k=1", "late").commit();
    Thread.sleep(2 * shortLeaseMillis());
    assertEquals(rows("k=1:next"), runOn(shortLived, Overwrite.touched(), "k=1", "next"));

    assertThrows(IOException.class, () -> sleeper.commit(new CommitPlan(files, Overwrite.touched())));
    sleeper.abort();
    sleeper.close();

    assertEquals(rows("k=1:next"), shortLived.rows());
  }

  @Test
  void aCommitWaitsForTheTurnAndSaysWhoHasIt() throws Exception {
    TableBed impatient = with(WriteOptions.TURN_WAIT_MILLIS, 100);
    String holder = TableBed.newId();
    try (DirectJob first = DirectJob.begin(impatient.table, holder, impatient.conf, null)) {
      first.commit(new CommitPlan(List.of(), Overwrite.nothing()).metastore(draft -> {
        String message = assertThrows(IOException.class, () -> impatient.run(Overwrite.nothing(), "k=1", "a")).getMessage();
        assertTrue(message.contains(holder), message);
        return null;
      }));
    }
  }

  @Test
  void aLargeCommitIsDistributed() throws IOException {
    TableBed large = with(WriteOptions.DISTRIBUTE_FILES, 2);
    large.put("k=1/old1", "a");
    large.put("k=1/old2", "b");
    String id = TableBed.newId();
    int[] batches = {0};
    try (DirectJob job = DirectJob.begin(large.table, id, large.conf, null)) {
      job.commit(new CommitPlan(large.attempt(job.placement(), id, "0", "k=1", "c", "k=1", "d").commit(), Overwrite.touched())
          .distribution(all -> {
            for (ApplyBatch batch : all) {
              batches[0]++;
              batch.run(large.conf);
              batch.run(large.conf);
            }
          }));
    }
    assertEquals(2, batches[0]);
    assertEquals(rows("k=1:c", "k=1:d"), large.rows());
  }

  @Test
  void oldFilesThatOthersHaveWrittenAnewSurviveARollForward() throws IOException {
    bed.put("k=1/000000_0", "old");
    TableBed.Partitions metastore = new TableBed.Partitions();
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.access(metastore), id)) {
      CommitPlan plan = new CommitPlan(bed.attempt(job.placement(), id, "0", "k=1", "new").commit(), Overwrite.touched());
      assertThrows(CommittedException.class,
          () -> job.commit(plan.metastore(TableBed::count).listener((phase, done, total) -> {
            if (phase == CommitPlan.Phase.DELETE) {
              throw new IllegalStateException("stop before the old files are deleted");
            }
          })));
    }
    bed.put("k=1/000000_0", "by Hive, later");

    Recovery.recover(bed.table, bed.conf, metastore, Run.REAL);

    assertEquals(rows("k=1:by Hive, later", "k=1:new"), bed.rows());
  }

  @Test
  void unknownVisibilityAndFileSystemsAreErrors() throws IOException {
    Configuration conf = newConfiguration();
    conf.set(WriteOptions.VISIBILITY, "metastore-swap");
    assertThrows(IllegalArgumentException.class, () -> DirectJob.begin(bed.table, TableBed.newId(), conf, null));
    Configuration viewFs = new Configuration(false);
    viewFs.set("fs.viewfs.mounttable.default.link./data", "file:///tmp");
    assertTrue(DirectJob.whyNot(new Path("viewfs:///").getFileSystem(viewFs)).isPresent());
  }
}
