package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

/** A process that begins to finish a commit while the job's own driver removes the last journal entries. */
class LateHelperTest {
    private static final String JOB = TestTable.newId();

    private MemoryStore store;
    private boolean isHelping;
    private boolean isLate;

    private TableAccess table() {
        return new TableAccess(
                new Path("memory:///table"), store, new WriteOptions(new Configuration(false)), null, millis -> {});
    }

    /** Between the helper's reading of the commit record and of the decision, the driver removes both. */
    private void before(String step) throws IOException {
        if (step.startsWith("remove") && step.contains(Journal.commit(JOB)) && !isHelping) {
            isHelping = true;
            new Resolution(table()).examine(JOB, Run.REAL);
        } else if (step.equals("read " + Journal.published(JOB)) && isHelping && !isLate) {
            isLate = true;
            store.remove(List.of(Journal.published(JOB), Journal.commit(JOB)));
        }
    }

    @Test
    void itLeavesNoDecision() throws IOException {
        store = new MemoryStore(new MemoryStore.Steps() {
            @Override
            public void before(String step) throws IOException {
                LateHelperTest.this.before(step);
            }

            @Override
            public void after(String step, Object result) {}
        });
        StagedFile file = store.putStaged(JOB, "k=1", "row");

        try (DirectJob job = DirectJob.begin(table(), JOB, "")) {
            job.commit(new CommitPlan(List.of(file), Overwrite.touched()));
        }

        assertTrue(isLate);
        assertEquals(
                List.of(),
                store.journal().stream()
                        .map(Store.Entry::name)
                        .filter(name -> name.startsWith(JOB))
                        .toList());
        assertEquals("[row]", store.rows().toString());
    }

    /**
     * A journal listing from before the done mark, combined with a begin entry that is gone, does not show an abandoned
     * job.
     */
    @Test
    void anOldListingShowsNoDeadJob() throws IOException {
        Journal[] old = {null};
        boolean[] isDead = {true};
        store = new MemoryStore(new MemoryStore.Steps() {
            @Override
            public void before(String step) throws IOException {
                if (step.startsWith("create done-") && old[0] == null) {
                    old[0] = Journal.of(store);
                } else if (step.startsWith("remove") && step.contains(Journal.commit(JOB))) {
                    isDead[0] = new Resolution(table()).isDead(old[0], old[0].job(JOB));
                }
            }

            @Override
            public void after(String step, Object result) {}
        });

        try (DirectJob job = DirectJob.begin(table(), JOB, "")) {
            job.commit(new CommitPlan(List.of(store.putStaged(JOB, "k=1", "row")), Overwrite.touched()));
        }

        assertFalse(isDead[0]);
    }
}
