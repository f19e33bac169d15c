package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
import org.mockito.AdditionalAnswers;
import org.mockito.InOrder;
import org.mockito.Mockito;

class LocalDirectJobTest extends DirectJobContract implements LocalStore {
    @Override
    List<String> oddNames() {
        return List.of("a:b", "a b", "a%b", "a#?");
    }

    /** Hadoop reads such files, but does not write them. */
    @Override
    void putOdd(String relative, String name) throws IOException {
        java.nio.file.Path file = directory.resolve("table0").resolve(relative).resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, "old");
    }

    /** A link to itself cannot be opened, not even by root. */
    @Test
    void unreadableFilesAreNotTakenForMissing() throws IOException {
        Store store = fixture.access(null).store();
        java.nio.file.Path table = Files.createDirectories(directory.resolve("table0"));
        Files.createDirectories(table.resolve(Store.JOURNAL));
        for (String link : List.of(Store.JOURNAL + "/_x.begin", "k=1")) {
            Files.createSymbolicLink(table.resolve(link), table.resolve(link));
        }
        String id = TestTable.newId();
        TaskAttempt task = store.attempt(id, "0");
        task.file("k=1", "part-0-" + id);

        assertThrows(IOException.class, () -> store.read("x.begin"));
        assertThrows(IOException.class, () -> store.list(List.of("k=1"), true));
        assertThrows(IOException.class, () -> store.delete(List.of(new OldFile("k=1", "old", 1, 1))));
        assertThrows(IOException.class, () -> store.remove(List.of("x.begin/y")));
        assertThrows(
                IOException.class, () -> store.publish(StagedFile.hidden("k=1", "part-0", 1, ".direct-x-0.part-0")));
        assertThrows(IOException.class, () -> task.commit(path -> true));
        assertEquals(null, store.read("y.begin"));
        assertEquals(List.of(), store.list(List.of("k=2"), true));
        store.delete(List.of(new OldFile("k=2", "old", 1, 1)));
    }

    /** Tables may be very large, and failed statements are common. */
    @Test
    void aFailedJobIsCleanedUpOnlyWhereItWrites() throws IOException {
        String id = TestTable.newId();
        Path elsewhere = new Path(fixture.table, "k=2/.direct-" + id + "-0.part");
        fixture.write(elsewhere, "");
        try (DirectJob job = DirectJob.begin(fixture.table, id, "k=1", fixture.conf, null)) {
            fixture.attempt(job.placement(), id, "0", "k=1", "a", "k=1/l=1", "b")
                    .commit(path -> true);
            job.abort();
        }

        assertEquals(List.of("/k=2/" + elsewhere.getName()), fixture.hidden());
        assertEquals(
                1,
                Recovery.recover(fixture.table, fixture.conf, null, Choices.of(Run.REAL))
                        .size());
        assertEquals(List.of(), fixture.hidden());
    }

    /** A partition's directory may be a link to another directory. */
    @Test
    void aDirectoryThatIsALinkStays() throws IOException {
        java.nio.file.Path table = Files.createDirectories(directory.resolve("table0"));
        java.nio.file.Path elsewhere = Files.createDirectories(directory.resolve("elsewhere"));
        Files.createSymbolicLink(table.resolve("k=1"), elsewhere);

        fixture.access(null).store().prune(Set.of("k=1"), List.of());

        assertTrue(Files.exists(table.resolve("k=1")));
    }

    @Test
    void filesCreatedWhileADirectoryIsRemovedStay() throws Exception {
        java.nio.file.Path partition = directory.resolve("table0/k=1");
        Store store = fixture.access(null).store();
        FutureTask<Integer> writer = new FutureTask<>(() -> {
            int lost = 0;
            for (int i = 0; i < 2000; i++) {
                java.nio.file.Path file = partition.resolve("f");
                try {
                    Files.createDirectories(partition);
                    Files.createFile(file);
                } catch (NoSuchFileException | FileAlreadyExistsException e) {
                    continue; // the directory has been removed meanwhile
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
    void changesAreOnDiskBeforeTheJournalEntriesAreRemoved() throws IOException {
        fixture.put("k=2/old", "old");
        String id = TestTable.newId();
        TableAccess table = fixture.access(null);
        Store store = Mockito.mock(Store.class, AdditionalAnswers.delegatesTo(table.store()));
        try (DirectJob job = DirectJob.begin(table.through(store), id, "")) {
            List<StagedFile> files =
                    fixture.attempt(job.placement(), id, "0", "k=1/l=1", "a").commit(path -> true);
            job.commit(new CommitPlan(files, Overwrite.below(List.of("k=2"))));
        }
        InOrder order = Mockito.inOrder(store);
        order.verify(store).persist(Set.of("k=1"));
        order.verify(store).create(Mockito.eq(Journal.commit(id)), Mockito.any());
        order.verify(store).publish(Mockito.any());
        order.verify(store).delete(Mockito.any());
        order.verify(store).persist(Set.of("k=1/l=1", "k=2"));
        order.verify(store).remove(Journal.liveEntries(id));
    }

    @Test
    void ownersMayHaveAnyName() throws IOException {
        for (String owner : List.of("CORP\\ursula@h", "CORP\\bob@h", "a=b # c", "日本")) {
            assertEquals(
                    new Journal.Begin(owner, 7, "k=1"),
                    Journal.Begin.of(new Journal.Begin(owner, 7, "k=1").toBytes(), 9));
        }
        for (String damaged : List.of("", "owner=CORP\\ursula\nlease.ms=1\n", "\0\0\0")) {
            assertEquals(
                    new Journal.Begin("unknown", 9, ""),
                    Journal.Begin.of(damaged.getBytes(StandardCharsets.ISO_8859_1), 9));
        }
    }

    @Test
    void recoveryRemovesFilesThatZombiesWriteAfterTheCommit() throws IOException {
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            fixture.attempt(job.placement(), id, "1", "k=1", "a").commit(path -> true);
            TaskAttempt zombie = job.placement().attempt("2", fixture.conf);
            job.commit(new CommitPlan(
                    fixture.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true), Overwrite.nothing()));
            fixture.fill(zombie, id, "k=1", "late");
        }

        List<Finding> findings = Recovery.recover(fixture.table, fixture.conf, null, Choices.of(Run.REAL));

        assertEquals(List.of(id), findings.stream().map(Finding::job).toList());
        assertEquals(2, findings.get(0).steps().size());
        assertEquals(1, fixture.rows().size());
        assertEquals(List.of(), fixture.hidden());
    }

    @Test
    void temporaryJournalFilesAreRemovedAfterADay() throws IOException {
        Path journal = new Path(fixture.table, Store.JOURNAL);
        Path old = new Path(journal, "." + Journal.commit(TestTable.newId()) + ".old");
        Path young = new Path(journal, "." + Journal.commit(TestTable.newId()) + ".young");
        for (Path draft : List.of(old, young)) {
            fixture.fs.create(draft).close();
        }
        fixture.fs.setTimes(old, System.currentTimeMillis() - TimeUnit.HOURS.toMillis(25), -1);

        fixture.run(Overwrite.nothing(), "k=1", "a");

        assertFalse(fixture.fs.exists(old));
        assertTrue(fixture.fs.exists(young));
    }

    @Test
    void aJobDoesNotRenewItsLeaseAfterItsCommit() throws IOException, InterruptedException {
        fixture.conf.setInt(WriteOptions.LEASE_MILLIS, 3000);
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            job.commit(new CommitPlan(
                    fixture.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true), Overwrite.nothing()));
            Thread.sleep(1500);
            assertEquals(List.of(), fixture.hidden());
        }
    }

    @Test
    void usersWhoMayWriteToTheTableMayWriteToTheJournal() throws IOException {
        fixture.fs.mkdirs(fixture.table);
        fixture.fs.setPermission(fixture.table, new FsPermission((short) 0770));
        try (DirectJob job = DirectJob.begin(fixture.table, TestTable.newId(), "", fixture.conf, null)) {
            assertEquals(
                    "rwxrwx---",
                    fixture.fs
                            .getFileStatus(new Path(fixture.table, Store.JOURNAL))
                            .getPermission()
                            .toString());
            job.abort();
        }
    }

    @Test
    void aFileLeavesNoChecksumsUnderItsHiddenName() throws IOException {
        fixture.run(Overwrite.nothing(), "k=1", "a");

        String[] names = new java.io.File(directory.toFile(), "table0/k=1").list();
        assertEquals(2, names.length);
        for (String name : names) {
            assertEquals(false, name.contains(".direct-"), name);
        }
    }

    @Test
    void anErrorBeforeTheCommitSaysThatNothingIsWritten() throws IOException {
        TestTable fixture = new TestTable(newTable(), new Configuration(false));
        fixture.put("k=1/old", "o1");
        for (String what : List.of("lock", "commit")) {
            String id = TestTable.newId();
            String refused = what.equals("lock") ? "lock-" : Journal.commit(id);
            FaultyStore store = new FaultyStore(
                            fixture.access(null).store(), Integer.MAX_VALUE, FaultyStore.Moment.AFTER)
                    .refusing(refused);
            try (DirectJob job = DirectJob.begin(fixture.access(null).through(store), id, "")) {
                TaskAttempt attempt = store.attempt(id, "0");
                fixture.fill(attempt, id, "k=1", "n1");
                CommitPlan plan = new CommitPlan(attempt.commit(path -> true), Overwrite.touched());
                String message =
                        assertThrows(IOException.class, () -> job.commit(plan)).getMessage();
                assertTrue(
                        message.contains(", and nothing is written: No space left on device"),
                        refused + ": " + message);
                job.abort();
            }
            assertEquals(Set.of("k=1:o1"), fixture.rows());
        }
    }
}
