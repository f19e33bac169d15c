package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.protocol.FaultyStore.Moment;
import io.millstream.write.store.Store;
import io.millstream.write.store.SwapDirectories;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Attempts that still run when their job ends: Spark aborts a failed job without waiting for its other tasks. */
class LateAttemptTest {
    private static final int NEVER = Integer.MAX_VALUE;
    private static final String OTHER = "11111111-1111-1111-1111-111111111111";

    @TempDir
    Path directory;

    private int tables;

    private final class Fixture {
        final Path root = directory.resolve("table" + tables++);
        final TestTable table;
        final String id = TestTable.newId();

        Fixture() throws IOException {
            Configuration conf = new Configuration(false);
            conf.setBoolean(WriteOptions.SYNC, false);
            conf.setInt(WriteOptions.THREADS, 1);
            table = new TestTable(new org.apache.hadoop.fs.Path("file://" + root), conf);
            Files.createDirectories(root.resolve("k=1"));
            Files.writeString(root.resolve("k=1/old"), "old");
        }

        Store store() throws IOException {
            return table.access(null).store();
        }

        DirectJob begin(Store store) throws IOException {
            return DirectJob.begin(table.access(null).through(store), id, "");
        }

        TaskAttempt attempt(String number) throws IOException {
            return new JobAttempt(store(), id, number);
        }

        /** Writes like Hadoop, which creates missing directories. */
        void write(TaskAttempt attempt, String... directories) throws IOException {
            for (String written : directories) {
                Path file = Path.of(attempt.file(written, "part-" + id).toUri().getPath());
                Files.createDirectories(file.getParent());
                Files.writeString(file, "new");
            }
        }

        String own(String partition) {
            return SwapDirectories.of(id, partition);
        }

        /** Files and directories in directories of jobs. */
        List<String> swapped() throws IOException {
            return content().stream().filter(name -> name.startsWith(".swap-")).toList();
        }

        /** All files and directories. */
        Set<String> content() throws IOException {
            try (Stream<Path> found = Files.walk(root)) {
                return found.map(path -> root.relativize(path).toString())
                        .filter(name -> !name.isEmpty())
                        .collect(Collectors.toCollection(TreeSet::new));
            }
        }
    }

    /** Who rolls a job back. */
    private enum By {
        DRIVER,
        RECOVERY
    }

    /**
     * Runs a job that is rolled back. After one step, an attempt writes; after the same or a later one, the attempt is
     * aborted. Returns the number of steps.
     */
    private int rollBack(By by, Fixture fixture, int writesAfter, int abortedAfter) throws IOException {
        TaskAttempt late = fixture.attempt("0");
        int[] steps = {0};
        FaultyStore watched = new FaultyStore(fixture.store(), NEVER, Moment.AFTER).watchedBy(() -> {
            steps[0]++;
            if (steps[0] == writesAfter) {
                fixture.write(late, fixture.own("k=1"), fixture.own("k=2/l=3"));
            }
            if (steps[0] == abortedAfter) {
                late.abort();
            }
        });
        try (DirectJob job = fixture.begin(watched)) {
            if (by == By.DRIVER) {
                job.abort();
            }
        }
        if (by == By.RECOVERY) {
            new Resolution(fixture.table.access(null).through(watched)).resolve(fixture.id);
        }
        if (writesAfter > steps[0]) {
            fixture.write(late, fixture.own("k=1"), fixture.own("k=2/l=3"));
        }
        if (abortedAfter > steps[0]) {
            late.abort();
        }
        return steps[0];
    }

    @ParameterizedTest
    @EnumSource
    void anAttemptThatWritesDuringARollbackLeavesNothing(By by) throws IOException {
        int steps = rollBack(by, new Fixture(), NEVER, NEVER);
        assertTrue(steps > 5, () -> steps + " steps");
        for (int writesAfter = 1; writesAfter <= steps + 1; writesAfter++) {
            for (int abortedAfter = writesAfter; abortedAfter <= steps + 1; abortedAfter++) {
                Fixture fixture = new Fixture();
                rollBack(by, fixture, writesAfter, abortedAfter);
                assertEquals(
                        List.of(),
                        fixture.swapped(),
                        "written after step " + writesAfter + ", aborted after step " + abortedAfter);
            }
        }
    }

    @Test
    void aRollbackWhileAnAttemptIsAbortedLeavesNothing() throws IOException {
        for (int rolledBackAfter = 1; ; rolledBackAfter++) {
            Fixture fixture = new Fixture();
            DirectJob job = fixture.begin(fixture.store());
            int[] steps = {0};
            int last = rolledBackAfter;
            TaskAttempt late = new JobAttempt(
                    new FaultyStore(fixture.store(), NEVER, Moment.AFTER).watchedBy(() -> {
                        if (++steps[0] == last) {
                            job.abort();
                        }
                    }),
                    fixture.id,
                    "0");
            fixture.write(late, fixture.own("k=1"));
            late.abort();
            job.abort();
            job.close();
            assertEquals(Set.of("k=1", "k=1/old"), fixture.content(), "rolled back after step " + rolledBackAfter);
            if (steps[0] < rolledBackAfter) {
                return;
            }
        }
    }

    @Test
    void theLastOfSeveralLateAttemptsRemovesTheirDirectories() throws IOException {
        Fixture fixture = new Fixture();
        TaskAttempt first = fixture.attempt("0");
        TaskAttempt last = fixture.attempt("1");
        try (DirectJob job = fixture.begin(fixture.store())) {
            job.abort();
        }
        fixture.write(first, fixture.own("k=1"), fixture.own("k=2"));
        fixture.write(last, fixture.own("k=2"), fixture.own("k=3"));
        first.abort();
        assertTrue(fixture.content().contains(fixture.own("k=2")));
        assertTrue(!fixture.content().contains(fixture.own("k=1")));
        last.abort();
        assertEquals(Set.of("k=1", "k=1/old"), fixture.content());
    }

    /** Another attempt may be about to create its file there. */
    @Test
    void aFailedAttemptLeavesTheDirectoriesOfALiveJob() throws IOException {
        Fixture fixture = new Fixture();
        try (DirectJob job = fixture.begin(fixture.store())) {
            TaskAttempt failed = fixture.attempt("0");
            fixture.write(failed, fixture.own("k=1"));
            failed.abort();
            assertTrue(Files.isDirectory(fixture.root.resolve(fixture.own("k=1"))));
            job.abort();
        }
        assertEquals(Set.of("k=1", "k=1/old"), fixture.content());
    }

    /** The catalog may have partitions there. */
    @Test
    void aLateAttemptLeavesEmptyDirectoriesOfACommittedJob() throws IOException {
        Fixture fixture = new Fixture();
        TaskAttempt late = fixture.attempt("0");
        try (DirectJob job = fixture.begin(fixture.store())) {
            TaskAttempt counts = fixture.attempt("1");
            fixture.write(counts, fixture.own("k=1"));
            job.commit(new CommitPlan(counts.commit(path -> true), Overwrite.nothing()));
        }
        Files.delete(fixture.root.resolve(fixture.own("k=1")).resolve("part-" + fixture.id));
        fixture.write(late, fixture.own("k=1"));
        late.abort();
        assertTrue(Files.isDirectory(fixture.root.resolve(fixture.own("k=1"))));
    }

    @Test
    void aLateAttemptLeavesEmptyDirectoriesThatAreNotItsJobs() throws IOException {
        Fixture fixture = new Fixture();
        List<String> others = List.of("k=2", SwapDirectories.of(OTHER, "k=3"));
        for (String other : others) {
            Files.createDirectories(fixture.root.resolve(other));
        }
        TaskAttempt late = fixture.attempt("0");
        try (DirectJob job = fixture.begin(fixture.store())) {
            job.abort();
        }
        fixture.write(late, others.toArray(String[]::new));
        fixture.write(late, fixture.own("k=3"));
        late.abort();
        assertEquals(
                Set.of("k=1", "k=1/old", "k=2", SwapDirectories.root(OTHER), SwapDirectories.of(OTHER, "k=3")),
                fixture.content());
    }
}
