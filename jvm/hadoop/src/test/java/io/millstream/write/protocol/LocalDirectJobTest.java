package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.protocol.Finding;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.recovery.Recovery;
import io.millstream.write.recovery.Recovery.Choices;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mockito.AdditionalAnswers;
import org.mockito.InOrder;
import org.mockito.Mockito;

class LocalDirectJobTest extends DirectJobContract {
  @TempDir java.nio.file.Path directory;

  @Override
  Path newTable() {
    return new Path("file://" + directory + "/table");
  }

  @Override
  Configuration newConfiguration() {
    return new Configuration(false);
  }

  @Override
  int shortLeaseMillis() {
    return 150;
  }

  @Override
  boolean hasDirectories() {
    return true;
  }

  @Override
  List<String> oddNames() {
    return List.of("a:b", "a b", "a%b", "a#?");
  }

  /** Hadoop reads such files, and does not write them. */
  @Override
  void putOdd(String relative, String name) throws IOException {
    java.nio.file.Path file = directory.resolve("table").resolve(relative).resolve(name);
    Files.createDirectories(file.getParent());
    Files.writeString(file, "old");
  }

  /** A link to itself cannot be opened, not even by root. */
  @Test
  void whatCannotBeReadIsNotTakenForWhatIsNotThere() throws IOException {
    Store store = bed.access(null).store();
    java.nio.file.Path table = Files.createDirectories(directory.resolve("table"));
    Files.createDirectories(table.resolve(Store.JOURNAL));
    for (String link : List.of(Store.JOURNAL + "/x.begin", "k=1")) {
      Files.createSymbolicLink(table.resolve(link), table.resolve(link));
    }
    String id = TestTable.newId();
    TaskAttempt task = store.attempt(id, "0");
    task.file("k=1", "part-0-" + id);

    assertThrows(IOException.class, () -> store.read("x.begin"));
    assertThrows(IOException.class, () -> store.list(List.of("k=1"), true));
    assertThrows(IOException.class, () -> store.delete(List.of(new OldFile("k=1", "old", 1, 1))));
    assertThrows(IOException.class, () -> store.remove(List.of("x.begin/y")));
    assertThrows(IOException.class, () -> store.publish(StagedFile.hidden("k=1", "part-0", 1, ".direct-x-0.part-0")));
    assertThrows(IOException.class, () -> task.commit(path -> true));
    assertEquals(null, store.read("y.begin"));
    assertEquals(List.of(), store.list(List.of("k=2"), true));
    store.delete(List.of(new OldFile("k=2", "old", 1, 1)));
  }

  /** Tables may be very large, and statements that fail are many. */
  @Test
  void whoFailsLooksOnlyWhereTheJobWrites() throws IOException {
    String id = TestTable.newId();
    Path elsewhere = new Path(bed.table, "k=2/.direct-" + id + "-0.part");
    bed.write(elsewhere, "");
    try (DirectJob job = DirectJob.begin(bed.table, id, "k=1", bed.conf, null)) {
      bed.attempt(job.placement(), id, "0", "k=1", "a", "k=1/l=1", "b").commit(path -> true);
      job.abort();
    }

    assertEquals(List.of("/k=2/" + elsewhere.getName()), bed.hidden());
    assertEquals(1, Recovery.recover(bed.table, bed.conf, null, Choices.of(Run.REAL)).size());
    assertEquals(List.of(), bed.hidden());
  }

  /** A partition's directory may be a link to elsewhere. */
  @Test
  void aDirectoryThatIsALinkStays() throws IOException {
    java.nio.file.Path table = Files.createDirectories(directory.resolve("table"));
    java.nio.file.Path elsewhere = Files.createDirectories(directory.resolve("elsewhere"));
    Files.createSymbolicLink(table.resolve("k=1"), elsewhere);

    bed.access(null).store().prune(Set.of("k=1"), List.of());

    assertTrue(Files.exists(table.resolve("k=1")));
  }

  @Test
  void whatIsMadeWhileADirectoryIsRemovedStays() throws Exception {
    java.nio.file.Path partition = directory.resolve("table/k=1");
    Store store = bed.access(null).store();
    FutureTask<Integer> writer = new FutureTask<>(() -> {
      int lost = 0;
      for (int i = 0; i < 2000; i++) {
        java.nio.file.Path file = partition.resolve("f");
        try {
          Files.createDirectories(partition);
          Files.createFile(file);
        } catch (NoSuchFileException | FileAlreadyExistsException e) {
          continue; // the directory was removed meanwhile
        }
        Thread.yield();
        lost += Files.deleteIfExists(file) ? 0 : 1;
      }
      return lost;
    });
    new Thread(writer).start();
    while (!writer.isDone()) {
      store.prune(Set.of("k=1"), List.of());
    }
    assertEquals(0, writer.get());
  }

  @Test
  void whatIsDoneIsOnTheDiskBeforeTheJournalForgetsIt() throws IOException {
    bed.put("k=2/old", "old");
    String id = TestTable.newId();
    TableAccess table = bed.access(null);
    Store store = Mockito.mock(Store.class, AdditionalAnswers.delegatesTo(table.store()));
    try (DirectJob job = DirectJob.begin(table.through(store), id, "")) {
      List<StagedFile> files = bed.attempt(job.placement(), id, "0", "k=1/l=1", "a").commit(path -> true);
      job.commit(new CommitPlan(files, Overwrite.below(List.of("k=2"))));
    }
    InOrder order = Mockito.inOrder(store);
    order.verify(store).persist(Set.of("k=1"));
    order.verify(store).create(Mockito.eq(Journal.commit(id)), Mockito.any());
    order.verify(store).publish(Mockito.any());
    order.verify(store).delete(Mockito.any());
    order.verify(store).persist(Set.of("k=1/l=1", "k=2"));
    order.verify(store).remove(Journal.signs(id));
  }

  @Test
  void ownersMayHaveAnyName() throws IOException {
    for (String owner : List.of("CORP\\ursula@h", "CORP\\bob@h", "a=b # c", "日本")) {
      assertEquals(new Journal.Begin(owner, 7, "k=1"), Journal.Begin.of(new Journal.Begin(owner, 7, "k=1").toBytes(), 9));
    }
    for (String damaged : List.of("", "owner=CORP\\ursula\nlease.ms=1\n", "\0\0\0")) {
      assertEquals(new Journal.Begin("unknown", 9, ""), Journal.Begin.of(damaged.getBytes(StandardCharsets.ISO_8859_1), 9));
    }
  }

  @Test
  void recoveryRemovesWhatZombiesWriteAfterTheirJobHasCommitted() throws IOException {
    String id = TestTable.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, "", bed.conf, null)) {
      bed.attempt(job.placement(), id, "1", "k=1", "a").commit(path -> true);
      TaskAttempt zombie = job.placement().attempt("2", bed.conf);
      job.commit(new CommitPlan(bed.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true), Overwrite.nothing()));
      bed.fill(zombie, id, "k=1", "late");
    }

    List<Finding> findings = Recovery.recover(bed.table, bed.conf, null, Choices.of(Run.REAL));

    assertEquals(List.of(id), findings.stream().map(Finding::job).toList());
    assertEquals(2, findings.get(0).steps().size());
    assertEquals(1, bed.rows().size());
    assertEquals(List.of(), bed.hidden());
  }

  @Test
  void whatDiedBeforeItBecameAnEntryIsForgottenAfterADay() throws IOException {
    Path journal = new Path(bed.table, Store.JOURNAL);
    Path old = new Path(journal, "." + Journal.commit(TestTable.newId()) + ".old");
    Path young = new Path(journal, "." + Journal.commit(TestTable.newId()) + ".young");
    for (Path draft : List.of(old, young)) {
      bed.fs.create(draft).close();
    }
    bed.fs.setTimes(old, System.currentTimeMillis() - TimeUnit.HOURS.toMillis(25), -1);

    bed.run(Overwrite.nothing(), "k=1", "a");

    assertFalse(bed.fs.exists(old));
    assertTrue(bed.fs.exists(young));
  }

  @Test
  void aJobGivesNoSignOfLifeAfterItsCommit() throws IOException, InterruptedException {
    bed.conf.setInt(WriteOptions.LEASE_MILLIS, 3000);
    String id = TestTable.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, "", bed.conf, null)) {
      job.commit(new CommitPlan(bed.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true), Overwrite.nothing()));
      Thread.sleep(1500);
      assertEquals(List.of(), bed.hidden());
    }
  }

  @Test
  void whoMayWriteIntoTheTableMayWriteIntoTheJournal() throws IOException {
    bed.fs.mkdirs(bed.table);
    bed.fs.setPermission(bed.table, new FsPermission((short) 0770));
    try (DirectJob job = DirectJob.begin(bed.table, TestTable.newId(), "", bed.conf, null)) {
      assertEquals("rwxrwx---", bed.fs.getFileStatus(new Path(bed.table, Store.JOURNAL)).getPermission().toString());
      job.abort();
    }
  }

  @Test
  void aFileLeavesNoChecksumsUnderItsHiddenName() throws IOException {
    bed.run(Overwrite.nothing(), "k=1", "a");

    String[] names = new java.io.File(directory.toFile(), "table/k=1").list();
    assertEquals(2, names.length);
    for (String name : names) {
      assertEquals(false, name.contains(".direct-"), name);
    }
  }
}
