package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.store.StagedFile;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

/** Listing and publishing cost nothing here, so this measures the driver alone. */
class LargeCommitTest {
    private static final int FILES = 100_000;
    private static final int PARTITIONS = 1000;
    private static final long MOST_BYTES_A_FILE = 5_000;

    private static final MemoryStore.Steps FREE = new MemoryStore.Steps() {
        @Override
        public void before(String step) {}

        @Override
        public void after(String step, Object result) {}
    };

    @Test
    void aHundredThousandFilesReplaceAsManyOthers() throws IOException {
        MemoryStore store = new MemoryStore(FREE);
        Configuration conf = new Configuration(false);
        conf.setInt(WriteOptions.THREADS, 1);
        TableAccess table =
                new TableAccess(new Path("memory:///table"), store, new WriteOptions(conf), null, millis -> {});
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(table, id, "")) {
            List<StagedFile> files = new ArrayList<>();
            for (int i = 0; i < FILES; i++) {
                String partition = "year=2026/month=1/day=" + i % PARTITIONS;
                store.putVisible(partition, "part-" + i + "-0f9f6d4e-4c5c-4a0f-8f0a-2b8f1f0c1d2e.c000", "old");
                files.add(store.putStaged(id, partition, "part-" + i + "-" + id + ".c000"));
            }
            long before = used();
            long[] atTheCommit = {0};

            CommitOutcome outcome =
                    job.commit(new CommitPlan(files, Overwrite.touched()).listener((phase, done, total) -> {
                        if (phase == CommitPlan.Phase.PUBLISH && done == 0) {
                            atTheCommit[0] = used();
                        }
                    }));

            assertEquals(FILES, outcome.addedFiles());
            assertEquals(FILES, outcome.deletedFiles());
            assertTrue(atTheCommit[0] - before < FILES * MOST_BYTES_A_FILE, () -> atTheCommit[0] - before + " bytes");
        }
        assertEquals(FILES, store.rows().size());
    }

    private static long used() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }
}
