package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.recovery.Recovery;
import io.millstream.write.recovery.Recovery.Choices;
import io.millstream.write.store.Store;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.mockito.AdditionalAnswers;
import org.mockito.Mockito;

/**
 * Directories of jobs: those that cannot exist or that a quota refuses, and those inside a table that have separate
 * journals.
 */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
abstract class JobDirectoriesContract extends StoreContract {
    protected TestTable fixture;

    @BeforeEach
    void makeTable() throws IOException {
        fixture = new TestTable(newTable(), newConfiguration());
    }

    /** The table with a configuration by which every commit is distributed, so that a test can stop it. */
    private TestTable distributed() throws IOException {
        Configuration conf = newConfiguration();
        conf.setInt(WriteOptions.DISTRIBUTE_FILES, 1);
        return new TestTable(fixture.table, conf);
    }

    private static CommitPlan dying(CommitPlan plan) {
        return plan.distribution(batches -> {
            throw new IllegalStateException("the driver dies");
        });
    }

    private static Set<String> rows(String... rows) {
        return new TreeSet<>(List.of(rows));
    }

    private static Finding only(List<Finding> findings) {
        assertEquals(1, findings.size(), findings::toString);
        return findings.get(0);
    }

    /** Names of directories that a file system may refuse; the first is too long everywhere. */
    List<String> impossibleNames() {
        return List.of("k=" + "x".repeat(5000), "k=" + "x".repeat(300), "k=" + "\u00e9".repeat(200), "k=a\0b");
    }

    @Test
    void aRollBackSurvivesADirectoryThatCannotExist() throws IOException {
        for (String name : impossibleNames()) {
            String id = TestTable.newId();
            try (DirectJob job = DirectJob.begin(fixture.table, id, name, fixture.conf, null)) {
                job.abort();
            }
            assertEquals(List.of(), Recovery.recover(fixture.table, fixture.conf, null, Choices.of(Run.REAL)), name);
            // A driver that has not even tried to clean up.
            DirectJob.begin(fixture.table, TestTable.newId(), name, fixture.conf, null)
                    .close();
            assertEquals(
                    Verdict.ROLL_BACK,
                    only(Recovery.recover(fixture.table, fixture.conf, null, Choices.of(Run.REAL)))
                            .verdict(),
                    name);
        }
        fixture.run(Overwrite.nothing(), "k=1", "a");
        assertEquals(rows("k=1:a"), fixture.rows());
    }

    /** The changes of partitions without rows that a metastore receives. */
    static MetastoreChange withoutRows(String... partitions) {
        List<MetastoreChange.Partition> all = Arrays.stream(partitions)
                .map(name -> new MetastoreChange.Partition(name, null, Map.of()))
                .toList();
        return new MetastoreChange("db", "t", all, List.of(), Map.of(), Set.of());
    }

    @Test
    void aRefusedCommitRemovesTheDirectoriesThatItHasReserved() throws IOException {
        fixture.put("k=1/old", "a");
        fixture.fs.mkdirs(new Path(fixture.table, "k=2"));
        TableAccess table = fixture.access(new TestTable.Partitions());
        Store store = Mockito.mock(Store.class, AdditionalAnswers.delegatesTo(table.store()));
        Mockito.doThrow(new IOException("no space left on device"))
                .when(store)
                .reserve(Mockito.anyString(), Mockito.any());
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(table.through(store), id, "")) {
            CommitPlan plan = new CommitPlan(List.of(), Overwrite.nothing())
                    .metastore(draft -> withoutRows("k=2", "k=2/l=1", "k=3/l=1/m=1"));
            assertThrows(IOException.class, () -> job.commit(plan));
            job.abort();
        }

        assertTrue(fixture.fs.exists(new Path(fixture.table, "k=2")));
        for (String reserved : List.of("k=2/l=1", "k=3")) {
            assertFalse(fixture.fs.exists(new Path(fixture.table, reserved)), reserved);
        }
        assertEquals(rows("k=1:a"), fixture.rows());
    }

    /** Commits to a part of the table, addressed by its path, and stops before anything is published. */
    private void abandonCommittedPart() throws IOException {
        Path part = new Path(fixture.table, "k=1");
        TestTable large = distributed();
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(part, id, "", large.conf, null)) {
            CommitPlan plan = new CommitPlan(
                    new TestTable(part, large.conf)
                            .attempt(job.placement(), id, "0", "", "new")
                            .commit(path -> true),
                    Overwrite.below(List.of("")));
            assertThrows(CommittedException.class, () -> job.commit(dying(plan)));
        }
    }

    @Test
    void whoReadsATableFinishesACommitToAPartOfItThatIsAddressedByItsPath() throws IOException {
        fixture.put("k=1/old", "a");
        fixture.put("k=2/old", "b");
        abandonCommittedPart();
        assertEquals(rows("k=1:a", "k=2:b"), fixture.rows());

        assertTrue(ReadGuard.of(fixture.table, fixture.conf, null).get().hasHelped());

        assertEquals(rows("k=1:new", "k=2:b"), fixture.rows());
        assertFalse(ReadGuard.of(fixture.table, fixture.conf, null).get().hasHelped());
        assertTrue(fixture.hidden().stream().noneMatch(name -> name.contains("below-")), fixture.hidden()::toString);
    }

    @Test
    void whoReadsAPartOfATableLeavesCommitsToItsOtherParts() throws IOException {
        fixture.put("k=1/old", "a");
        fixture.put("k=2/old", "b");
        abandonCommittedPart();

        assertFalse(ReadGuard.above(fixture.table, part -> part.getName().equals("k=2"), fixture.conf, null)
                .get()
                .hasHelped());
        assertEquals(rows("k=1:a", "k=2:b"), fixture.rows());
        assertTrue(ReadGuard.above(fixture.table, part -> part.getName().equals("k=1"), fixture.conf, null)
                .get()
                .hasHelped());

        assertEquals(rows("k=1:new", "k=2:b"), fixture.rows());
    }

    @Test
    void recoveryOfATableFinishesACommitToAPartOfIt() throws IOException {
        fixture.put("k=1/old", "a");
        abandonCommittedPart();

        assertEquals(
                Verdict.ROLL_FORWARD,
                only(Recovery.recover(fixture.table, fixture.conf, null, Choices.of(Run.REAL)))
                        .verdict());

        assertEquals(rows("k=1:new"), fixture.rows());
        assertTrue(fixture.hidden().stream().noneMatch(name -> name.contains("below-")), fixture.hidden()::toString);
    }

    @Test
    void whoReadsAPartOfATableFinishesACommitToTheTable() throws IOException {
        fixture.put("k=1/old", "a");
        TestTable large = distributed();
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", large.conf, null)) {
            CommitPlan plan = new CommitPlan(
                    large.attempt(job.placement(), id, "0", "k=1", "new").commit(path -> true), Overwrite.nothing());
            assertThrows(CommittedException.class, () -> job.commit(dying(plan)));
        }

        assertTrue(ReadGuard.above(fixture.table, part -> true, fixture.conf, null)
                .get()
                .hasHelped());

        assertEquals(rows("k=1:a", "k=1:new"), fixture.rows());
        assertTrue(ReadGuard.above(fixture.table.getParent(), part -> true, fixture.conf, null)
                .isEmpty());
    }
}
