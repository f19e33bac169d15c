package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.protocol.FaultyStore.Died;
import io.millstream.write.protocol.FaultyStore.Moment;
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

/** Overwrites that one change of the catalog makes visible: readers that use the catalog see either old or new rows. */
abstract class SwapContract extends StoreContract {
    /** The steps of a job after which a foreign writer runs; a selection where all would take too long. */
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
    private static final Statement DYNAMIC = new Statement(
            Overwrite.touched(), TWO, List.of("k=1", "n1", "k=3", "n3"), rows("k=1:n1", "k=2:o2", "k=3:n3"));
    private static final Statement STATIC = new Statement(
            Overwrite.below(List.of("")), TWO, List.of("k=1", "n1", "k=3", "n3"), rows("k=1:n1", "k=3:n3"));
    private static final Statement WHOLE =
            new Statement(Overwrite.below(List.of("")), List.of("", "o"), List.of("", "n"), rows(":n"));

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
        SwapTable fixture = new SwapTable(newTable(), conf);
        for (int i = 0; i < statement.old.size(); i += 2) {
            fixture.put(statement.old.get(i), statement.old.get(i + 1));
        }
        fixture.allow(statement.oldRows(), statement.newRows);
        return fixture;
    }

    private static void overwrite(SwapTable fixture, Store store, String id, Statement statement) throws IOException {
        try (DirectJob job = DirectJob.begin(fixture.through(store), id, "")) {
            TaskAttempt attempt = store.attempt(id, "0");
            List<String> files = new ArrayList<>(statement.files);
            for (int i = 0; i < files.size(); i += 2) {
                files.set(i, SwapDirectories.of(id, files.get(i)));
            }
            fixture.fixture.fill(attempt, id, files.toArray(new String[0]));
            job.commit(fixture.plan(id, attempt.commit(path -> true), statement.overwrite));
        }
    }

    private static void overwrite(SwapTable fixture, Statement statement) throws IOException {
        overwrite(fixture, store(fixture), TestTable.newId(), statement);
    }

    private static Store store(SwapTable fixture) throws IOException {
        return fixture.fixture.access(fixture).store();
    }

    private static String dieAt(SwapTable fixture, String id, Statement statement, int step, Moment moment)
            throws IOException {
        FaultyStore store = new FaultyStore(store(fixture), step, moment).watchedBy(fixture::look);
        try {
            overwrite(fixture, store, id, statement);
        } catch (Died e) {
            // The test continues.
        }
        store(fixture).begin(Journal.abandoned(id), Journal.NOTHING);
        return store.diedAt();
    }

    private static String recoverAndDieAt(SwapTable fixture, int step, Moment moment) throws IOException {
        FaultyStore store = new FaultyStore(store(fixture), step, moment).watchedBy(fixture::look);
        try {
            Recovery.recover(fixture.through(store), Choices.of(Run.REAL));
        } catch (Died e) {
            // The test continues.
        }
        return store.diedAt();
    }

    private static void checkSettled(SwapTable fixture, String id, String diedAt) throws IOException {
        fixture.look();
        fixture.checkAll("after the recovery from a death " + diedAt);
        assertEquals(List.of(), store(fixture).leftovers("", id::equals), diedAt);
        fixture.fixture.conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, 0);
        recoverUntilNothingIsKept(fixture);
        assertEquals(Set.of(), fixture.lost(), diedAt);
    }

    /** A store's clock may have a resolution of one second, and files with a keep time of 0 are kept until it ticks. */
    private static void recoverUntilNothingIsKept(SwapTable fixture) throws IOException {
        for (int tries = 0;
                store(fixture).journal().stream().anyMatch(e -> e.name().endsWith(".replaced")) && tries < 200;
                tries++) {
            pause();
            Recovery.recover(fixture.through(store(fixture)), Choices.of(Run.REAL));
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
                SwapTable fixture = newBed(statement);
                String id = TestTable.newId();
                String diedAt = dieAt(fixture, id, statement, step, moment);
                fixture.look();
                fixture.checkAll("before the recovery from a death " + diedAt);
                if (diedAt == null) {
                    break;
                }
                recoverAndDieAt(fixture, Integer.MAX_VALUE, moment);
                checkSettled(fixture, id, diedAt);
                seen.add(fixture.rows().equals(statement.newRows) ? "new" : "old");
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
    void theRecoveryMayDieToo() throws IOException {
        for (int step = 1; ; step++) {
            String diedAt = null;
            for (int recoveryStep = 1; ; recoveryStep++) {
                SwapTable fixture = newBed(STATIC);
                String id = TestTable.newId();
                diedAt = dieAt(fixture, id, STATIC, step, Moment.AFTER);
                String recoveryDiedAt = diedAt == null ? null : recoverAndDieAt(fixture, recoveryStep, Moment.AFTER);
                if (recoveryDiedAt == null) {
                    break;
                }
                recoverAndDieAt(fixture, Integer.MAX_VALUE, Moment.AFTER);
                checkSettled(fixture, id, diedAt + ", then " + recoveryDiedAt);
            }
            if (diedAt == null) {
                return;
            }
        }
    }

    @Test
    void replacedFilesAreKeptForRunningQueriesAndThenDeleted() throws IOException {
        SwapTable fixture = newBed(STATIC);
        fixture.look();
        overwrite(fixture, STATIC);
        assertEquals(STATIC.newRows, fixture.rows());
        assertEquals(List.of(), Recovery.recover(fixture.through(store(fixture)), Choices.of(Run.REAL)));
        fixture.checkAll("later");
        fixture.fixture.conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, 0);
        pause();

        Finding dry = Recovery.recover(fixture.through(store(fixture)), Choices.of(Run.DRY))
                .get(0);

        assertEquals(Verdict.REMOVE_REPLACED, dry.verdict());
        assertEquals(2, dry.steps().size(), dry::toString);
        checkSettled(fixture, TestTable.newId(), "");
        assertEquals(
                List.of(),
                store(fixture).journal().stream()
                        .filter(e -> !e.name().startsWith("done-"))
                        .toList());
    }

    @Test
    void withoutAKeepTimeReplacedFilesAreDeletedWithTheCommit() throws IOException {
        SwapTable fixture = newBed(DYNAMIC, 0);

        overwrite(fixture, DYNAMIC);

        assertEquals(DYNAMIC.newRows, fixture.rows());
        assertEquals(Set.of(), fixture.lost());
        assertEquals(
                List.of(),
                store(fixture).journal().stream()
                        .filter(e -> !e.name().startsWith("done-"))
                        .toList());
    }

    @Test
    void restoredPartitionsKeepTheirFiles() throws IOException {
        SwapTable fixture = newBed(STATIC);
        overwrite(fixture, STATIC);
        fixture.catalog.put("k=1", new Path(fixture.fixture.table, "k=1").toString());
        fixture.fixture.conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, 0);

        recoverUntilNothingIsKept(fixture);

        assertEquals(rows("k=1:o1", "k=3:n3"), fixture.rows());
        assertThrows(
                IOException.class, () -> fixture.fixture.fs.getFileStatus(new Path(fixture.fixture.table, "k=2/old")));
    }

    @Test
    void restoredPartitionsKeepTheirNestedDirectories() throws IOException {
        SwapTable fixture = newBed(STATIC);
        Path deep = new Path(fixture.fixture.table, "k=1/deep/old");
        fixture.fixture.write(deep, "o");
        overwrite(fixture, STATIC);
        fixture.catalog.put("k=1", new Path(fixture.fixture.table, "k=1").toString());
        fixture.fixture.conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, 0);

        recoverUntilNothingIsKept(fixture);

        assertEquals(1, fixture.fixture.fs.getFileStatus(deep).getLen());
    }

    @Test
    void filesOfARenamedTableStay() throws IOException {
        for (int step = 1; ; step++) {
            SwapTable fixture = newBed(STATIC);
            String diedAt = dieAt(fixture, TestTable.newId(), STATIC, step, Moment.AFTER);
            if (diedAt == null) {
                return;
            }
            boolean isKept =
                    store(fixture).journal().stream().anyMatch(e -> e.name().endsWith(".replaced"));
            fixture.isOfAnother = true;
            fixture.fixture.conf.setLong(WriteOptions.KEEP_REPLACED_MILLIS, 0);

            boolean isRefused = false;
            for (int tries = 0; tries < (isKept ? 200 : 2) && !isRefused; tries++) {
                pause();
                try {
                    recoverAndDieAt(fixture, Integer.MAX_VALUE, Moment.AFTER);
                } catch (IOException e) {
                    assertTrue(
                            e.getMessage().contains("db.t is gone, was renamed or is now another table"),
                            e::getMessage);
                    isRefused = true;
                }
                fixture.look();
            }
            assertEquals(isKept, isRefused, diedAt);
            try (DirectJob next = DirectJob.begin(fixture.through(store(fixture)), TestTable.newId(), "")) {
                next.abort();
            }
            fixture.look();
        }
    }

    @Test
    void aJobThatFinishedAfterItSeemedDeadKeepsItsFiles() throws IOException {
        SwapTable fixture = newBed(STATIC, 0);
        String id = TestTable.newId();
        overwrite(fixture, store(fixture), id, STATIC);

        Finding finding = new Resolution(fixture.through(store(fixture))).resolve(id);

        assertEquals(Verdict.ALIVE, finding.verdict());
        assertEquals(STATIC.newRows, fixture.rows());
    }

    @Test
    void replacedRowsDoNotComeBackWithAPartitionThatWasDropped() throws IOException {
        SwapTable fixture = newBed(DYNAMIC);
        overwrite(fixture, DYNAMIC);
        fixture.catalog.remove("k=1");
        String id = TestTable.newId();

        try (DirectJob job = DirectJob.begin(fixture.fixture.access(fixture), id, "")) {
            List<StagedFile> files = fixture.fixture
                    .attempt(job.placement(), id, "0", "k=1", "again")
                    .commit(path -> true);
            job.commit(new CommitPlan(files, Overwrite.nothing())
                    .survey(touched -> new CommitPlan.Found(touched, touched, false)));
        }
        fixture.catalog.put("k=1", new Path(fixture.fixture.table, "k=1").toString());

        assertEquals(rows("k=1:again", "k=2:o2", "k=3:n3"), fixture.rows());
    }

    @Test
    void aSecondSwapReplacesTheFirst() throws IOException {
        SwapTable fixture = newBed(WHOLE);
        overwrite(fixture, WHOLE);
        Path moved = new Path(fixture.catalog.get(""));
        assertEquals(fixture.fixture.table, SwapDirectories.home(moved));
        fixture.allow(rows(":n"), rows(":n2"));

        overwrite(
                fixture, new Statement(Overwrite.below(List.of("")), List.of("", "n"), List.of("", "n2"), rows(":n2")));

        assertEquals(rows(":n2"), fixture.rows());
        checkSettled(fixture, TestTable.newId(), "");
    }

    @Test
    void filesOutsideTheTableAreReplacedToo() throws IOException {
        SwapTable fixture = newBed(DYNAMIC);
        Path outside = new Path(fixture.fixture.table.getParent(), fixture.fixture.table.getName() + "-outside");
        fixture.fixture.write(new Path(outside, "old"), "o1");
        fixture.catalog.put("k=1", outside.toString());
        fixture.fixture.fs.delete(new Path(fixture.fixture.table, "k=1"), true);

        overwrite(fixture, DYNAMIC);

        assertEquals(DYNAMIC.newRows, fixture.rows());
        checkSettled(fixture, TestTable.newId(), "");
        assertThrows(IOException.class, () -> fixture.fixture.fs.getFileStatus(new Path(outside, "old")));
    }

    @Test
    void aTableThatAnotherProgramOverwroteFirstStaysWhereItIs() throws IOException {
        for (int step = 1; ; step++) {
            SwapTable fixture = newBed(WHOLE);
            fixture.allowAnything();
            String id = TestTable.newId();
            String diedAt = dieAt(fixture, id, WHOLE, step, Moment.AFTER);
            assertTrue(diedAt != null, "there is a commit");
            if (diedAt.endsWith(Journal.commit(id))) {
                fixture.fixture.fs.delete(new Path(fixture.fixture.table, "old"), false);
                fixture.fixture.write(new Path(fixture.fixture.table, "foreign"), "f");

                Recovery.recover(fixture.through(store(fixture)), Choices.of(Run.REAL));

                assertEquals(rows(":f"), fixture.rows());
                assertEquals(1, store(fixture).leftovers("", id::equals).size(), "the job's rows are kept");
                return;
            }
        }
    }

    /** A write by a program that does not know the journal, at the partition's current location. */
    private enum Foreign {
        OVERWRITE,
        INSERT_INTO,
        DROP_PARTITION;

        void happen(SwapTable fixture) throws IOException {
            String location = fixture.catalog.get("k=1");
            Path directory = location == null ? new Path(fixture.fixture.table, "k=1") : new Path(location);
            if (this != INSERT_INTO) {
                fixture.fixture.fs.delete(directory, true);
            }
            if (this == DROP_PARTITION) {
                fixture.catalog.remove("k=1");
            } else {
                fixture.fixture.write(new Path(directory, "foreign"), "f");
                fixture.catalog.putIfAbsent("k=1", directory.toString());
            }
        }

        /** The rows after both writes, in either order. */
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

    /** Runs a job with a foreign writer after one of its steps; returns whether the job has that many steps. */
    private boolean comeAfter(int step, Foreign foreign) throws IOException {
        SwapTable fixture = newBed(DYNAMIC);
        fixture.fixture.conf.setInt(WriteOptions.HELP_AFTER_MILLIS, 0);
        fixture.allowAnything();
        int[] steps = {0};
        FaultyStore store = new FaultyStore(store(fixture), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
            if (++steps[0] == step) {
                foreign.happen(fixture);
            }
        });
        String error = null;
        try {
            overwrite(fixture, store, TestTable.newId(), DYNAMIC);
        } catch (IOException e) {
            error = e.getMessage();
        }
        if (steps[0] < step) {
            return false;
        }
        String where = foreign + " after step " + step + ": " + error + ", " + fixture.rows();
        assertTrue(error != null || foreign.orders().contains(fixture.rows()), where);
        assertTrue(
                error == null
                        || !error.contains("nothing is written")
                        || !fixture.rows().contains("k=1:n1"),
                where);
        try {
            Recovery.recover(fixture.through(store(fixture)), Choices.of(Run.REAL));
        } catch (IOException e) {
            assertTrue(e.getMessage().contains("--accept-loss"), () -> where + ", then " + e.getMessage());
            Recovery.recover(fixture.through(store(fixture)), new Choices(Run.REAL, true, Recovery.Superseded.KEEP));
        }
        assertTrue(!fixture.rows().containsAll(rows("k=1:o1", "k=1:n1")), where);
        Statement next = new Statement(Overwrite.touched(), List.of(), List.of("k=1", "next"), Set.of());
        overwrite(fixture, next);
        assertEquals(
                Set.of("k=1:next"),
                fixture.rows().stream().filter(row -> row.startsWith("k=1:")).collect(Collectors.toSet()),
                where);
        return true;
    }

    @Test
    void foreignWriters() throws IOException {
        for (Foreign foreign : Foreign.values()) {
            // The assertions name the step.
            int step = ThreadLocalRandom.current().nextInt(stride()) + 1;
            while (comeAfter(step, foreign)) {
                step += stride();
            }
            assertTrue(step > 10, "there are steps");
        }
    }
}
