package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.protocol.FaultyStore.Died;
import io.millstream.write.protocol.FaultyStore.Moment;
import io.millstream.write.protocol.Finding;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.recovery.Recovery;
import io.millstream.write.recovery.Recovery.Choices;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.SwapDirectories;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Overwrites that one change of the catalog makes visible: no reader that asks the catalog ever sees anything but old or new rows. */
abstract class SwapContract {
  /** A directory that no other has. */
  abstract Path newTable() throws IOException;

  /** What the file system needs. */
  abstract Configuration newConfiguration();

  /** Of which of a job's steps a foreign writer comes after one, where all of them would take too long. */
  int stride() {
    return 1;
  }

  /** A statement on {@code k=1:o1} and {@code k=2:o2}, or on one row without partitions. */
  private record Statement(Overwrite overwrite, List<String> old, List<String> files, Set<String> newRows) {
    Set<String> oldRows() {
      Set<String> rows = new TreeSet<>();
      for (int i = 0; i < old.size(); i += 2) {
        rows.add(old.get(i) + ":" + old.get(i + 1));
      }
      return rows;
    }
  }

  private static final List<String> TWO = List.of("k=1", "o1", "k=2", "o2");
  private static final Statement DYNAMIC =
      new Statement(Overwrite.touched(), TWO, List.of("k=1", "n1", "k=3", "n3"), rows("k=1:n1", "k=2:o2", "k=3:n3"));
  private static final Statement STATIC =
      new Statement(Overwrite.below(List.of("")), TWO, List.of("k=1", "n1", "k=3", "n3"), rows("k=1:n1", "k=3:n3"));
  private static final Statement WHOLE = new Statement(Overwrite.below(List.of("")), List.of("", "o"), List.of("", "n"), rows(":n"));

  private static Set<String> rows(String... rows) {
    return new TreeSet<>(List.of(rows));
  }

  private SwapTable newBed(Statement statement) throws IOException {
    return newBed(statement, 600_000);
  }

  private SwapTable newBed(Statement statement, long keepMillis) throws IOException {
    Configuration conf = newConfiguration();
    conf.setBoolean(WriteOptions.SYNC, false);
    conf.setInt(WriteOptions.THREADS, 1);
    conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, keepMillis);
    SwapTable bed = new SwapTable(newTable(), conf);
    for (int i = 0; i < statement.old.size(); i += 2) {
      bed.put(statement.old.get(i), statement.old.get(i + 1));
    }
    bed.allow(statement.oldRows(), statement.newRows);
    return bed;
  }

  private static void overwrite(SwapTable bed, Store store, String id, Statement statement) throws IOException {
    try (DirectJob job = DirectJob.begin(bed.through(store), id, "")) {
      TaskAttempt attempt = store.attempt(id, "0");
      List<String> files = new ArrayList<>(statement.files);
      for (int i = 0; i < files.size(); i += 2) {
        files.set(i, SwapDirectories.of(id, files.get(i)));
      }
      bed.bed.fill(attempt, id, files.toArray(new String[0]));
      job.commit(bed.plan(id, attempt.commit(path -> true), statement.overwrite));
    }
  }

  private static void overwrite(SwapTable bed, Statement statement) throws IOException {
    overwrite(bed, store(bed), TestTable.newId(), statement);
  }

  private static Store store(SwapTable bed) throws IOException {
    return bed.bed.access(bed).store();
  }

  private static String dieAt(SwapTable bed, String id, Statement statement, int step, Moment moment) throws IOException {
    FaultyStore store = new FaultyStore(store(bed), step, moment).watchedBy(bed::look);
    try {
      overwrite(bed, store, id, statement);
    } catch (Died e) {
      // The test goes on.
    }
    store(bed).begin(Journal.abandoned(id), Journal.NOTHING);
    return store.diedAt();
  }

  private static String recoverAndDieAt(SwapTable bed, int step, Moment moment) throws IOException {
    FaultyStore store = new FaultyStore(store(bed), step, moment).watchedBy(bed::look);
    try {
      Recovery.recover(bed.through(store), Choices.of(Run.REAL));
    } catch (Died e) {
      // The test goes on.
    }
    return store.diedAt();
  }

  private static void checkSettled(SwapTable bed, String id, String diedAt) throws IOException {
    bed.look();
    bed.checkAll("after the recovery from a death " + diedAt);
    assertEquals(List.of(), store(bed).leftovers("", id::equals), diedAt);
    bed.bed.conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, 0);
    recoverUntilNothingIsKept(bed);
    assertEquals(Set.of(), bed.lost(), diedAt);
  }

  /** A store's clock may show whole seconds, and what is kept for no time is kept until it shows another. */
  private static void recoverUntilNothingIsKept(SwapTable bed) throws IOException {
    for (int tries = 0; store(bed).journal().stream().anyMatch(e -> e.name().endsWith(".replaced")) && tries < 200; tries++) {
      pause();
      Recovery.recover(bed.through(store(bed)), Choices.of(Run.REAL));
    }
  }

  private static void pause() {
    try {
      Thread.sleep(20);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private void dieAtEveryStep(Statement statement) throws IOException {
    for (Moment moment : Moment.values()) {
      Set<String> seen = new TreeSet<>();
      for (int step = 1; ; step++) {
        SwapTable bed = newBed(statement);
        String id = TestTable.newId();
        String diedAt = dieAt(bed, id, statement, step, moment);
        bed.look();
        bed.checkAll("before the recovery from a death " + diedAt);
        if (diedAt == null) {
          break;
        }
        recoverAndDieAt(bed, Integer.MAX_VALUE, moment);
        checkSettled(bed, id, diedAt);
        seen.add(bed.rows().equals(statement.newRows) ? "new" : "old");
      }
      assertEquals(Set.of("old", "new"), seen, moment::toString);
    }
  }

  @Test
  void dynamicPartitions() throws IOException {
    dieAtEveryStep(DYNAMIC);
  }

  @Test
  void allPartitions() throws IOException {
    dieAtEveryStep(STATIC);
  }

  @Test
  void aTableWithoutPartitions() throws IOException {
    dieAtEveryStep(WHOLE);
  }

  @Tag("slow")
  @Test
  void whoRecoversMayDieToo() throws IOException {
    for (int step = 1; ; step++) {
      String diedAt = null;
      for (int recoveryStep = 1; ; recoveryStep++) {
        SwapTable bed = newBed(STATIC);
        String id = TestTable.newId();
        diedAt = dieAt(bed, id, STATIC, step, Moment.AFTER);
        String recoveryDiedAt = diedAt == null ? null : recoverAndDieAt(bed, recoveryStep, Moment.AFTER);
        if (recoveryDiedAt == null) {
          break;
        }
        recoverAndDieAt(bed, Integer.MAX_VALUE, Moment.AFTER);
        checkSettled(bed, id, diedAt + ", then " + recoveryDiedAt);
      }
      if (diedAt == null) {
        return;
      }
    }
  }

  @Test
  void whatIsReplacedStaysForThoseWhoHaveFoundItAndThenGoes() throws IOException {
    SwapTable bed = newBed(STATIC);
    bed.look();
    overwrite(bed, STATIC);
    assertEquals(STATIC.newRows, bed.rows());
    assertEquals(List.of(), Recovery.recover(bed.through(store(bed)), Choices.of(Run.REAL)));
    bed.checkAll("later");
    bed.bed.conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, 0);
    pause();

    Finding dry = Recovery.recover(bed.through(store(bed)), Choices.of(Run.DRY)).get(0);

    assertEquals(Verdict.REMOVE_REPLACED, dry.verdict());
    assertEquals(2, dry.steps().size(), dry::toString);
    checkSettled(bed, TestTable.newId(), "");
    assertEquals(List.of(), store(bed).journal().stream().filter(e -> !e.name().startsWith("done-")).toList());
  }

  @Test
  void withoutATimeToStayItGoesWithTheCommit() throws IOException {
    SwapTable bed = newBed(DYNAMIC, 0);

    overwrite(bed, DYNAMIC);

    assertEquals(DYNAMIC.newRows, bed.rows());
    assertEquals(Set.of(), bed.lost());
    assertEquals(List.of(), store(bed).journal().stream().filter(e -> !e.name().startsWith("done-")).toList());
  }

  @Test
  void whatSomebodyHasPutBackStays() throws IOException {
    SwapTable bed = newBed(STATIC);
    overwrite(bed, STATIC);
    bed.catalog.put("k=1", new Path(bed.bed.table, "k=1").toString());
    bed.bed.conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, 0);

    recoverUntilNothingIsKept(bed);

    assertEquals(rows("k=1:o1", "k=3:n3"), bed.rows());
    assertThrows(IOException.class, () -> bed.bed.fs.getFileStatus(new Path(bed.bed.table, "k=2/old")));
  }

  @Test
  void whatSomebodyHasPutBackStaysInItsDirectoriesToo() throws IOException {
    SwapTable bed = newBed(STATIC);
    Path deep = new Path(bed.bed.table, "k=1/deep/old");
    bed.bed.write(deep, "o");
    overwrite(bed, STATIC);
    bed.catalog.put("k=1", new Path(bed.bed.table, "k=1").toString());
    bed.bed.conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, 0);

    recoverUntilNothingIsKept(bed);

    assertEquals(1, bed.bed.fs.getFileStatus(deep).getLen());
  }

  @Test
  void whatATableHasWhoseNameAnotherHasGotStays() throws IOException {
    for (int step = 1; ; step++) {
      SwapTable bed = newBed(STATIC);
      String diedAt = dieAt(bed, TestTable.newId(), STATIC, step, Moment.AFTER);
      if (diedAt == null) {
        return;
      }
      boolean isKept = store(bed).journal().stream().anyMatch(e -> e.name().endsWith(".replaced"));
      bed.isOfAnother = true;
      bed.bed.conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, 0);

      boolean isRefused = false;
      for (int tries = 0; tries < (isKept ? 200 : 2) && !isRefused; tries++) {
        pause();
        try {
          recoverAndDieAt(bed, Integer.MAX_VALUE, Moment.AFTER);
        } catch (IOException e) {
          assertTrue(e.getMessage().contains("db.t is gone, renamed or another table"), e::getMessage);
          isRefused = true;
        }
        bed.look();
      }
      assertEquals(isKept, isRefused, diedAt);
      try (DirectJob next = DirectJob.begin(bed.through(store(bed)), TestTable.newId(), "")) {
        next.abort();
      }
      bed.look();
    }
  }

  @Test
  void whoseJobHasEndedSinceItWasTakenForDeadKeepsWhatItHasWritten() throws IOException {
    SwapTable bed = newBed(STATIC, 0);
    String id = TestTable.newId();
    overwrite(bed, store(bed), id, STATIC);

    Finding finding = new Resolution(bed.through(store(bed))).resolve(id);

    assertEquals(Verdict.ALIVE, finding.verdict());
    assertEquals(STATIC.newRows, bed.rows());
  }

  @Test
  void replacedRowsDoNotComeBackWithAPartitionThatWasDropped() throws IOException {
    SwapTable bed = newBed(DYNAMIC);
    overwrite(bed, DYNAMIC);
    bed.catalog.remove("k=1");
    String id = TestTable.newId();

    try (DirectJob job = DirectJob.begin(bed.bed.access(bed), id, "")) {
      List<StagedFile> files = bed.bed.attempt(job.placement(), id, "0", "k=1", "again").commit(path -> true);
      job.commit(new CommitPlan(files, Overwrite.nothing()).survey(touched -> new CommitPlan.Found(touched, touched, false)));
    }
    bed.catalog.put("k=1", new Path(bed.bed.table, "k=1").toString());

    assertEquals(rows("k=1:again", "k=2:o2", "k=3:n3"), bed.rows());
  }

  @Test
  void aSecondSwapReplacesTheFirst() throws IOException {
    SwapTable bed = newBed(WHOLE);
    overwrite(bed, WHOLE);
    Path moved = new Path(bed.catalog.get(""));
    assertEquals(bed.bed.table, SwapDirectories.home(moved));
    bed.allow(rows(":n"), rows(":n2"));

    overwrite(bed, new Statement(Overwrite.below(List.of("")), List.of("", "n"), List.of("", "n2"), rows(":n2")));

    assertEquals(rows(":n2"), bed.rows());
    checkSettled(bed, TestTable.newId(), "");
  }

  @Test
  void filesOutsideOfTheTableAreReplacedToo() throws IOException {
    SwapTable bed = newBed(DYNAMIC);
    Path outside = new Path(bed.bed.table.getParent(), bed.bed.table.getName() + "-outside");
    bed.bed.write(new Path(outside, "old"), "o1");
    bed.catalog.put("k=1", outside.toString());
    bed.bed.fs.delete(new Path(bed.bed.table, "k=1"), true);

    overwrite(bed, DYNAMIC);

    assertEquals(DYNAMIC.newRows, bed.rows());
    checkSettled(bed, TestTable.newId(), "");
    assertThrows(IOException.class, () -> bed.bed.fs.getFileStatus(new Path(outside, "old")));
  }

  /** What programs do that do not know the journal, where the catalog has the partition just then. */
  private enum Foreign {
    OVERWRITE, INSERT_INTO, DROP_PARTITION;

    void happen(SwapTable bed) throws IOException {
      String location = bed.catalog.get("k=1");
      Path directory = location == null ? new Path(bed.bed.table, "k=1") : new Path(location);
      if (this != INSERT_INTO) {
        bed.bed.fs.delete(directory, true);
      }
      if (this == DROP_PARTITION) {
        bed.catalog.remove("k=1");
      } else {
        bed.bed.write(new Path(directory, "foreign"), "f");
        bed.catalog.putIfAbsent("k=1", directory.toString());
      }
    }

    /** The rows after both, in either order. */
    Set<Set<String>> orders() {
      Set<String> after = new TreeSet<>(DYNAMIC.newRows);
      if (this != INSERT_INTO) {
        after.removeIf(row -> row.startsWith("k=1:"));
      }
      if (this != DROP_PARTITION) {
        after.add("k=1:f");
      }
      return Set.of(DYNAMIC.newRows, after);
    }
  }

  /** One job with a foreign writer after one of its steps; whether it had so many. */
  private boolean comeAfter(int step, Foreign foreign) throws IOException {
    SwapTable bed = newBed(DYNAMIC);
    bed.bed.conf.setInt(WriteOptions.HELP_AFTER_MILLIS, 0);
    bed.allowAnything();
    int[] steps = {0};
    FaultyStore store = new FaultyStore(store(bed), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
      if (++steps[0] == step) {
        foreign.happen(bed);
      }
    });
    String error = null;
    try {
      overwrite(bed, store, TestTable.newId(), DYNAMIC);
    } catch (IOException e) {
      error = e.getMessage();
    }
    if (steps[0] < step) {
      return false;
    }
    String where = foreign + " after step " + step + ": " + error + ", " + bed.rows();
    assertTrue(error != null || foreign.orders().contains(bed.rows()), where);
    assertTrue(error == null || !error.contains("nothing is written") || !bed.rows().contains("k=1:n1"), where);
    try {
      Recovery.recover(bed.through(store(bed)), Choices.of(Run.REAL));
    } catch (IOException e) {
      assertTrue(e.getMessage().contains("--accept-loss"), () -> where + ", then " + e.getMessage());
      Recovery.recover(bed.through(store(bed)), new Choices(Run.REAL, true, Recovery.Superseded.KEEP));
    }
    assertTrue(!bed.rows().containsAll(rows("k=1:o1", "k=1:n1")), where);
    Statement next = new Statement(Overwrite.touched(), List.of(), List.of("k=1", "next"), Set.of());
    overwrite(bed, next);
    assertEquals(Set.of("k=1:next"), bed.rows().stream().filter(row -> row.startsWith("k=1:")).collect(Collectors.toSet()), where);
    return true;
  }

  @Test
  void foreignWriters() throws IOException {
    for (Foreign foreign : Foreign.values()) {
      // Each assertion names its step.
      int step = ThreadLocalRandom.current().nextInt(stride()) + 1;
      while (comeAfter(step, foreign)) {
        step += stride();
      }
      assertTrue(step > 10, "there are steps");
    }
  }
}
