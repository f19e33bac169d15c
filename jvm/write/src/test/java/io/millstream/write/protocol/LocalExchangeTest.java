package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.protocol.FaultyStore.Died;
import io.millstream.write.protocol.FaultyStore.Moment;
import io.millstream.write.protocol.FaultyStore.Watcher;
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

/**
 * Overwrites that exchange directories: a listing of a partition shows, at any time, either all old or all new files.
 */
class LocalExchangeTest {
    private static final String OTHER = "11111111-1111-1111-1111-111111111111";
    private static final Set<String> OLD_ROWS = rows("k=1:o1", "k=1:p1", "k=2:o2", "k=2:p2");
    private static final String[] FILES = {"k=1", "n1", "k=1", "m1", "k=3", "n3", "k=3", "m3"};
    private static final Statement DYNAMIC =
            new Statement(Overwrite.touched(), rows("k=1:n1", "k=1:m1", "k=2:o2", "k=2:p2", "k=3:n3", "k=3:m3"));
    private static final Statement STATIC =
            new Statement(Overwrite.below(List.of("")), rows("k=1:n1", "k=1:m1", "k=3:n3", "k=3:m3"));

    @TempDir
    Path directory;

    private int tables;

    private record Statement(Overwrite overwrite, Set<String> newRows) {}

    private static Set<String> rows(String... rows) {
        return new TreeSet<>(List.of(rows));
    }

    private static Set<String> ofPartition(Set<String> rows, String partition) {
        return rows.stream()
                .filter(row -> row.startsWith(partition + ":"))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    /** A table with two partitions; one of them contains a success mark and a staged file of another job. */
    private final class Fixture implements Metastore {
        final Statement statement;
        final Path root = directory.resolve("table" + tables++);
        final TestTable fixture;
        final String id = TestTable.newId();
        final Map<String, String> catalog = new HashMap<>(Map.of("k=1", "2", "k=2", "2"));

        Fixture(Statement statement) throws IOException {
            this.statement = statement;
            Configuration conf = new Configuration(false);
            conf.setBoolean(WriteOptions.SYNC, false);
            conf.setInt(WriteOptions.THREADS, 1);
            fixture = new TestTable(new org.apache.hadoop.fs.Path("file://" + root), conf);
            for (String row : List.of("1", "2")) {
                put("k=" + row + "/old", "o" + row);
                put("k=" + row + "/older", "p" + row);
            }
            put("k=1/_SUCCESS", "");
            put("k=1/" + staged(), "more");
        }

        /** Writes without Hadoop, which starts a process for each file that it creates. */
        void put(String file, String row) throws IOException {
            Path path = root.resolve(file);
            Files.createDirectories(path.getParent());
            Files.writeString(path, row);
        }

        static String staged() {
            return ".direct-" + OTHER + "-0.part";
        }

        Store store() throws IOException {
            return fixture.access(this).store();
        }

        TableAccess through(Store store) throws IOException {
            return fixture.access(this).through(store);
        }

        /** Each partition is either old or new; a partition that only loses files may lose them one by one. */
        void look() throws IOException {
            assertTrue(
                    isWhole("k=1", Set.of("old", "older")) && isWhole("k=3", Set.of()),
                    () -> "seen: " + names("k=1") + names("k=3"));
            boolean isEmptied = statement.overwrite == STATIC.overwrite;
            assertTrue(
                    isEmptied
                            ? Set.of("old", "older").containsAll(names("k=2"))
                            : names("k=2").size() == 2,
                    () -> "seen: " + names("k=2"));
        }

        private boolean isWhole(String partition, Set<String> old) {
            Set<String> found = names(partition);
            return found.equals(old) || found.size() == 2 && found.stream().allMatch(name -> name.contains(id));
        }

        private Set<String> names(String partition) {
            String[] found = root.resolve(partition).toFile().list();
            return found == null
                    ? Set.of()
                    : Stream.of(found).filter(name -> !Names.isHidden(name)).collect(Collectors.toSet());
        }

        void overwrite(Store store, String job, String... files) throws IOException {
            try (DirectJob begun = DirectJob.begin(through(store), job, "")) {
                TaskAttempt attempt = store.attempt(job, "0");
                for (int i = 0; i < files.length; i += 2) {
                    Path file = Path.of(attempt.file(SwapDirectories.of(job, files[i]), "part-" + i + "-" + job)
                            .toUri()
                            .getPath());
                    Files.createDirectories(file.getParent());
                    Files.writeString(file, files[i + 1]);
                }
                try {
                    begun.commit(new CommitPlan(attempt.commit(path -> true), statement.overwrite)
                            .metastore(this::change)
                            .exchange(SwapDirectories::partition)
                            .distribution(batches -> run(batches)));
                } catch (IOException e) {
                    begun.abort();
                    throw e;
                }
            }
        }

        private void run(List<ApplyBatch> batches) throws IOException {
            for (ApplyBatch batch : batches) {
                batch.run(fixture.conf);
            }
        }

        private MetastoreChange change(CommitDraft draft) {
            Map<String, Long> counts = new HashMap<>();
            draft.added().forEach((made, totals) -> counts.put(SwapDirectories.partition(made), totals.files()));
            List<MetastoreChange.Partition> partitions = counts.entrySet().stream()
                    .map(e -> new MetastoreChange.Partition(
                            e.getKey(), null, Map.of("numFiles", e.getValue().toString())))
                    .toList();
            List<String> dropped = draft.deleted().keySet().stream()
                    .filter(partition -> !counts.containsKey(partition))
                    .toList();
            return new MetastoreChange("db", "t", partitions, dropped, Map.of(), Set.of());
        }

        @Override
        public void apply(MetastoreChange change, JobState jobState) {
            change.partitions()
                    .forEach(partition ->
                            catalog.put(partition.name(), partition.parameters().get("numFiles")));
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

        /** The step at which the job died; null if it completed. */
        String dieAt(int step, Moment moment, Watcher watcher) throws IOException {
            FaultyStore store = new FaultyStore(store(), step, moment).watchedBy(watcher);
            try {
                overwrite(store, id, FILES);
            } catch (Died e) {
                // The test continues.
            }
            store().begin(Journal.abandoned(id), Journal.NOTHING);
            return store.diedAt();
        }

        String recoverAndDieAt(int step, Watcher watcher) throws IOException {
            FaultyStore store = new FaultyStore(store(), step, Moment.AFTER).watchedBy(watcher);
            try {
                Recovery.recover(through(store), Choices.of(Run.REAL));
            } catch (Died e) {
                // The test continues.
            }
            return store.diedAt();
        }

        /** All rows are old or all are new, and files that are not the job's are where they were. */
        void check(String diedAt) throws IOException {
            boolean isNew = fixture.rows().equals(statement.newRows);
            Set<String> expected = isNew ? statement.newRows : OLD_ROWS;
            assertEquals(expected, fixture.rows(), diedAt);
            assertEquals(
                    expected.stream()
                            .map(row -> row.substring(0, row.indexOf(':')))
                            .collect(Collectors.toSet()),
                    catalog.keySet(),
                    diedAt);
            assertEquals(List.of(), store().leftovers("", id::equals), diedAt);
            assertTrue(Files.exists(root.resolve("k=1/_SUCCESS")), diedAt);
            assertEquals(List.of(), swaps(), diedAt);
        }

        List<String> swaps() throws IOException {
            try (Stream<Path> found = Files.list(root)) {
                return found.map(path -> path.getFileName().toString())
                        .filter(SwapDirectories::isOne)
                        .toList();
            }
        }
    }

    private void dieAtEveryStep(Statement statement) throws IOException {
        for (Moment moment : Moment.values()) {
            Set<String> seen = new TreeSet<>();
            for (int step = 1; ; step++) {
                Fixture fixture = new Fixture(statement);
                String diedAt = fixture.dieAt(step, moment, fixture::look);
                fixture.look();
                if (diedAt == null) {
                    fixture.check("not at all");
                    break;
                }
                fixture.recoverAndDieAt(Integer.MAX_VALUE, fixture::look);
                fixture.check(diedAt);
                seen.add(fixture.fixture.rows().equals(OLD_ROWS) ? "old" : "new");
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
    void theRecoveryMayDieToo() throws IOException {
        for (int step = 1; ; step++) {
            String diedAt = null;
            for (int recoveryStep = 1; ; recoveryStep++) {
                Fixture fixture = new Fixture(STATIC);
                diedAt = fixture.dieAt(step, Moment.AFTER, fixture::look);
                String recoveryDiedAt = diedAt == null ? null : fixture.recoverAndDieAt(recoveryStep, fixture::look);
                if (recoveryDiedAt == null) {
                    break;
                }
                fixture.recoverAndDieAt(Integer.MAX_VALUE, fixture::look);
                fixture.check(diedAt + ", then " + recoveryDiedAt);
            }
            if (diedAt == null) {
                return;
            }
        }
    }

    /**
     * A driver sleeps after one of its steps; its job is finished by another, which then overwrites the table; the
     * driver continues.
     */
    @Test
    void aDriverThatWakesUpAtAnyStepDoesNoHarm() throws IOException {
        Set<String> next = rows("k=1:x1", "k=3:x3");
        // At its first step, the job has not begun yet.
        for (int step = 2; ; step++) {
            Fixture fixture = new Fixture(STATIC);
            AtomicInteger steps = new AtomicInteger();
            int sleepsAfter = step;
            try {
                fixture.overwrite(
                        new FaultyStore(fixture.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
                            if (steps.incrementAndGet() == sleepsAfter) {
                                fixture.store().begin(Journal.abandoned(fixture.id), Journal.NOTHING);
                                fixture.overwrite(fixture.store(), TestTable.newId(), "k=1", "x1", "k=3", "x3");
                            }
                        }),
                        fixture.id,
                        FILES);
            } catch (IOException e) {
                // Otherwise it finds its commit finished.
            }
            if (steps.get() < step) {
                return;
            }
            Recovery.recover(fixture.through(fixture.store()), Choices.of(Run.REAL));
            assertEquals(next, fixture.fixture.rows(), "after step " + step);
            assertEquals(List.of(), fixture.swaps());
        }
    }

    @Test
    void filesAddedByOthersAfterTheListingStay() throws IOException {
        for (int step = 1; ; step++) {
            Fixture fixture = new Fixture(DYNAMIC);
            AtomicInteger steps = new AtomicInteger();
            int comesAfter = step;
            boolean[] isLate = {false};
            fixture.overwrite(
                    new FaultyStore(fixture.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
                        if (steps.incrementAndGet() == comesAfter) {
                            isLate[0] = fixture.store().read(Journal.commit(fixture.id)) != null;
                            fixture.put("k=1/late", "late");
                        }
                    }),
                    fixture.id,
                    FILES);
            if (steps.get() < step) {
                return;
            }
            if (isLate[0]) {
                assertEquals(
                        rows("k=1:late", "k=1:n1", "k=1:m1"),
                        ofPartition(fixture.fixture.rows(), "k=1"),
                        "after step " + step);
            }
            assertEquals("more", Files.readString(fixture.root.resolve("k=1").resolve(Fixture.staged())));
        }
    }

    /** A write by a program that does not know the journal. */
    private enum Foreign {
        OVERWRITE,
        OVERWRITE_OF_THE_NEW,
        INSERT_INTO,
        DROP_PARTITION,
        DROP_TABLE;

        void happen(Fixture fixture) throws IOException {
            switch (this) {
                case OVERWRITE -> {
                    delete(fixture.root.resolve("k=1"));
                    fixture.put("k=1/foreign", "f");
                }
                case OVERWRITE_OF_THE_NEW -> {
                    delete(fixture.root.resolve("k=3"));
                    fixture.put("k=3/foreign", "f");
                }
                case INSERT_INTO -> fixture.put("k=1/foreign", "f");
                case DROP_PARTITION -> delete(fixture.root.resolve("k=1"));
                case DROP_TABLE -> delete(fixture.root);
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

    /**
     * Runs an overwrite with a foreign writer after one of its steps; returns the outcome, or null if there are fewer
     * steps.
     */
    private String comeAfter(int step, Foreign foreign) throws IOException {
        Fixture fixture = new Fixture(DYNAMIC);
        fixture.fixture.conf.setInt(WriteOptions.HELP_AFTER_MILLIS, 0);
        AtomicInteger steps = new AtomicInteger();
        String error = null;
        try {
            fixture.overwrite(
                    new FaultyStore(fixture.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
                        if (steps.incrementAndGet() == step) {
                            foreign.happen(fixture);
                        }
                    }),
                    fixture.id,
                    FILES);
        } catch (IOException e) {
            error = e.getMessage();
        }
        if (steps.get() < step) {
            return null;
        }
        Set<String> found = fixture.fixture.rows();
        String where = foreign + " after step " + step + ": " + error + ", " + found;
        // The result of both, in either order.
        Set<String> first = foreign.after(OLD_ROWS);
        first.removeIf(row -> !row.startsWith("k=2:"));
        first.addAll(rows("k=1:n1", "k=1:m1", "k=3:n3", "k=3:m3"));
        assertTrue(
                error != null
                        || first.equals(found)
                        || foreign.after(DYNAMIC.newRows).equals(found),
                where);
        assertTrue(
                error == null
                        || !error.contains("nothing is written")
                        || found.stream().noneMatch(row -> row.contains(":n") || row.contains(":m")),
                where);
        try {
            Recovery.recover(fixture.through(fixture.store()), Choices.of(Run.REAL));
        } catch (IOException e) {
            assertTrue(e.getMessage().contains("--accept-loss"), () -> where + ", then " + e.getMessage());
            Recovery.recover(fixture.through(fixture.store()), new Choices(Run.REAL, true, Recovery.Superseded.KEEP));
        }
        Set<String> recovered = fixture.fixture.rows();
        assertTrue(!recovered.containsAll(rows("k=1:o1", "k=1:n1")), () -> where + ", then " + recovered);
        recovered.removeIf(row -> row.startsWith("k=1:"));
        recovered.add("k=1:next");
        fixture.overwrite(fixture.store(), TestTable.newId(), "k=1", "next");
        assertEquals(recovered, fixture.fixture.rows(), where);
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
    void lostFilesOfAnEndedJobAreListed() throws IOException {
        Fixture fixture = new Fixture(DYNAMIC);
        FaultyStore store = new FaultyStore(fixture.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
            if (fixture.store().read(Journal.published(fixture.id)) != null) {
                throw new Died();
            }
        });
        assertThrows(Died.class, () -> fixture.overwrite(store, fixture.id, FILES));
        fixture.store().begin(Journal.abandoned(fixture.id), Journal.NOTHING);
        // The directory cannot be exchanged, and no file can be moved to it.
        Foreign.delete(fixture.root.resolve("k=3"));
        Files.writeString(fixture.root.resolve("k=3"), "a file in its place");

        IOException stuck = assertThrows(
                IOException.class, () -> Recovery.recover(fixture.through(fixture.store()), Choices.of(Run.REAL)));
        List<Finding> findings = Recovery.recover(
                fixture.through(fixture.store()), new Choices(Run.REAL, true, Recovery.Superseded.KEEP));

        assertTrue(stuck.getMessage().contains("--accept-loss"), stuck::getMessage);
        assertEquals(
                List.of(Verdict.LOST), findings.stream().map(Finding::verdict).toList());
        List<String> lost = findings.get(0).steps().stream()
                .filter(line -> line.startsWith("lost k=3/") && line.contains("which no reader finds"))
                .toList();
        assertEquals(2, lost.size(), findings::toString);
        fixture.overwrite(fixture.store(), TestTable.newId(), "k=1", "next");
        assertEquals(rows("k=1:next"), ofPartition(fixture.fixture.rows(), "k=1"));
    }

    @Test
    void checksumsAreDeletedWithTheirFiles() throws IOException {
        Fixture fixture = new Fixture(DYNAMIC);
        for (String name : List.of("old", "late")) {
            fixture.fixture.put("k=1/" + name, name);
        }
        Store store = new FaultyStore(fixture.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
            if (fixture.store().read(Journal.published(fixture.id)) != null
                    && fixture.fixture.rows().contains("k=1:late")) {
                fixture.fixture.put("k=1/late", "later");
            }
        });
        assertThrows(SupersededException.class, () -> fixture.overwrite(store, fixture.id, FILES));

        try (Stream<Path> files = Files.list(fixture.root.resolve("k=1"))) {
            assertEquals(
                    Set.of(".late.crc"),
                    files.map(file -> file.getFileName().toString())
                            .filter(name -> name.endsWith(".crc"))
                            .collect(Collectors.toSet()));
        }
        assertEquals(rows("k=1:later", "k=1:n1", "k=1:m1"), ofPartition(fixture.fixture.rows(), "k=1"));
    }

    @Test
    void rewrittenOldFilesStay() throws IOException {
        Fixture fixture = new Fixture(DYNAMIC);
        Store store = new FaultyStore(fixture.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
            if (fixture.store().read(Journal.published(fixture.id)) != null
                    && Files.exists(fixture.root.resolve("k=1/old"))) {
                fixture.fixture.put("k=1/old", "written anew");
            }
        });
        assertThrows(SupersededException.class, () -> fixture.overwrite(store, fixture.id, FILES));

        assertEquals(rows("k=1:written anew", "k=1:n1", "k=1:m1"), ofPartition(fixture.fixture.rows(), "k=1"));
    }

    /** Its files are temporarily in an exchanged directory: it must not conclude that they were never written. */
    @Test
    void anAttemptOfAnotherJobFindsItsFilesDuringAnExchange() throws Exception {
        for (int step = 1; ; step++) {
            Fixture fixture = new Fixture(DYNAMIC);
            String other = TestTable.newId();
            try (DirectJob insert = DirectJob.begin(fixture.fixture.access(fixture), other, "")) {
                TaskAttempt attempt = fixture.fixture.attempt(insert.placement(), other, "0", "k=1", "inserted");
                FutureTask<List<StagedFile>> ends = new FutureTask<>(() -> attempt.commit(path -> true));
                AtomicInteger steps = new AtomicInteger();
                int endsAfter = step;
                fixture.overwrite(
                        new FaultyStore(fixture.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
                            if (steps.incrementAndGet() == endsAfter) {
                                new Thread(ends).start();
                                pause();
                            }
                        }),
                        fixture.id,
                        FILES);
                if (steps.get() < step) {
                    return;
                }
                insert.commit(new CommitPlan(ends.get(), Overwrite.nothing()));
            }
            assertEquals(
                    rows("k=1:inserted", "k=1:n1", "k=1:m1"),
                    ofPartition(fixture.fixture.rows(), "k=1"),
                    "after step " + step);
        }
    }

    private static void pause() throws IOException {
        io.millstream.write.store.Pause.sleep(10);
    }

    @Test
    void anAttemptDoesNotWaitForeverForADeadJob() throws IOException {
        Fixture fixture = new Fixture(DYNAMIC);
        fixture.fixture.conf.setLong(WriteOptions.LEASE_MILLIS, 50);
        Files.createDirectories(fixture.root.resolve(SwapDirectories.of(OTHER, "k=1")));
        fixture.store().begin(Journal.begin(fixture.id), new Journal.Begin("owner", 50, "").toBytes());
        TaskAttempt attempt = fixture.store().attempt(fixture.id, "0");
        attempt.file("k=1", "never-" + fixture.id);
        assertEquals(List.of(), attempt.commit(path -> !path.getName().contains("never")));

        org.apache.hadoop.fs.Path file = attempt.file("k=1", "displaced-" + fixture.id);
        Files.writeString(fixture.root.resolve(SwapDirectories.of(OTHER, "k=1")).resolve(file.getName()), "row");

        assertThrows(
                IOException.class, () -> attempt.commit(path -> !path.getName().contains("never")));
    }

    @Test
    void aLargeExchangeIsDistributed() throws IOException {
        Fixture fixture = new Fixture(STATIC);
        fixture.fixture.conf.setInt(WriteOptions.DISTRIBUTE_FILES, 1);

        fixture.overwrite(fixture.store(), fixture.id, FILES);

        fixture.check("in parts");
        assertEquals(STATIC.newRows, fixture.fixture.rows());
    }

    /** Another process holds the lock to exchange the same directories. */
    @Test
    void anExchangeWaitsForTheHolderOfTheToken() throws IOException {
        Fixture fixture = new Fixture(DYNAMIC);
        Path held = directory.resolve("held");
        Path released = directory.resolve("released");
        Process[] holder = {null};
        fixture.overwrite(
                new FaultyStore(fixture.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
                    if (holder[0] == null && fixture.store().read(Journal.commit(fixture.id)) != null) {
                        String token = fixture.root
                                .resolve(Store.JOURNAL)
                                .resolve("_" + Journal.begin(fixture.id))
                                .toString();
                        holder[0] = new ProcessBuilder(
                                        "flock", token, "sh", "-c", "touch " + held + "; sleep 0.3; touch " + released)
                                .start();
                        while (!Files.exists(held)) {
                            pause();
                        }
                    }
                }),
                fixture.id,
                FILES);

        assertTrue(Files.exists(released));
        fixture.check("after the wait");
    }

    @Test
    void aDirectoryKeepsItsPermissions() throws IOException {
        Fixture fixture = new Fixture(DYNAMIC);
        Files.setPosixFilePermissions(fixture.root.resolve("k=1"), PosixFilePermissions.fromString("rwxr-x---"));

        fixture.overwrite(fixture.store(), fixture.id, FILES);

        assertEquals(
                "rwxr-x---", PosixFilePermissions.toString(Files.getPosixFilePermissions(fixture.root.resolve("k=1"))));
    }

    /** Where a directory is a link or contains one, files are moved one by one, and no row is lost. */
    @Test
    void filesAreMovedWhereDirectoriesCannotBeExchanged() throws IOException {
        for (String odd : List.of("directory", "link")) {
            for (int step = 1; ; step++) {
                Fixture fixture = new Fixture(STATIC);
                Path place = fixture.root.resolve("k=1");
                if (odd.equals("link")) {
                    Files.move(place, fixture.root.resolveSibling(fixture.root.getFileName() + "-elsewhere"));
                    Files.createSymbolicLink(
                            place, fixture.root.resolveSibling(fixture.root.getFileName() + "-elsewhere"));
                } else {
                    fixture.put("k=1/below/old", "deep");
                }
                String diedAt = fixture.dieAt(step, Moment.AFTER, () -> {});
                if (diedAt != null) {
                    fixture.recoverAndDieAt(Integer.MAX_VALUE, () -> {});
                }
                Set<String> rows = fixture.fixture.rows();
                rows.remove("k=1/below:deep");
                assertTrue(
                        rows.equals(STATIC.newRows) || diedAt != null && rows.equals(OLD_ROWS), diedAt + ": " + rows);
                assertEquals(
                        rows.equals(OLD_ROWS) && odd.equals("directory"),
                        fixture.fixture.rows().contains("k=1/below:deep"),
                        diedAt);
                assertEquals(odd.equals("link"), Files.isSymbolicLink(place));
                assertEquals(List.of(), fixture.swaps());
                if (diedAt == null) {
                    break;
                }
            }
        }
    }

    /** Such a commit could not be finished. */
    @Test
    void aDestinationOnAnotherFileSystemRefusesTheCommit() throws IOException {
        Fixture fixture = new Fixture(DYNAMIC);
        Path another = Files.createTempDirectory(Path.of("/dev/shm"), "millstream");
        try {
            Files.createSymbolicLink(fixture.root.resolve("k=3"), another);

            IOException refused =
                    assertThrows(IOException.class, () -> fixture.overwrite(fixture.store(), fixture.id, FILES));

            assertEquals(false, refused instanceof CommittedException, refused::toString);
            fixture.check("after the abort");
            assertEquals(OLD_ROWS, fixture.fixture.rows());
        } finally {
            Files.delete(another);
        }
    }

    @Test
    void aDryRunReportsWhatARecoveryWouldDo() throws IOException {
        Fixture dying = new Fixture(DYNAMIC);
        FaultyStore store = new FaultyStore(dying.store(), Integer.MAX_VALUE, Moment.AFTER).watchedBy(() -> {
            if (dying.store().read(Journal.commit(dying.id)) != null) {
                throw new Died();
            }
        });
        assertThrows(Died.class, () -> dying.overwrite(store, dying.id, FILES));
        dying.store().begin(Journal.abandoned(dying.id), Journal.NOTHING);

        Finding dry = Recovery.recover(dying.through(dying.store()), Choices.of(Run.DRY))
                .get(0);

        assertEquals(Verdict.ROLL_FORWARD, dry.verdict());
        assertTrue(dry.steps().contains("exchange .swap-" + dying.id + "/k=1 and k=1"), dry::toString);
        dying.look();
    }

    @Test
    void supportForExchangesIsProbed() throws IOException {
        Fixture fixture = new Fixture(DYNAMIC);
        Configuration viewFs = new Configuration(false);
        viewFs.set("fs.viewfs.mounttable.default.link./data", "file:///tmp");

        assertEquals(java.util.Optional.empty(), DirectJob.whyNoExchange(fixture.fixture.table, fixture.fixture.conf));
        assertTrue(DirectJob.whyNoExchange(new org.apache.hadoop.fs.Path("viewfs:///data"), viewFs)
                .isPresent());
        assertEquals(List.of(), fixture.store().journal());
    }
}
