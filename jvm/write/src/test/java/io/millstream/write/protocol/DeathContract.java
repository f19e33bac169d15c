package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.protocol.FaultyStore.Died;
import io.millstream.write.protocol.FaultyStore.Moment;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.recovery.Recovery;
import io.millstream.write.recovery.Recovery.Choices;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The driver dies before and after every step of its commit, and so does the recovery: afterwards there are exactly the
 * old or exactly the new rows.
 */
abstract class DeathContract extends StoreContract {
    /** The table's path as readers, recovery and the next writer see it. */
    Path seenByOthers(Path table) {
        return table;
    }

    private record Statement(Overwrite overwrite, List<String> files, Set<String> newRows) {}

    private static final Statement INSERT_INTO = new Statement(
            Overwrite.nothing(), List.of("k=1", "n1", "k=3", "n3"), rows("k=1:o1", "k=2:o2", "k=1:n1", "k=3:n3"));
    private static final Statement DYNAMIC =
            new Statement(Overwrite.touched(), List.of("k=1", "n1", "k=3", "n3"), rows("k=2:o2", "k=1:n1", "k=3:n3"));
    private static final Statement STATIC =
            new Statement(Overwrite.below(List.of("")), List.of("k=1", "n1", "k=3", "n3"), rows("k=1:n1", "k=3:n3"));

    private static final Set<String> OLD_ROWS = rows("k=1:o1", "k=2:o2");

    private static Set<String> rows(String... rows) {
        return new TreeSet<>(List.of(rows));
    }

    /** A table with two partitions, a job that dies on it, and checks of the result. */
    private final class Case {
        final Statement statement;
        final TestTable.Partitions metastore = new TestTable.Partitions();
        final TestTable fixture;
        final TestTable others;
        final String id = TestTable.newId();

        Case(Statement statement) throws IOException {
            this.statement = statement;
            Configuration conf = newConfiguration();
            conf.setBoolean(WriteOptions.SYNC, false);
            conf.setInt(WriteOptions.THREADS, 1);
            fixture = new TestTable(newTable(), conf);
            fixture.put("k=1/old", "o1");
            fixture.put("k=2/old", "o2");
            others = new TestTable(seenByOthers(fixture.table), conf);
            others.rows(); // fills the caches of a client that has some
            metastore.parameters.put("k=1", java.util.Map.of("numFiles", "1"));
            metastore.parameters.put("k=2", java.util.Map.of("numFiles", "1"));
        }

        /** The step at which the job died; null if it completed. */
        String dieAt(int step, Moment moment) throws IOException {
            FaultyStore store = new FaultyStore(fixture.access(metastore).store(), step, moment);
            try (DirectJob job = DirectJob.begin(fixture.access(metastore).through(store), id, "")) {
                TaskAttempt attempt = store.attempt(id, "0");
                fixture.fill(attempt, id, statement.files.toArray(new String[0]));
                job.commit(
                        new CommitPlan(attempt.commit(path -> true), statement.overwrite).metastore(TestTable::count));
            } catch (Died e) {
                // The test continues.
            }
            fixture.access(metastore).store().begin(Journal.abandoned(id), Journal.NOTHING);
            return store.diedAt();
        }

        String recoverAndDieAt(int step, Moment moment) throws IOException {
            FaultyStore store = new FaultyStore(others.access(metastore).store(), step, moment);
            try {
                Recovery.recover(others.access(metastore).through(store), Choices.of(Run.REAL));
            } catch (Died e) {
                // The test continues.
            }
            return store.diedAt();
        }

        /** Readers see all old or all new rows, and nothing is left that must be removed by hand. */
        void check(String diedAt) throws IOException {
            boolean isNew = others.rows().equals(statement.newRows);
            assertEquals(isNew ? statement.newRows : OLD_ROWS, others.rows(), diedAt);
            assertEquals(others.rows(), fixture.rows(), diedAt);
            assertEquals(
                    isNew ? partitions(statement.newRows) : partitions(OLD_ROWS),
                    metastore.parameters.keySet(),
                    diedAt);
            assertEquals(List.of(), others.access(metastore).store().leftovers("", id::equals), diedAt);
            assertEquals(
                    List.of(),
                    others.hidden().stream()
                            .filter(f -> f.endsWith(".begin"))
                            .filter(f -> f.contains(id))
                            .toList(),
                    diedAt);
        }

        private static Set<String> partitions(Set<String> rows) {
            Set<String> partitions = new TreeSet<>();
            rows.forEach(row -> partitions.add(row.substring(0, row.indexOf(':'))));
            return partitions;
        }
    }

    private List<String> dieAtEveryStep(Statement statement, Moment moment) throws IOException {
        List<String> steps = new ArrayList<>();
        for (int step = 1; ; step++) {
            Case dying = new Case(statement);
            String diedAt = dying.dieAt(step, moment);
            if (diedAt == null) {
                return steps;
            }
            dying.recoverAndDieAt(Integer.MAX_VALUE, moment);
            dying.check(diedAt);
            steps.add((dying.others.rows().equals(OLD_ROWS) ? "old " : "new ") + diedAt.replace(dying.id, "JOB"));

            dying.others.run(Overwrite.below(List.of("")), "k=9", "next");
            assertEquals(rows("k=9:next"), dying.others.rows(), diedAt);
        }
    }

    private void checkSteps(Statement statement, String firstNew) throws IOException {
        List<String> before = dieAtEveryStep(statement, Moment.BEFORE);
        List<String> after = dieAtEveryStep(statement, Moment.AFTER);
        // One step decides: a death before it leaves the old rows, and a death after it the new ones.
        assertTrue(before.contains("old BEFORE " + firstNew), before::toString);
        assertTrue(after.contains("new AFTER " + firstNew), after::toString);
        for (List<String> steps : List.of(before, after)) {
            int lastOld = steps.size() - 1;
            while (!steps.get(lastOld).startsWith("old ")) {
                lastOld--;
            }
            assertTrue(steps.subList(0, lastOld).stream().allMatch(step -> step.startsWith("old ")), steps::toString);
        }
    }

    @Test
    void insertInto() throws IOException {
        checkSteps(INSERT_INTO, "create JOB.commit");
    }

    @Test
    void overwriteOfDynamicPartitions() throws IOException {
        checkSteps(DYNAMIC, "create JOB.commit");
    }

    @Test
    void overwriteOfTheTable() throws IOException {
        checkSteps(STATIC, "create JOB.commit");
    }

    @Test
    void theNextWriterRecoversAsTheCommandDoes() throws IOException {
        for (int step = 1; ; step++) {
            Case dying = new Case(DYNAMIC);
            String diedAt = dying.dieAt(step, Moment.AFTER);
            if (diedAt == null) {
                break;
            }
            DirectJob next = DirectJob.begin(dying.others.access(dying.metastore), TestTable.newId(), "");
            dying.check(diedAt);
            next.abort();
            next.close();
        }
    }

    @Tag("slow")
    @Test
    void theRecoveryMayDieToo() throws IOException {
        for (int step = 1; ; step++) {
            String diedAt = null;
            for (int recoveryStep = 1; ; recoveryStep++) {
                Case dying = new Case(STATIC);
                diedAt = dying.dieAt(step, Moment.AFTER);
                String recoveryDiedAt = diedAt == null ? null : dying.recoverAndDieAt(recoveryStep, Moment.AFTER);
                if (recoveryDiedAt == null) {
                    break;
                }
                dying.recoverAndDieAt(Integer.MAX_VALUE, Moment.AFTER);
                dying.check(diedAt + ", then " + recoveryDiedAt);
            }
            if (diedAt == null) {
                return;
            }
        }
    }
}
