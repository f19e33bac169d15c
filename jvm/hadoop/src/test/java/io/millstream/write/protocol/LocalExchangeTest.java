package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.protocol.FaultyStore.Died;
import io.millstream.write.protocol.FaultyStore.Moment;
import io.millstream.write.protocol.FaultyStore.Watcher;
import io.millstream.write.protocol.Finding;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.recovery.Recovery;
import io.millstream.write.recovery.Recovery.Choices;
import io.millstream.write.store.Names;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.SwapDirectories;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Overwrites whose directories change places: whoever lists a partition, at any time, finds all of its old files or all of the new. */
class LocalExchangeTest {
  private static final String OTHER = "11111111-1111-1111-1111-111111111111";
  private static final Set<String> OLD_ROWS = rows("k=1:o1", "k=1:p1", "k=2:o2", "k=2:p2");
  private static final String[] FILES = {"k=1", "n1", "k=1", "m1", "k=3", "n3", "k=3", "m3"};
  private static final Statement DYNAMIC = new Statement(Overwrite.touched(), rows("k=1:n1", "k=1:m1", "k=2:o2", "k=2:p2", "k=3:n3", "k=3:m3"));
  private static final Statement STATIC = new Statement(Overwrite.below(List.of("")), rows("k=1:n1", "k=1:m1", "k=3:n3", "k=3:m3"));

  @TempDir Path directory;

  private int tables;

  private record Statement(Overwrite overwrite, Set<String> newRows) { }

  private static Set<String> rows(String... rows) {
    return new TreeSet<>(List.of(rows));
  }

  private static Set<String> ofPartition(Set<String> rows, String partition) {
    return rows.stream().filter(row -> row.startsWith(partition + ":")).collect(Collectors.toCollection(TreeSet::new));
  }

  /** A table with two partitions, in one of which are a mark and what another job has staged. */
  private final class Bed implements Metastore {
    final Statement statement;
    final Path root = directory.resolve("table" + tables++);
    final TestTable bed;
    final String id = TestTable.newId();
    final Map<String, String> catalog = new HashMap<>(Map.of("k=1", "2", "k=2", "2"));

    Bed(Statement statement) throws IOException {
      this.statement = statement;
      Configuration conf = new Configuration(false);
      conf.setBoolean(WriteOptions.SYNC, false);
      conf.setInt(WriteOptions.THREADS, 1);
      bed = new TestTable(new org.apache.hadoop.fs.Path("file://" + root), conf);
      for (String row : List.of("1", "2")) {
        put("k=" + row + "/old", "o" + row);
        put("k=" + row + "/older", "p" + row);
      }
      put("k=1/_SUCCESS", "");
      put("k=1/" + staged(), "more");
    }

    /** Not by Hadoop, which starts a process for each file that it creates. */
    void put(String file, String row) throws IOException {
      Path path = root.resolve(file);
      Files.createDirectories(path.getParent());
      Files.writeString(path, row);
    }

    static String staged() {
      return ".direct-" + OTHER + "-0.part";
    }

    Store store() throws IOException {
      return bed.access(this).store();
    }

    TableAccess through(Store store) throws IOException {
      return bed.access(this).through(store);
    }

    /** Each partition by itself is old or new; one that only loses files may lose them one by one. */
    void look() throws IOException {
      assertTrue(isWhole("k=1", Set.of("old", "older")) && isWhole("k=3", Set.of()), () -> "seen: " + names("k=1") + names("k=3"));
      boolean isEmptied = statement.overwrite == STATIC.overwrite;
      assertTrue(isEmptied ? Set.of("old", "older").containsAll(names("k=2")) : names("k=2").size() == 2, () -> "seen: " + names("k=2"));
    }

    private boolean isWhole(String partition, Set<String> old) {
      Set<String> found = names(partition);
      return found.equals(old) || found.size() == 2 && found.stream().allMatch(name -> name.contains(id));
    }

    private Set<String> names(String partition) {
      String[] found = root.resolve(partition).toFile().list();
      return found == null ? Set.of() : Stream.of(found).filter(name -> !Names.isHidden(name)).collect(Collectors.toSet());
    }

    void overwrite(Store store, String job, String... files) throws IOException {
      try (DirectJob begun = DirectJob.begin(through(store), job, "")) {
        TaskAttempt attempt = store.attempt(job, "0");
        for (int i = 0; i < files.length; i += 2) {
          Path file = Path.of(attempt.file(SwapDirectories.of(job, files[i]), "part-" + i + "-" + job).toUri().getPath());
          Files.createDirectories(file.getParent());
          Files.writeString(file, files[i + 1]);
        }
        try {
          begun.commit(new CommitPlan(attempt.commit(path -> true), statement.overwrite).metastore(this::change)
              .exchange(SwapDirectories::partition).distribution(batches -> run(batches)));
        } catch (IOException e) {
          begun.abort();
          throw e;
        }
      }
    }

    private void run(List<ApplyBatch> batches) throws IOException {
      for (ApplyBatch batch : batches) {
        batch.run(bed.conf);
      }
    }

    private MetastoreChange change(CommitDraft draft) {
      Map<String, Long> counts = new HashMap<>();
      draft.added().forEach((made, totals) -> counts.put(SwapDirectories.partition(made), totals.files()));
      List<MetastoreChange.Partition> partitions = counts.entrySet().stream()
          .map(e -> new MetastoreChange.Partition(e.getKey(), null, Map.of("numFiles", e.getValue().toString()))).toList();
      List<String> dropped = draft.deleted().keySet().stream().filter(partition -> !counts.containsKey(partition)).toList();
      return new MetastoreChange("db", "t", partitions, dropped, Map.of(), Set.of());
    }

    @Override
    public void apply(MetastoreChange change, Standing standing) {
      change.partitions().forEach(partition -> catalog.put(partition.name(), partition.parameters().get("numFiles")));
      change.droppedPartitions().forEach(catalog::remove);
    }

    @Override
    public MetastoreChange current(MetastoreChange change, org.apache.hadoop.fs.Path now) {
      return change;
    }

    @Override
    public Map<String, String> locations(String database, String table, java.util.Collection<String> partitions) {
      return Map.of();
    }

    /** Where it died; null if the job came to its end. */
    String dieAt(int step, Moment moment, Watcher watcher) throws IOException {
      FaultyStore store = new FaultyStore(store(), step, moment).watchedBy(watcher);
      try {
        overwrite(store, id, FILES);
      } catch (Died e) {
        // The test goes on.
      }
      store().begin(Journal.abandoned(id), Journal.NOTHING);
      return store.diedAt();
    }

    String recoverAndDieAt(int step, Watcher watcher) throws IOException {
      FaultyStore store = new FaultyStore(store(), step, Moment.AFTER).watchedBy(watcher);
      try {
        Recovery.recover(through(store), Choices.of(Run.REAL));
      } catch (Died e) {
        // The test goes on.
      }
      return store.diedAt();
    }

    /** All is old or all is new, and what is not of the job is where it was. */
    void check(String diedAt) throws IOException {
      boolean isNew = bed.rows().equals(statement.newRows);
      Set<String> expected = isNew ? statement.newRows : OLD_ROWS;
      assertEquals(expected, bed.rows(), diedAt);
      assertEquals(expected.stream().map(row -> row.substring(0, row.indexOf(':'))).collect(Collectors.toSet()), catalog.keySet(), diedAt);
      assertEquals(List.of(), store().leftovers("", id::equals), diedAt);
      assertTrue(Files.exists(root.resolve("k=1/_SUCCESS")), diedAt);
      assertEquals(List.of(), swaps(), diedAt);
    }

    List<String> swaps() throws IOException {
      try (Stream<Path> found = Files.list(root)) {
        return found.map(path -> path.getFileName().toString()).filter(SwapDirectories::isOne).toList();
      }
    }
  }

  private void dieAtEveryStep(Statement statement) throws IOException {
    for (Moment moment : Moment.values()) {
      Set<String> seen = new TreeSet<>();
      for (int step = 1; ; step++) {
        Bed bed = new Bed(statement);
        String diedAt = bed.dieAt(step, moment, bed::look);
        bed.look();
        if (diedAt == null) {
          bed.check("not at all");
          break;
        }
        bed.recoverAndDieAt(Integer.MAX_VALUE, bed::look);
        bed.check(diedAt);
        seen.add(bed.bed.rows().equals(OLD_ROWS) ? "old" : "new");
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

  @Tag("slow")
  @Test
  void whoRecoversMayDieToo() throws IOException {
    for (int step = 1; ; step++) {
      String diedAt = null;
      for (int recoveryStep = 1; ; recoveryStep++) {
        Bed bed = new Bed(STATIC);
        diedAt = bed.dieAt(step, Moment.AFTER, bed::look);
        String recoveryDiedAt = diedAt == null ? null : bed.recoverAndDieAt(recoveryStep, bed::look);
        if (recoveryDiedAt == null) {
          break;
        }
        bed.recoverAndDieAt(Integer.MAX_VALUE, bed::look);
        bed.check(diedAt + ", then " + recoveryDiedAt);
      }
      if (diedAt == null) {
        return;
      }
    }
  }

  /** It sleeps after one of its steps, is settled, another overwrites, and it goes on. */
  @Test
  void whoWakesUpAtAnyStepDoesNoHarm() throws IOException {
    Set<String> next = rows("k=1:x1", "k=3:x3");
    // Its first step is before it has begun.
    for (int step = 2; ; step++) {
      Bed bed = new Bed(STATIC);
      AtomicInteger steps = new AtomicInteger();
      int sleepsAfter = step;
      try {
        bed.overwrite(new FaultyStore(bed.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
          if (steps.incrementAndGet() == sleepsAfter) {
            bed.store().begin(Journal.abandoned(bed.id), Journal.NOTHING);
            bed.overwrite(bed.store(), TestTable.newId(), "k=1", "x1", "k=3", "x3");
          }
        }), bed.id, FILES);
      } catch (IOException e) {
        // Or it finds its commit finished.
      }
      if (steps.get() < step) {
        return;
      }
      Recovery.recover(bed.through(bed.store()), Choices.of(Run.REAL));
      assertEquals(next, bed.bed.rows(), "after step " + step);
      assertEquals(List.of(), bed.swaps());
    }
  }

  @Test
  void whatOthersPutThereAfterTheListStays() throws IOException {
    for (int step = 1; ; step++) {
      Bed bed = new Bed(DYNAMIC);
      AtomicInteger steps = new AtomicInteger();
      int comesAfter = step;
      boolean[] isLate = {false};
      bed.overwrite(new FaultyStore(bed.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
        if (steps.incrementAndGet() == comesAfter) {
          isLate[0] = bed.store().read(Journal.commit(bed.id)) != null;
          bed.put("k=1/late", "late");
        }
      }), bed.id, FILES);
      if (steps.get() < step) {
        return;
      }
      if (isLate[0]) {
        assertEquals(rows("k=1:late", "k=1:n1", "k=1:m1"), ofPartition(bed.bed.rows(), "k=1"), "after step " + step);
      }
      assertEquals("more", Files.readString(bed.root.resolve("k=1").resolve(Bed.staged())));
    }
  }

  /** What programs do that do not know the journal. */
  private enum Foreign {
    OVERWRITE, OVERWRITE_OF_THE_NEW, INSERT_INTO, DROP_PARTITION, DROP_TABLE;

    void happen(Bed bed) throws IOException {
      switch (this) {
        case OVERWRITE -> {
          delete(bed.root.resolve("k=1"));
          bed.put("k=1/foreign", "f");
        }
        case OVERWRITE_OF_THE_NEW -> {
          delete(bed.root.resolve("k=3"));
          bed.put("k=3/foreign", "f");
        }
        case INSERT_INTO -> bed.put("k=1/foreign", "f");
        case DROP_PARTITION -> delete(bed.root.resolve("k=1"));
        case DROP_TABLE -> delete(bed.root);
      }
    }

    private static void delete(Path directory) throws IOException {
      if (Files.exists(directory)) {
        org.apache.hadoop.fs.FileUtil.fullyDelete(directory.toFile());
      }
    }

    Set<String> after(Set<String> rows) {
      Set<String> after = new TreeSet<>(rows);
      String overwritten = this == OVERWRITE_OF_THE_NEW ? "k=3" : "k=1";
      after.removeIf(row -> this == DROP_TABLE || this != INSERT_INTO && row.startsWith(overwritten));
      if (this != DROP_PARTITION && this != DROP_TABLE) {
        after.add(overwritten + ":f");
      }
      return after;
    }
  }

  /** One overwrite with a foreign writer after one of its steps; what it came to, null if it had not so many. */
  private String comeAfter(int step, Foreign foreign) throws IOException {
    Bed bed = new Bed(DYNAMIC);
    bed.bed.conf.setInt(WriteOptions.HELP_AFTER_MILLIS, 0);
    AtomicInteger steps = new AtomicInteger();
    String error = null;
    try {
      bed.overwrite(new FaultyStore(bed.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
        if (steps.incrementAndGet() == step) {
          foreign.happen(bed);
        }
      }), bed.id, FILES);
    } catch (IOException e) {
      error = e.getMessage();
    }
    if (steps.get() < step) {
      return null;
    }
    Set<String> found = bed.bed.rows();
    String where = foreign + " after step " + step + ": " + error + ", " + found;
    // One after the other, in either order.
    Set<String> first = foreign.after(OLD_ROWS);
    first.removeIf(row -> !row.startsWith("k=2:"));
    first.addAll(rows("k=1:n1", "k=1:m1", "k=3:n3", "k=3:m3"));
    assertTrue(error != null || first.equals(found) || foreign.after(DYNAMIC.newRows).equals(found), where);
    assertTrue(error == null || !error.contains("nothing is written") || found.stream().noneMatch(row -> row.contains(":n") || row.contains(":m")), where);
    try {
      Recovery.recover(bed.through(bed.store()), Choices.of(Run.REAL));
    } catch (IOException e) {
      assertTrue(e.getMessage().contains("--accept-loss"), () -> where + ", then " + e.getMessage());
      Recovery.recover(bed.through(bed.store()), new Choices(Run.REAL, true, Recovery.Superseded.KEEP));
    }
    Set<String> recovered = bed.bed.rows();
    assertTrue(!recovered.containsAll(rows("k=1:o1", "k=1:n1")), () -> where + ", then " + recovered);
    recovered.removeIf(row -> row.startsWith("k=1:"));
    recovered.add("k=1:next");
    bed.overwrite(bed.store(), TestTable.newId(), "k=1", "next");
    assertEquals(recovered, bed.bed.rows(), where);
    return error == null ? "both" : "error";
  }

  @Test
  void foreignWriters() throws IOException {
    for (Foreign foreign : Foreign.values()) {
      Set<String> outcomes = new TreeSet<>();
      String outcome;
      for (int step = 1; (outcome = comeAfter(step, foreign)) != null; step++) {
        outcomes.add(outcome);
      }
      assertTrue(outcomes.contains("both"), () -> foreign + " " + outcomes);
    }
  }

  @Test
  void whatIsGivenUpIsListed() throws IOException {
    Bed bed = new Bed(DYNAMIC);
    FaultyStore store = new FaultyStore(bed.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
      if (bed.store().read(Journal.published(bed.id)) != null) {
        throw new Died();
      }
    });
    assertThrows(Died.class, () -> bed.overwrite(store, bed.id, FILES));
    bed.store().begin(Journal.abandoned(bed.id), Journal.NOTHING);
    // Not to be exchanged, and nothing can be moved there.
    Foreign.delete(bed.root.resolve("k=3"));
    Files.writeString(bed.root.resolve("k=3"), "a file in its place");

    IOException stuck = assertThrows(IOException.class, () -> Recovery.recover(bed.through(bed.store()), Choices.of(Run.REAL)));
    List<Finding> findings = Recovery.recover(bed.through(bed.store()), new Choices(Run.REAL, true, Recovery.Superseded.KEEP));

    assertTrue(stuck.getMessage().contains("--accept-loss"), stuck::getMessage);
    assertEquals(List.of(Verdict.LOST), findings.stream().map(Finding::verdict).toList());
    List<String> lost = findings.get(0).steps().stream().filter(line -> line.startsWith("lost k=3/") && line.contains("which no reader finds")).toList();
    assertEquals(2, lost.size(), findings::toString);
    bed.overwrite(bed.store(), TestTable.newId(), "k=1", "next");
    assertEquals(rows("k=1:next"), ofPartition(bed.bed.rows(), "k=1"));
  }

  @Test
  void checksumsGoWithTheirFiles() throws IOException {
    Bed bed = new Bed(DYNAMIC);
    for (String name : List.of("old", "late")) {
      bed.bed.put("k=1/" + name, name);
    }
    Store store = new FaultyStore(bed.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
      if (bed.store().read(Journal.published(bed.id)) != null && bed.bed.rows().contains("k=1:late")) {
        bed.bed.put("k=1/late", "later");
      }
    });
    assertThrows(SupersededException.class, () -> bed.overwrite(store, bed.id, FILES));

    try (Stream<Path> files = Files.list(bed.root.resolve("k=1"))) {
      assertEquals(Set.of(".late.crc"), files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(".crc")).collect(Collectors.toSet()));
    }
    assertEquals(rows("k=1:later", "k=1:n1", "k=1:m1"), ofPartition(bed.bed.rows(), "k=1"));
  }

  @Test
  void oldFilesThatOthersHaveWrittenAnewStay() throws IOException {
    Bed bed = new Bed(DYNAMIC);
    Store store = new FaultyStore(bed.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
      if (bed.store().read(Journal.published(bed.id)) != null && Files.exists(bed.root.resolve("k=1/old"))) {
        bed.bed.put("k=1/old", "written anew");
      }
    });
    assertThrows(SupersededException.class, () -> bed.overwrite(store, bed.id, FILES));

    assertEquals(rows("k=1:written anew", "k=1:n1", "k=1:m1"), ofPartition(bed.bed.rows(), "k=1"));
  }

  /** Its files are for a moment in a directory that has lost its place: it must not take them for never written. */
  @Test
  void anAttemptOfAnotherJobThatEndsMeanwhileFindsItsFiles() throws Exception {
    for (int step = 1; ; step++) {
      Bed bed = new Bed(DYNAMIC);
      String other = TestTable.newId();
      try (DirectJob insert = DirectJob.begin(bed.bed.access(bed), other, "")) {
        TaskAttempt attempt = bed.bed.attempt(insert.placement(), other, "0", "k=1", "inserted");
        FutureTask<List<StagedFile>> ends = new FutureTask<>(() -> attempt.commit(path -> true));
        AtomicInteger steps = new AtomicInteger();
        int endsAfter = step;
        bed.overwrite(new FaultyStore(bed.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
          if (steps.incrementAndGet() == endsAfter) {
            new Thread(ends).start();
            pause();
          }
        }), bed.id, FILES);
        if (steps.get() < step) {
          return;
        }
        insert.commit(new CommitPlan(ends.get(), Overwrite.nothing()));
      }
      assertEquals(rows("k=1:inserted", "k=1:n1", "k=1:m1"), ofPartition(bed.bed.rows(), "k=1"), "after step " + step);
    }
  }

  private static void pause() throws IOException {
    io.millstream.write.store.Pause.sleep(10);
  }

  @Test
  void anAttemptDoesNotWaitForeverForWhoHasDied() throws IOException {
    Bed bed = new Bed(DYNAMIC);
    bed.bed.conf.setLong(WriteOptions.LEASE_MILLIS, 50);
    Files.createDirectories(bed.root.resolve(SwapDirectories.of(OTHER, "k=1")));
    bed.store().begin(Journal.begin(bed.id), new Journal.Begin("owner", 50, "").toBytes());
    TaskAttempt attempt = bed.store().attempt(bed.id, "0");
    attempt.file("k=1", "never-" + bed.id);
    assertEquals(List.of(), attempt.commit(path -> !path.getName().contains("never")));

    org.apache.hadoop.fs.Path file = attempt.file("k=1", "displaced-" + bed.id);
    Files.writeString(bed.root.resolve(SwapDirectories.of(OTHER, "k=1")).resolve(file.getName()), "row");

    assertThrows(IOException.class, () -> attempt.commit(path -> !path.getName().contains("never")));
  }

  @Test
  void aLargeCommitIsDoneInParts() throws IOException {
    Bed bed = new Bed(STATIC);
    bed.bed.conf.setInt(WriteOptions.DISTRIBUTE_FILES, 1);

    bed.overwrite(bed.store(), bed.id, FILES);

    bed.check("in parts");
    assertEquals(STATIC.newRows, bed.bed.rows());
  }

  /** Another process that is at the point of exchanging the same directories. */
  @Test
  void whoHoldsTheTokenIsWaitedFor() throws IOException {
    Bed bed = new Bed(DYNAMIC);
    Path held = directory.resolve("held");
    Path released = directory.resolve("released");
    Process[] holder = {null};
    bed.overwrite(new FaultyStore(bed.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
      if (holder[0] == null && bed.store().read(Journal.commit(bed.id)) != null) {
        String token = bed.root.resolve(Store.JOURNAL).resolve(Journal.begin(bed.id)).toString();
        holder[0] = new ProcessBuilder("flock", token, "sh", "-c", "touch " + held + "; sleep 0.3; touch " + released).start();
        while (!Files.exists(held)) {
          pause();
        }
      }
    }), bed.id, FILES);

    assertTrue(Files.exists(released));
    bed.check("after the wait");
  }

  @Test
  void aDirectoryKeepsItsPermissions() throws IOException {
    Bed bed = new Bed(DYNAMIC);
    Files.setPosixFilePermissions(bed.root.resolve("k=1"), PosixFilePermissions.fromString("rwxr-x---"));

    bed.overwrite(bed.store(), bed.id, FILES);

    assertEquals("rwxr-x---", PosixFilePermissions.toString(Files.getPosixFilePermissions(bed.root.resolve("k=1"))));
  }

  /** Where something leads to elsewhere files are moved one by one, and no row is lost then. */
  @Test
  void placesThatCannotBeExchangedGetTheirFilesAllTheSame() throws IOException {
    for (String odd : List.of("directory", "link")) {
      for (int step = 1; ; step++) {
        Bed bed = new Bed(STATIC);
        Path place = bed.root.resolve("k=1");
        if (odd.equals("link")) {
          Files.move(place, bed.root.resolveSibling(bed.root.getFileName() + "-elsewhere"));
          Files.createSymbolicLink(place, bed.root.resolveSibling(bed.root.getFileName() + "-elsewhere"));
        } else {
          bed.put("k=1/below/old", "deep");
        }
        String diedAt = bed.dieAt(step, Moment.AFTER, () -> { });
        if (diedAt != null) {
          bed.recoverAndDieAt(Integer.MAX_VALUE, () -> { });
        }
        Set<String> rows = bed.bed.rows();
        rows.remove("k=1/below:deep");
        assertTrue(rows.equals(STATIC.newRows) || diedAt != null && rows.equals(OLD_ROWS), diedAt + ": " + rows);
        assertEquals(rows.equals(OLD_ROWS) && odd.equals("directory"), bed.bed.rows().contains("k=1/below:deep"), diedAt);
        assertEquals(odd.equals("link"), Files.isSymbolicLink(place));
        assertEquals(List.of(), bed.swaps());
        if (diedAt == null) {
          break;
        }
      }
    }
  }

  /** Nobody could finish it. */
  @Test
  void aPlaceOnAnotherFileSystemRefusesTheCommit() throws IOException {
    Bed bed = new Bed(DYNAMIC);
    Path another = Files.createTempDirectory(Path.of("/dev/shm"), "millstream");
    try {
      Files.createSymbolicLink(bed.root.resolve("k=3"), another);

      IOException refused = assertThrows(IOException.class, () -> bed.overwrite(bed.store(), bed.id, FILES));

      assertEquals(false, refused instanceof CommittedException, refused::toString);
      bed.check("after the abort");
      assertEquals(OLD_ROWS, bed.bed.rows());
    } finally {
      Files.delete(another);
    }
  }

  @Test
  void whatARecoveryWouldDoIsSaid() throws IOException {
    Bed dying = new Bed(DYNAMIC);
    FaultyStore store = new FaultyStore(dying.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
      if (dying.store().read(Journal.commit(dying.id)) != null) {
        throw new Died();
      }
    });
    assertThrows(Died.class, () -> dying.overwrite(store, dying.id, FILES));
    dying.store().begin(Journal.abandoned(dying.id), Journal.NOTHING);

    Finding dry = Recovery.recover(dying.through(dying.store()), Choices.of(Run.DRY)).get(0);

    assertEquals(Verdict.ROLL_FORWARD, dry.verdict());
    assertTrue(dry.steps().contains("exchange .swap-" + dying.id + "/k=1 and k=1"), dry::toString);
    dying.look();
  }

  @Test
  void whetherDirectoriesCanBeExchangedIsTriedOut() throws IOException {
    Bed bed = new Bed(DYNAMIC);
    Configuration viewFs = new Configuration(false);
    viewFs.set("fs.viewfs.mounttable.default.link./data", "file:///tmp");

    assertEquals(java.util.Optional.empty(), DirectJob.whyNoExchange(bed.bed.table, bed.bed.conf));
    assertTrue(DirectJob.whyNoExchange(new org.apache.hadoop.fs.Path("viewfs:///data"), viewFs).isPresent());
    assertEquals(List.of(), bed.store().journal());
  }
}
