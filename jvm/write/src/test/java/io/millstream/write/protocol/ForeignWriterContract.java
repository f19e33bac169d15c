package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.protocol.FaultyStore.Died;
import io.millstream.write.protocol.FaultyStore.Moment;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.recovery.Recovery;
import io.millstream.write.recovery.Recovery.Choices;
import io.millstream.write.recovery.Recovery.Superseded;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Programs that do not know the journal write between any two steps of a job: either the rows of both are right, or the
 * job ends in an error. Also tests statements that read a table with a committed but unfinished job.
 */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
abstract class ForeignWriterContract extends StoreContract {
    /**
     * A lease longer than the resolution of a clock of seconds. A process that cannot help a live driver waits for this
     * time.
     */
    private static final int LEASE_MILLIS = 2000;

    private static final String[] FILES = {"k=1", "n1", "k=1", "m1", "k=3", "n3"};
    private static final Set<String> OLD = rows("k=1:o1", "k=1:p1", "k=2:o2");
    private static final Set<String> OVERWRITTEN = rows("k=1:n1", "k=1:m1", "k=2:o2", "k=3:n3");

    private enum Foreign {
        OVERWRITE,
        OVERWRITE_OF_THE_NEW,
        INSERT_INTO,
        DROP_PARTITION,
        DROP_TABLE,
        DROP_TABLE_AND_INSERT,
        ABORT_UPLOADS,
        HELP,
        OVERWRITE_AND_HELP
    }

    private static Set<String> rows(String... rows) {
        return new TreeSet<>(List.of(rows));
    }

    private TestTable newBed() throws IOException {
        Configuration conf = newConfiguration();
        conf.setBoolean(WriteOptions.SYNC, false);
        conf.setInt(WriteOptions.THREADS, 1);
        conf.setInt(WriteOptions.HELP_AFTER_MILLIS, 0);
        conf.setInt(WriteOptions.LEASE_MILLIS, LEASE_MILLIS);
        TestTable fixture = new TestTable(newTable(), conf);
        fixture.put("k=1/old", "o1");
        fixture.put("k=1/older", "p1");
        fixture.put("k=2/old", "o2");
        return fixture;
    }

    /** Writes like a program that does not know the journal. */
    private static void happen(TestTable fixture, Foreign what) throws IOException {
        switch (what) {
            case OVERWRITE -> overwrite(fixture, "k=1");
            case OVERWRITE_OF_THE_NEW -> overwrite(fixture, "k=3");
            case INSERT_INTO -> fixture.put("k=1/foreign", "f");
            case DROP_PARTITION -> empty(fixture, new Path(fixture.table, "k=1"));
            case DROP_TABLE -> fixture.fs.delete(fixture.table, true);
            case DROP_TABLE_AND_INSERT -> {
                fixture.fs.delete(fixture.table, true);
                // Another statement with direct writes creates the journal again.
                DirectJob.begin(fixture.access(null), TestTable.newId(), "").close();
            }
            case HELP -> ReadGuard.of(fixture.access(null));
            case OVERWRITE_AND_HELP -> {
                overwrite(fixture, "k=1");
                ReadGuard.of(fixture.access(null));
            }
            case ABORT_UPLOADS -> {
                Store store = fixture.access(null).store();
                store.discard(store.leftovers("", job -> true));
            }
        }
    }

    private static void overwrite(TestTable fixture, String partition) throws IOException {
        empty(fixture, new Path(fixture.table, partition));
        fixture.put(partition + "/foreign", "f");
    }

    private static void empty(TestTable fixture, Path directory) throws IOException {
        fixture.fs.delete(directory, true);
    }

    /** The rows that are allowed after both writes, in either order. */
    private static Set<Set<String>> orders(Overwrite overwrite, Foreign what) {
        Set<String> ours = overwrite.isNothing() ? new TreeSet<>(OLD) : new TreeSet<>(rows("k=2:o2"));
        ours.addAll(rows("k=1:n1", "k=1:m1", "k=3:n3"));
        return new HashSet<>(List.of(after(ours, what), before(overwrite, what)));
    }

    private static Set<String> after(Set<String> rows, Foreign what) {
        Set<String> after = new TreeSet<>(rows);
        switch (what) {
            case OVERWRITE, OVERWRITE_AND_HELP -> {
                after.removeIf(row -> row.startsWith("k=1:"));
                after.add("k=1:f");
            }
            case OVERWRITE_OF_THE_NEW -> {
                after.removeIf(row -> row.startsWith("k=3:"));
                after.add("k=3:f");
            }
            case INSERT_INTO -> after.add("k=1:f");
            case DROP_PARTITION -> after.removeIf(row -> row.startsWith("k=1:"));
            case DROP_TABLE, DROP_TABLE_AND_INSERT -> after.clear();
            case ABORT_UPLOADS, HELP -> {}
        }
        return after;
    }

    private static Set<String> before(Overwrite overwrite, Foreign what) {
        Set<String> rows = after(OLD, what);
        if (!overwrite.isNothing()) {
            rows.removeIf(row -> row.startsWith("k=1:") || row.startsWith("k=3:"));
        }
        rows.addAll(rows("k=1:n1", "k=1:m1", "k=3:n3"));
        return rows;
    }

    /**
     * Runs a job with a foreign writer after one of its steps; returns the name of the outcome, or null if the job has
     * fewer steps.
     */
    private String comeAfter(int step, Overwrite overwrite, Foreign what) throws IOException {
        TestTable fixture = newBed();
        String id = TestTable.newId();
        int[] steps = {0};
        boolean[] wasVisible = {false};
        Store quiet = fixture.access(null).store();
        FaultyStore store = new FaultyStore(quiet, Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
            if (++steps[0] == step) {
                wasVisible[0] = fixture.rows().containsAll(rows("k=1:n1", "k=1:m1", "k=3:n3"));
                happen(fixture, what);
            }
        });
        String error = null;
        try (DirectJob job = DirectJob.begin(fixture.access(null).through(store), id, "")) {
            try {
                job.commit(new CommitPlan(write(store, fixture, id), overwrite));
            } catch (IOException e) {
                job.abort();
                error = e.getMessage();
            }
        } catch (IOException e) {
            error = e.getMessage();
        }
        if (steps[0] < step) {
            return null;
        }
        String where = overwrite.isNothing() + " " + what + " after step " + step + ": " + error;
        if (error == null) {
            Set<String> rows = fixture.rows();
            assertTrue(
                    wasVisible[0]
                            ? orders(overwrite, what).contains(rows)
                            : before(overwrite, what).equals(rows)
                                    || what == Foreign.INSERT_INTO
                                            && orders(overwrite, what).contains(rows),
                    () -> where + " " + rows);
        }
        if (error != null && error.contains("nothing is written")) {
            assertTrue(
                    fixture.rows().stream().noneMatch(List.of("k=1:n1", "k=1:m1", "k=3:n3")::contains),
                    () -> where + " " + rowsOf(fixture));
        }
        checkAfterwards(fixture, overwrite, what, where);
        return error == null ? "both" : "error";
    }

    private static Set<String> rowsOf(TestTable fixture) {
        try {
            return fixture.rows();
        } catch (IOException e) {
            return Set.of(e.toString());
        }
    }

    /** Checks that no process replaced what another had replaced, and that the table can be written to again. */
    private void checkAfterwards(TestTable fixture, Overwrite overwrite, Foreign what, String where)
            throws IOException {
        try {
            Recovery.recover(fixture.access(null), Choices.of(Run.REAL));
        } catch (IOException e) {
            // Rows of a table that was dropped are gone on purpose.
            assertTrue(
                    what != Foreign.DROP_TABLE && what != Foreign.DROP_TABLE_AND_INSERT,
                    () -> where + ", then " + e.getMessage());
            assertTrue(e.getMessage().contains("--accept-loss"), () -> where + ", then " + e.getMessage());
            List<Finding> findings =
                    Recovery.recover(fixture.access(null), new Choices(Run.REAL, true, Superseded.KEEP));
            assertTrue(findings.stream().anyMatch(finding -> finding.verdict() == Verdict.LOST), findings::toString);
        }
        Set<String> rows = fixture.rows();
        // After our overwrite, readers see either old or new rows, not both.
        assertFalse(!overwrite.isNothing() && rows.contains("k=1:o1") && rows.contains("k=1:n1"), () -> where + rows);
        fixture.run(Overwrite.nothing(), "k=9", "next");
        rows.add("k=9:next");
        assertEquals(rows, fixture.rows(), where);
    }

    /** Writes a job's files through a store. */
    private static List<StagedFile> write(Store store, TestTable fixture, String id) throws IOException {
        TaskAttempt attempt = store.attempt(id, "0");
        fixture.fill(attempt, id, FILES);
        return attempt.commit(path -> true);
    }

    private void comeAfterEveryStep(Overwrite overwrite, Foreign what) throws IOException {
        Set<String> outcomes = new TreeSet<>();
        String outcome;
        for (int step = 1; (outcome = comeAfter(step, overwrite, what)) != null; step++) {
            outcomes.add(outcome);
        }
        assertTrue(outcomes.contains("both"), outcomes::toString);
    }

    @Test
    void overwritesOfTheSamePartition() throws IOException {
        comeAfterEveryStep(Overwrite.touched(), Foreign.OVERWRITE);
        comeAfterEveryStep(Overwrite.nothing(), Foreign.OVERWRITE);
    }

    @Test
    void overwritesOfAPartitionThatIsNew() throws IOException {
        comeAfterEveryStep(Overwrite.touched(), Foreign.OVERWRITE_OF_THE_NEW);
    }

    @Test
    void insertsIntoTheSamePartition() throws IOException {
        comeAfterEveryStep(Overwrite.touched(), Foreign.INSERT_INTO);
        comeAfterEveryStep(Overwrite.nothing(), Foreign.INSERT_INTO);
    }

    @Test
    void partitionsThatAreDropped() throws IOException {
        comeAfterEveryStep(Overwrite.touched(), Foreign.DROP_PARTITION);
        comeAfterEveryStep(Overwrite.nothing(), Foreign.DROP_PARTITION);
    }

    @Test
    void tablesThatAreDropped() throws IOException {
        comeAfterEveryStep(Overwrite.touched(), Foreign.DROP_TABLE);
        comeAfterEveryStep(Overwrite.nothing(), Foreign.DROP_TABLE);
        comeAfterEveryStep(Overwrite.touched(), Foreign.DROP_TABLE_AND_INSERT);
        comeAfterEveryStep(Overwrite.nothing(), Foreign.DROP_TABLE_AND_INSERT);
    }

    /** Like S3A's committers when their job ends. */
    @Test
    void stagedFilesThatAreRemoved() throws IOException {
        comeAfterEveryStep(Overwrite.touched(), Foreign.ABORT_UPLOADS);
        comeAfterEveryStep(Overwrite.nothing(), Foreign.ABORT_UPLOADS);
    }

    /** Another statement finishes the job, at every step of its driver. */
    @Test
    void helpers() throws IOException {
        comeAfterEveryStep(Overwrite.touched(), Foreign.HELP);
        comeAfterEveryStep(Overwrite.nothing(), Foreign.HELP);
        comeAfterEveryStep(Overwrite.touched(), Foreign.OVERWRITE_AND_HELP);
    }

    /** Kills a job once it has published this number of its files. */
    private static void die(TestTable fixture, String id, Overwrite overwrite, int published) throws IOException {
        die(fixture, new TestTable.Partitions(), id, overwrite, published, draft -> null);
    }

    private static void die(
            TestTable fixture,
            Metastore metastore,
            String id,
            Overwrite overwrite,
            int published,
            CommitPlan.MetastorePlanner planner)
            throws IOException {
        int[] found = {0};
        Store quiet = fixture.access(null).store();
        FaultyStore store = new FaultyStore(quiet, Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
            boolean isCommitted = quiet.read(Journal.commit(id)) != null;
            if (isCommitted
                    && quiet.unpublished(CommitRecord.of(quiet.read(Journal.commit(id)))
                                            .added())
                                    .size()
                            <= FILES.length / 2 - published) {
                found[0]++;
                throw new Died();
            }
        });
        try (DirectJob job = DirectJob.begin(fixture.access(metastore).through(store), id, "")) {
            job.commit(new CommitPlan(write(store, fixture, id), overwrite).metastore(planner));
        } catch (Died e) {
            assertTrue(found[0] > 0);
        }
        // Closing it has no effect: it is dead, and its lease has not expired.
        quiet.remove(List.of(Journal.abandoned(id)));
    }

    @Test
    void aReadingStatementFinishesCommittedJobsBeforeTheirLeaseExpires() throws IOException {
        TestTable fixture = newBed();
        fixture.conf.setInt(WriteOptions.HELP_AFTER_MILLIS, 0);
        die(fixture, TestTable.newId(), Overwrite.nothing(), 1);
        assertEquals(OLD.size() + 1, fixture.rows().size());

        ReadGuard guard = ReadGuard.of(fixture.access(null));

        Set<String> read = fixture.rows();
        assertEquals(OLD.size() + FILES.length / 2, read.size());
        assertTrue(guard.hasHelped());
        // INSERT OVERWRITE … SELECT … FROM the same partition.
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.access(null), id, "")) {
            List<StagedFile> copied = fixture.attempt(job.placement(), id, "0", "k=1", "of " + read)
                    .commit(path -> true);
            job.commit(new CommitPlan(copied, Overwrite.touched()).hasRead(guard.version()));
        }
        assertEquals(rows("k=1:of " + read, "k=2:o2", "k=3:n3"), fixture.rows());
    }

    @Test
    void aStatementIsRefusedIfAnotherHasChangedTheTableItRead() throws IOException {
        for (Overwrite other : List.of(Overwrite.nothing(), Overwrite.touched())) {
            TestTable fixture = newBed();
            ReadGuard guard = ReadGuard.of(fixture.access(null));
            fixture.run(other, "k=2", "meanwhile");
            Set<String> rows = fixture.rows();
            String id = TestTable.newId();
            try (DirectJob job = DirectJob.begin(fixture.access(null), id, "")) {
                CommitPlan plan = new CommitPlan(
                        fixture.attempt(job.placement(), id, "0", "k=1", "copy").commit(path -> true),
                        Overwrite.touched());
                assertThrows(ConflictException.class, () -> job.commit(plan.hasRead(guard.version())));
                job.abort();
            }
            assertEquals(rows, fixture.rows());
            // A statement that has read nothing is not refused, and neither is one that reads the table and writes
            // elsewhere while rows are added.
            fixture.run(Overwrite.touched(), "k=1", "blind");
            if (other.isNothing()) {
                assertThrows(
                        ConflictException.class,
                        () -> guard.check(fixture.access(null)),
                        "the blind one has overwritten");
            }
        }
        TestTable fixture = newBed();
        ReadGuard guard = ReadGuard.of(fixture.access(null));
        fixture.run(Overwrite.nothing(), "k=1", "added");
        guard.check(fixture.access(null));
    }

    @Test
    void aDeadJobIsNotPublishedWhereAnotherProgramHasOverwritten() throws IOException {
        for (Superseded choice : Superseded.values()) {
            for (String partition : List.of("k=1", "k=3")) {
                TestTable fixture = newBed();
                String id = TestTable.newId();
                die(fixture, id, Overwrite.touched(), 0);
                overwrite(fixture, partition);

                fixture.run(Overwrite.nothing(), "k=9", "next");

                Set<String> expected = new TreeSet<>(OVERWRITTEN);
                expected.add("k=9:next");
                expected.removeIf(row -> row.startsWith(partition));
                expected.add(partition + ":f");
                assertEquals(expected, fixture.rows());
                boolean isKept = !hasDirectories();
                if (isKept && choice == Superseded.APPLY) {
                    // A recovery died between its commit and its end: the next one finds everything done.
                    try (DirectJob again = DirectJob.begin(fixture.access(null), TestTable.newId(), "")) {
                        again.commit(new Resolution(fixture.access(null))
                                .superseded(id)
                                .plan());
                    }
                }
                List<Finding> findings = Recovery.recover(fixture.access(null), new Choices(Run.REAL, false, choice));
                assertEquals(
                        isKept ? List.of(Verdict.SUPERSEDED) : List.of(),
                        findings.stream().map(Finding::verdict).toList());
                if (isKept && choice == Superseded.APPLY) {
                    expected.remove(partition + ":f");
                    OVERWRITTEN.stream()
                            .filter(row -> row.startsWith(partition))
                            .forEach(expected::add);
                }
                assertEquals(expected, fixture.rows());
                boolean isStillKept = isKept && choice == Superseded.KEEP;
                assertEquals(
                        isStillKept,
                        !fixture.access(null).store().leftovers("", id::equals).isEmpty());
                assertEquals(
                        isStillKept ? 1 : 0,
                        Recovery.recover(fixture.access(null), Choices.of(Run.REAL))
                                .size());
            }
        }
    }

    @Test
    void aJobThatCannotBeFinishedIsEndedOnlyOnRequest() throws IOException {
        for (Overwrite overwrite : List.of(Overwrite.nothing(), Overwrite.touched())) {
            TestTable fixture = newBed();
            String id = TestTable.newId();
            die(fixture, id, overwrite, 1);
            happen(fixture, Foreign.ABORT_UPLOADS);
            Set<String> torn = fixture.rows();

            IOException e = assertThrows(IOException.class, () -> fixture.run(Overwrite.nothing(), "k=9", "next"));
            assertTrue(
                    e.getMessage().contains("--accept-loss")
                            && e.getMessage().contains("another program has removed them"),
                    e::getMessage);
            assertEquals(torn, fixture.rows());

            fixture.access(null).store().replace(Journal.abandoned(id), Journal.NOTHING);
            Recovery.recover(fixture.access(null), new Choices(Run.DRY, true, Superseded.KEEP));
            assertEquals(torn, fixture.rows());
            List<Finding> findings =
                    Recovery.recover(fixture.access(null), new Choices(Run.REAL, true, Superseded.KEEP)).stream()
                            .filter(finding -> finding.job().equals(id))
                            .toList();

            assertEquals(
                    List.of(Verdict.LOST),
                    findings.stream().map(Finding::verdict).toList());
            long lost = findings.get(0).steps().stream()
                    .filter(step -> step.startsWith("lost "))
                    .count();
            assertEquals(overwrite.isNothing() ? FILES.length / 2 - 1 : FILES.length / 2, lost, findings::toString);
            Set<String> expected = new TreeSet<>(overwrite.isNothing() ? torn : OLD);
            assertEquals(expected, fixture.rows());
            fixture.run(Overwrite.nothing(), "k=9", "next");
            expected.add("k=9:next");
            assertEquals(expected, fixture.rows());
        }
    }

    @Test
    void aHelperThatCannotPublishAllFilesPublishesNone() throws IOException {
        for (Overwrite overwrite : List.of(Overwrite.nothing(), Overwrite.touched())) {
            TestTable fixture = newBed();
            Store store = fixture.access(null).store();
            die(fixture, TestTable.newId(), overwrite, 0);
            store.discard(store.leftovers("", job -> true).subList(2, FILES.length / 2));

            IOException e = assertThrows(IOException.class, () -> fixture.run(Overwrite.nothing(), "k=9", "next"));

            assertTrue(e.getMessage().contains("--accept-loss"), e::getMessage);
            assertEquals(OLD, fixture.rows());
        }
    }

    @Test
    void aPartitionWrittenByAnotherProgramIsNotDropped() throws IOException {
        TestTable fixture = newBed();
        TestTable.Partitions metastore = new TestTable.Partitions();
        metastore.parameters.put("k=2", Map.of("numFiles", "1"));
        String id = TestTable.newId();
        die(fixture, metastore, id, Overwrite.below(List.of("")), 0, TestTable::count);
        fixture.access(metastore).store().replace(Journal.abandoned(id), Journal.NOTHING);
        fixture.put("k=2/foreign", "f");

        Recovery.recover(fixture.access(metastore), Choices.of(Run.REAL));

        assertEquals(rows("k=1:n1", "k=1:m1", "k=2:f", "k=3:n3"), fixture.rows());
        assertEquals(Set.of("k=1", "k=2", "k=3"), metastore.parameters.keySet());
    }

    @Test
    void aDamagedRecordDoesNotBlockATableForever() throws IOException {
        TestTable fixture = newBed();
        String id = TestTable.newId();
        Store store = fixture.access(null).store();
        store.begin(Journal.begin(id), new Journal.Begin("owner", 1, "").toBytes());
        store.create(Journal.commit(id), new byte[] {1, 2, 3});
        store.replace(Journal.abandoned(id), Journal.NOTHING);

        assertThrows(IOException.class, () -> ReadGuard.of(fixture.access(null)));
        List<Finding> findings = Recovery.recover(fixture.access(null), new Choices(Run.REAL, true, Superseded.KEEP));

        assertEquals(
                List.of(Verdict.LOST), findings.stream().map(Finding::verdict).toList());
        ReadGuard.of(fixture.access(null));
    }

    @Test
    void damagedEntriesDoNotBlockATableForever() throws IOException {
        for (byte[] damaged : List.of(Journal.NOTHING, new byte[] {0, 0, 0, 0, 0, 0, 0, 0})) {
            TestTable fixture = newBed();
            Store store = fixture.access(null).store();
            store.begin(Journal.begin(TestTable.newId()), damaged);
            fixture.run(Overwrite.nothing(), "k=9", "begun");

            String id = TestTable.newId();
            die(fixture, id, Overwrite.touched(), 0);
            store.create(Journal.published(id), damaged);
            IOException stuck = assertThrows(IOException.class, () -> fixture.run(Overwrite.nothing(), "k=9", "next"));
            store.replace(Journal.abandoned(id), Journal.NOTHING);
            List<Finding> findings =
                    Recovery.recover(fixture.access(null), new Choices(Run.REAL, true, Superseded.KEEP));

            assertTrue(stuck.getMessage().contains("--accept-loss"), stuck::getMessage);
            Finding lost = findings.stream()
                    .filter(finding -> finding.job().equals(id))
                    .findFirst()
                    .orElseThrow();
            assertEquals(Verdict.LOST, lost.verdict());
            assertEquals(
                    2,
                    lost.steps().stream()
                            .filter(step -> step.startsWith("not deleted k=1/"))
                            .count(),
                    lost::toString);
            Set<String> expected = new TreeSet<>(OLD);
            expected.addAll(rows("k=1:n1", "k=1:m1", "k=3:n3", "k=9:begun", "k=9:next"));
            fixture.run(Overwrite.nothing(), "k=9", "next");
            assertEquals(expected, fixture.rows());
        }
    }

    @Test
    void aTableRenamedAfterACommitIsFinishedOrTheErrorSaysWhatToDo() throws IOException {
        TestTable fixture = newBed();
        die(fixture, TestTable.newId(), Overwrite.touched(), 1);
        Path elsewhere = new Path(fixture.table.getParent(), "renamed");
        assertTrue(fixture.fs.rename(fixture.table, elsewhere));
        TestTable renamed = new TestTable(elsewhere, fixture.conf);

        if (hasDirectories()) {
            ReadGuard.of(renamed.access(null));
            assertEquals(OVERWRITTEN, renamed.rows());
        } else {
            // Uploads are bound to their keys.
            Set<String> torn = renamed.rows();
            IOException e = assertThrows(IOException.class, () -> ReadGuard.of(renamed.access(null)));
            assertTrue(
                    e.getMessage().contains("rename the table back, recover it, and rename it again"), e::getMessage);
            assertEquals(torn, renamed.rows());
            assertTrue(fixture.fs.rename(elsewhere, fixture.table));
            ReadGuard.of(fixture.access(null));
            assertEquals(OVERWRITTEN, fixture.rows());
        }
    }

    /** Readers may have seen its rows for a moment. */
    @Test
    void aStatementIsRefusedIfACommitThatItMayHaveReadIsRevoked() throws IOException {
        TestTable fixture = newBed();
        ReadGuard guard = ReadGuard.of(fixture.access(null));
        String id = TestTable.newId();
        Store quiet = fixture.access(null).store();
        FaultyStore store = new FaultyStore(quiet, Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
            if (quiet.read(Journal.commit(id)) != null
                    && fixture.rows().contains("k=1:n1")
                    && !fixture.rows().contains("k=1:m1")) {
                happen(fixture, Foreign.ABORT_UPLOADS);
            }
        });
        try (DirectJob job = DirectJob.begin(fixture.access(null).through(store), id, "")) {
            CommitPlan plan = new CommitPlan(write(store, fixture, id), Overwrite.nothing());
            IOException revoked = assertThrows(IOException.class, () -> job.commit(plan));
            assertTrue(revoked.getMessage().contains("nothing is written"), revoked::getMessage);
        }
        assertEquals(OLD, fixture.rows());

        assertThrows(ConflictException.class, () -> guard.check(fixture.access(null)));
        String late = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.access(null), late, "")) {
            CommitPlan plan = new CommitPlan(
                    fixture.attempt(job.placement(), late, "0", "k=1", "copy").commit(path -> true),
                    Overwrite.touched());
            assertThrows(ConflictException.class, () -> job.commit(plan.hasRead(guard.version())));
            job.abort();
        }
        assertEquals(OLD, fixture.rows());
    }

    @Test
    void aLateBeginEntryRemovesNoVisibleFiles() throws IOException {
        TestTable fixture = newBed();
        String id = TestTable.newId();
        String made = io.millstream.write.store.SwapDirectories.of(id, "k=1");
        fixture.put(made + "/part-0-" + id, "live");
        Store store = fixture.access(null).store();
        store.begin(Journal.begin(id), new Journal.Begin("owner", 1, "").toBytes());
        store.replace(Journal.abandoned(id), Journal.NOTHING);

        assertEquals(
                Verdict.ROLL_BACK,
                new Resolution(fixture.access(null)).resolve(id).verdict());

        List<FileStatus> left = new ArrayList<>(List.of(fixture.fs.listStatus(new Path(fixture.table, made))));
        assertEquals(
                1,
                left.stream()
                        .filter(status -> status.getPath().getName().startsWith("part-"))
                        .count());
    }
}
