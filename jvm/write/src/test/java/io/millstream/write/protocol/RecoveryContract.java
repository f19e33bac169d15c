package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.recovery.Recovery;
import io.millstream.write.recovery.Recovery.Choices;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.mockito.AdditionalAnswers;
import org.mockito.Mockito;

/**
 * The guarantees of the protocol, on any store, for jobs that die, or fail after their commit point, or whose store or
 * metastore fails: what other jobs and recoveries do with them. The rows of the failure matrix in
 * docs/direct-writes-protocol.md name their tests here.
 */
abstract class RecoveryContract extends JobContract {
    @Test
    void anUnknownOutcomeIsLeftToRecovery() throws IOException {
        fixture.put("k=1/old", "a");
        String id = TestTable.newId();
        TableAccess table = fixture.access(null);
        Store full = Mockito.mock(Store.class, AdditionalAnswers.delegatesTo(table.store()));
        Mockito.doAnswer(call -> {
                    throw new IOException("No space left on device");
                })
                .when(full)
                .create(Mockito.endsWith(".commit"), Mockito.any());
        try (DirectJob job = DirectJob.begin(table.through(full), id, "")) {
            CommitPlan plan = new CommitPlan(
                    fixture.attempt(job.placement(), id, "0", "k=1", "b").commit(path -> true), Overwrite.touched());
            IOException e = assertThrows(IOException.class, () -> job.commit(plan));
            assertTrue(e.getMessage().contains("not known"), e::getMessage);
            job.abort();
        }

        assertEquals(
                Verdict.ROLL_BACK,
                only(Recovery.recover(fixture.table, fixture.conf, null, Choices.of(Run.REAL)))
                        .verdict());

        assertEquals(rows("k=1:a"), fixture.rows());
        assertEquals(List.of(), table.store().leftovers("", id::equals));
    }

    @Test
    void anUnavailableMetastoreIsUpdatedLater() throws IOException {
        TestTable.Partitions metastore = new TestTable.Partitions();
        metastore.isDown = true;
        fixture.put("k=1/old", "a");
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, metastore)) {
            CommitPlan plan = new CommitPlan(
                    fixture.attempt(job.placement(), id, "0", "k=2", "b").commit(path -> true),
                    Overwrite.below(List.of("")));
            assertThrows(CommittedException.class, () -> job.commit(plan.metastore(TestTable::count)));
            job.abort();
        }
        assertEquals(rows("k=2:b"), fixture.rows());
        IOException withoutMetastore = assertThrows(
                IOException.class, () -> DirectJob.begin(fixture.table, TestTable.newId(), "", fixture.conf, null));
        assertTrue(withoutMetastore.getMessage().contains("db.t"), withoutMetastore::getMessage);
        metastore.isDown = false;
        metastore.parameters.put("k=1", java.util.Map.of());

        DirectJob next = DirectJob.begin(fixture.table, TestTable.newId(), "", fixture.conf, metastore);
        next.abort();
        next.close();

        assertEquals("{k=2={numFiles=1}}", metastore.parameters.toString());
        assertEquals(rows("k=2:b"), fixture.rows());
    }

    @Test
    void aCommittedJobOfADroppedTableDoesNotStopOthers() throws IOException {
        TestTable.Partitions metastore = new TestTable.Partitions();
        metastore.isDown = true;
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, metastore)) {
            fixture.attempt(job.placement(), id, "1", "k=1", "twin").commit(path -> true);
            CommitPlan plan = new CommitPlan(
                    fixture.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true), Overwrite.nothing());
            assertThrows(CommittedException.class, () -> job.commit(plan.metastore(TestTable::count)));
        }
        metastore.isDown = false;
        metastore.hasForgotten = true;

        assertEquals(
                Verdict.ROLL_FORWARD,
                only(Recovery.recover(fixture.table, fixture.conf, metastore, Choices.of(Run.REAL)))
                        .verdict());

        assertEquals("{}", metastore.parameters.toString());
        assertEquals(rows("k=1:a"), fixture.rows());
        assertEquals(List.of(), fixture.access(null).store().leftovers("", id::equals));
    }

    @Test
    void aSlowMetastoreIsToldThatAnotherHasFinishedTheJob() throws IOException {
        String id = TestTable.newId();
        List<Boolean> finished = new ArrayList<>();
        Metastore metastore = Mockito.mock(Metastore.class);
        Mockito.when(metastore.current(Mockito.any(), Mockito.any())).thenAnswer(call -> call.getArgument(0));
        Mockito.doAnswer(call -> {
                    Metastore.JobState jobState = call.getArgument(1);
                    finished.add(jobState.isFinished());
                    Store store = fixture.access(null).store();
                    store.create(
                            Journal.done(Journal.of(store).lastNumber(), Journal.Kind.INTO, id), Ending.DONE.toBytes());
                    store.remove(Journal.liveEntries(id));
                    finished.add(jobState.isFinished());
                    return null;
                })
                .when(metastore)
                .apply(Mockito.any(), Mockito.any());

        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, metastore)) {
            CommitPlan plan = new CommitPlan(
                    fixture.attempt(job.placement(), id, "0", "k=2", "b").commit(path -> true), Overwrite.nothing());
            job.commit(plan.metastore(TestTable::count));
        }

        assertEquals(List.of(false, true), finished);
    }

    @Test
    void aLiveJobIsLeftAloneAndADeadOneIsRolledBack() throws Exception {
        TestTable shortLived = shortLease();
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(shortLived.table, id, "", shortLived.conf, null)) {
            shortLived.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true);
            Thread.sleep(3 * shortLeaseMillis());
            Finding alive = only(Recovery.recover(shortLived.table, shortLived.conf, null, Choices.of(Run.REAL)));
            assertEquals(Verdict.ALIVE, alive.verdict());
            assertTrue(
                    alive.steps().get(0).matches("lease renewed \\d+ s ago; dead after \\d+ s without renewal"),
                    alive.steps().toString());
        }

        Finding dry = only(Recovery.recover(shortLived.table, shortLived.conf, null, Choices.of(Run.DRY)));
        assertEquals(Verdict.ROLL_BACK, dry.verdict());
        assertEquals(id, dry.job());
        assertEquals(1, dry.steps().size());
        assertEquals(
                1, shortLived.access(null).store().leftovers("", id::equals).size());
        Finding real = only(Recovery.recover(shortLived.table, shortLived.conf, null, Choices.of(Run.REAL)));
        assertEquals(dry.steps(), real.steps());
        assertEquals(
                0, shortLived.access(null).store().leftovers("", id::equals).size());
    }

    @Test
    void aJobWhoseLeaseExpiredCannotCommitAfterItWasResolved() throws Exception {
        TestTable shortLived = shortLease();
        shortLived.put("k=1/old", "old");
        String id = TestTable.newId();
        Store store = Mockito.mock(
                Store.class,
                AdditionalAnswers.delegatesTo(shortLived.access(null).store()));
        Mockito.doThrow(new IOException("asleep")).when(store).replace(Mockito.anyString(), Mockito.any());
        TableAccess table = shortLived.access(null);
        DirectJob sleeper = DirectJob.begin(table.through(store), id, "");
        List<StagedFile> files =
                shortLived.attempt(sleeper.placement(), id, "0", "k=1", "late").commit(path -> true);
        Thread.sleep(2 * shortLeaseMillis());
        assertEquals(rows("k=1:next"), runOn(shortLived, Overwrite.touched(), "k=1", "next"));

        assertThrows(IOException.class, () -> sleeper.commit(new CommitPlan(files, Overwrite.touched())));
        sleeper.abort();
        sleeper.close();

        assertEquals(rows("k=1:next"), shortLived.rows());
    }

    @Test
    void aFailedCleanUpDoesNotMakeOthersWait() throws IOException {
        String id = TestTable.newId();
        TableAccess table = fixture.access(null);
        Store store = Mockito.mock(Store.class, AdditionalAnswers.delegatesTo(table.store()));
        Mockito.doThrow(new IOException("no permission"))
                .when(store)
                .remove(Mockito.argThat(entries -> entries != null && entries.contains(Journal.begin(id))));
        try (DirectJob job = DirectJob.begin(table.through(store), id, "")) {
            job.commit(new CommitPlan(
                    fixture.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true), Overwrite.nothing()));
        }

        fixture.run(Overwrite.nothing(), "k=1", "b");

        assertEquals(rows("k=1:a", "k=1:b"), fixture.rows());
    }

    @Test
    void aFailedRollBackDoesNotMakeOthersWait() throws IOException {
        String id = TestTable.newId();
        TableAccess table = fixture.access(null);
        Store store = Mockito.mock(Store.class, AdditionalAnswers.delegatesTo(table.store()));
        Mockito.doThrow(new IOException("no permission")).when(store).leftovers(Mockito.any(), Mockito.any());
        try (DirectJob job = DirectJob.begin(table.through(store), id, "")) {
            fixture.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true);
            job.abort();
        }

        assertEquals(
                Verdict.ROLL_BACK,
                only(Recovery.recover(fixture.table, fixture.conf, null, Choices.of(Run.REAL)))
                        .verdict());
    }

    @Test
    void recoveryLeavesFilesOfLiveJobsOfOtherRoots() throws IOException {
        Path inner = new Path(fixture.table, "k=1");
        for (List<Path> roots : List.of(List.of(fixture.table, inner), List.of(inner, fixture.table))) {
            String id = TestTable.newId();
            try (DirectJob job = DirectJob.begin(roots.get(0), id, "", fixture.conf, null)) {
                String directory = roots.get(0).equals(fixture.table) ? "k=1/l=1" : "l=1";
                List<StagedFile> files =
                        fixture.attempt(job.placement(), id, "0", directory, id).commit(path -> true);

                assertEquals(List.of(), Recovery.recover(roots.get(1), fixture.conf, null, Choices.of(Run.REAL)));

                job.commit(new CommitPlan(files, Overwrite.nothing()));
            }
            assertTrue(fixture.rows().contains("k=1/l=1:" + id), fixture.rows()::toString);
        }
    }

    @Test
    void recoveryLeavesKeptFilesOfOtherRoots() throws IOException {
        Assumptions.assumeTrue(hasDirectories());
        Store store = fixture.access(null).store();
        String id = TestTable.newId();
        store.begin(Journal.begin(id), new Journal.Begin("owner", 1, "").toBytes());
        TaskAttempt attempt = store.attempt(id, "0");
        fixture.fill(attempt, id, "k=1/l=1", "kept");
        attempt.commit(path -> true);
        store.create(Journal.superseded(id), Journal.NOTHING);
        store.remove(Journal.liveEntries(id));

        for (Path other : List.of(new Path(fixture.table, "k=1"), fixture.table.getParent())) {
            Recovery.recover(other, fixture.conf, null, Choices.of(Run.REAL));

            assertEquals(1, store.leftovers("", id::equals).size(), "recover " + other);
        }
    }

    @Test
    void aDeadJobThatCannotBeResolvedDoesNotBlockOthers() throws IOException {
        String damaged = "00000000" + TestTable.newId().substring(8);
        String dead = "ffffffff" + TestTable.newId().substring(8);
        Store store = fixture.access(null).store();
        store.begin(Journal.begin(damaged), new Journal.Begin("owner", 1, "").toBytes());
        store.create(Journal.commit(damaged), new byte[] {1});
        store.replace(Journal.abandoned(damaged), Journal.NOTHING);
        store.begin(Journal.begin(dead), new Journal.Begin("owner", 1, "").toBytes());
        store.replace(Journal.abandoned(dead), Journal.NOTHING);

        assertThrows(IOException.class, () -> fixture.run(Overwrite.nothing(), "k=1", "a"));

        assertEquals(null, store.read(Journal.begin(dead)));
    }

    @Test
    void aLargeCommitWhosePartsFailReportsThatItIsCommitted() throws IOException {
        TestTable large = with(WriteOptions.DISTRIBUTE_FILES, 1);
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(large.table, id, "", large.conf, null)) {
            CommitPlan plan = new CommitPlan(
                    large.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true), Overwrite.nothing());
            assertThrows(
                    CommittedException.class,
                    () -> job.commit(plan.distribution(batches -> undeclared(new Exception("stage failure")))));
        }
        Recovery.recover(large.table, large.conf, null, Choices.of(Run.REAL));
        assertEquals(rows("k=1:a"), large.rows());
    }

    /** Throws like Scala code, without a declaration. */
    @SuppressWarnings("unchecked")
    private static <E extends Exception> void undeclared(Exception e) throws E {
        throw (E) e;
    }

    @Test
    void rewrittenOldFilesSurviveARollForward() throws IOException {
        fixture.put("k=1/000000_0", "old");
        TestTable.Partitions metastore = new TestTable.Partitions();
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.access(metastore), id, "")) {
            CommitPlan plan = new CommitPlan(
                    fixture.attempt(job.placement(), id, "0", "k=1", "new").commit(path -> true), Overwrite.touched());
            assertThrows(
                    CommittedException.class,
                    () -> job.commit(plan.metastore(TestTable::count).listener((phase, done, total) -> {
                        if (phase == CommitPlan.Phase.DELETE) {
                            throw new IllegalStateException("stop before the old files are deleted");
                        }
                    })));
        }
        fixture.put("k=1/000000_0", "by Hive, later");

        Recovery.recover(fixture.table, fixture.conf, metastore, Choices.of(Run.REAL));

        assertEquals(rows("k=1:by Hive, later", "k=1:new"), fixture.rows());
    }

    @Test
    void filesOfAttemptsOfAJobThatIsOverAreNotCalledARollBack() throws IOException {
        fixture.run(Overwrite.nothing(), "k=1", "a");
        String over = TestTable.newId();
        fixture.put("k=1/.direct-" + over + "-7.part-" + over + ".txt", "late");
        Assumptions.assumeTrue(hasDirectories());

        Finding finding = only(Recovery.recover(fixture.table, fixture.conf, null, Choices.of(Run.REAL)));

        assertEquals(Verdict.LEFTOVERS, finding.verdict());
        assertEquals(rows("k=1:a"), fixture.rows());
        assertEquals(List.of(), fixture.hidden());
    }

    private static Finding only(List<Finding> findings) {
        assertEquals(1, findings.size(), findings::toString);
        return findings.get(0);
    }
}
