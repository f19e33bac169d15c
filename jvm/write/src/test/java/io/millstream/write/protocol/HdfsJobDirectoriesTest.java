package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("slow")
class HdfsJobDirectoriesTest extends JobDirectoriesContract implements HdfsStore {
    /** Runs an overwrite and an INSERT INTO with each number of names left, from none to enough. */
    @Test
    void aQuotaOfNamesNeverStopsACommit() throws IOException {
        DistributedFileSystem hdfs = (DistributedFileSystem) fixture.fs;
        int succeeded = 0;
        for (int left = 0; left < 16; left++) {
            for (Overwrite overwrite : List.of(Overwrite.nothing(), Overwrite.below(List.of("")))) {
                TestTable table = new TestTable(HdfsTestCluster.newTable(), fixture.conf);
                table.put("k=1/old", "o");
                hdfs.setQuota(
                        table.table,
                        hdfs.getContentSummary(table.table).getFileAndDirectoryCount() + left,
                        HdfsConstants.QUOTA_DONT_SET);
                String error = null;
                try {
                    runOrAbort(table, overwrite);
                    succeeded++;
                } catch (IOException e) {
                    error = e.toString();
                }
                Set<String> expected = error != null
                        ? Set.of("k=1:o")
                        : overwrite.isNothing() ? Set.of("k=1:o", "k=2:n", "k=3:m") : Set.of("k=2:n", "k=3:m");
                assertEquals(expected, table.rows(), left + " names left: " + error);
                assertTrue(
                        error == null || error.contains("quota") && !error.contains("not known"),
                        left + " names left: " + error);
                assertEquals(error == null, hdfs.exists(new Path(table.table, "k=4")), left + " names left: " + error);
                hdfs.setQuota(table.table, HdfsConstants.QUOTA_RESET, HdfsConstants.QUOTA_DONT_SET);
                table.run(Overwrite.nothing(), "k=9", "z");
                assertTrue(table.rows().contains("k=9:z"));
            }
        }
        assertTrue(succeeded > 2, succeeded + " succeeded");
    }

    /** As in Spark, a failed statement is aborted. */
    private static void runOrAbort(TestTable table, Overwrite overwrite) throws IOException {
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(table.table, id, "", table.conf, new TestTable.Partitions())) {
            try {
                job.commit(new CommitPlan(
                                table.attempt(job.placement(), id, "0", "k=2", "n", "k=3", "m")
                                        .commit(path -> true),
                                overwrite)
                        .metastore(draft -> withoutRows("k=4/l=1")));
            } catch (IOException e) {
                job.abort();
                throw e;
            }
        }
    }

    @Test
    void aQuotaOfBytesIsTheErrorThatTheUserSees() throws IOException {
        DistributedFileSystem hdfs = (DistributedFileSystem) fixture.fs;
        fixture.put("k=1/old", "o");
        hdfs.setQuota(fixture.table, HdfsConstants.QUOTA_DONT_SET, 1000);

        IOException error = assertThrows(IOException.class, () -> fixture.run(Overwrite.nothing(), "k=1", "a"));

        assertTrue(error.getMessage().contains("quota"), error.toString());
        assertEquals(Set.of("k=1:o"), fixture.rows());
    }
}
