package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.Stores;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/**
 * The guarantees of the protocol for jobs and their attempts, on any store; {@link RecoveryContract} has those for jobs
 * that do not end as they should. The rows of the failure matrix in docs/direct-writes-protocol.md name their tests
 * here.
 */
abstract class DirectJobContract extends JobContract {
    /** Names that the file system accepts but that may be difficult for Hadoop's paths. */
    List<String> oddNames() {
        return List.of("a b", "a%b", "a#?");
    }

    void putOdd(String directory, String name) throws IOException {
        fixture.write(new Path(new Path(fixture.table, directory), new Path(null, null, name)), "old");
    }

    @Test
    void insertIntoAddsRowsAndLeavesNothingBehind() throws IOException {
        fixture.put("k=1/old", "a");

        CommitOutcome outcome = fixture.run(Overwrite.nothing(), "k=1", "b", "k=2/l=3", "c", "", "d");

        assertEquals(rows("k=1:a", "k=1:b", "k=2/l=3:c", ":d"), fixture.rows());
        assertEquals(List.of(), fixture.hidden());
        assertEquals(3, outcome.addedFiles());
        assertEquals(3, outcome.addedBytes());
        assertEquals(3, outcome.directories());
    }

    @Test
    void nothingIsVisibleBeforeTheCommit() throws IOException {
        fixture.put("k=1/old", "a");
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            fixture.attempt(job.placement(), id, "0", "k=1", "b", "k=2", "c").commit(path -> true);

            assertEquals(rows("k=1:a"), fixture.rows());

            job.abort();
        }
        assertEquals(rows("k=1:a"), fixture.rows());
    }

    @Test
    void dynamicOverwriteReplacesTouchedPartitions() throws IOException {
        fixture.put("k=1/old", "a");
        fixture.put("k=1/l=1/below", "below");
        fixture.put("k=2/old", "b");
        fixture.put("k=1/_SUCCESS", "");

        CommitOutcome outcome = fixture.run(Overwrite.touched(), "k=1", "c", "k=3", "d");

        assertEquals(rows("k=1:c", "k=2:b", "k=3:d"), fixture.rows());
        assertEquals(2, outcome.deletedFiles());
        assertFalse(fixture.fs.exists(new Path(fixture.table, "k=1/l=1")));
        assertTrue(fixture.fs.exists(new Path(fixture.table, "k=1/_SUCCESS")));
    }

    @Test
    void staticOverwriteReplacesAllBelowAndLeavesNoEmptyDirectories() throws IOException {
        fixture.put("k=1/l=1/m=1/old", "a");
        fixture.put("k=1/l=2/old", "b");
        fixture.put("k=1/_l=3/old", "c");
        fixture.put("k=2/old", "d");

        fixture.run(Overwrite.below(List.of("k=1")), "k=1/l=2", "e");

        assertEquals(rows("k=1/l=2:e", "k=2:d"), fixture.rows());
        assertFalse(fixture.fs.exists(new Path(fixture.table, "k=1/l=1")));
        assertFalse(fixture.fs.exists(new Path(fixture.table, "k=1/_l=3")));
    }

    @Test
    void overwriteWithoutRowsEmptiesThePartitionAndKeepsItsDirectory() throws IOException {
        fixture.put("k=1/old", "a");
        fixture.put("k=2/old", "b");

        fixture.run(Overwrite.below(List.of("k=1")));

        assertEquals(rows("k=2:b"), fixture.rows());
        assertEquals(hasDirectories(), fixture.fs.exists(new Path(fixture.table, "k=1")));
    }

    @Test
    void overwriteOfTheTableRemovesParquetSummariesToo() throws IOException {
        fixture.put("old", "a");
        fixture.put("_metadata", "summary");
        fixture.put(".hive-staging_1/x", "another's");

        fixture.run(Overwrite.below(List.of("")), "", "b");

        assertEquals(rows(":b"), fixture.rows());
        assertFalse(fixture.fs.exists(new Path(fixture.table, "_metadata")));
        assertTrue(fixture.fs.exists(new Path(fixture.table, ".hive-staging_1/x")));
    }

    @Test
    void valuesOfPartitionsMayHaveAnyName() throws IOException {
        String[] directories = {
            "k=a%2Fb", "k=with space", "k=ünï日本", "k=__HIVE_DEFAULT_PARTITION__", "k=100%25", "k=a#b?c"
        };
        for (String partition : directories) {
            fixture.put(partition + "/old", "old");
        }
        List<String> files = new ArrayList<>();
        TreeSet<String> expected = new TreeSet<>();
        for (String partition : directories) {
            Collections.addAll(files, partition, "new");
            expected.add(partition + ":new");
        }

        fixture.run(Overwrite.touched(), files.toArray(new String[0]));

        assertEquals(expected, fixture.rows());
    }

    @Test
    void replacedFilesMayHaveAnyName() throws IOException {
        for (String name : oddNames()) {
            putOdd("k=1", name);
            putOdd("k=1/l=1", "x=" + name + "/" + name);
        }

        fixture.run(Overwrite.touched(), "k=1", "new");

        assertEquals(rows("k=1:new"), fixture.rows());
    }

    @Test
    void stagedFilesRemovedBeforeTheCommitLeaveTheTableUnchanged() throws IOException {
        fixture.put("k=1/old", "a");
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            List<StagedFile> files = fixture.attempt(job.placement(), id, "0", "k=1", "b", "k=2", "c")
                    .commit(path -> true);
            Store store = fixture.access(null).store();
            store.discard(store.leftovers("", id::equals).stream()
                    .filter(leftover -> leftover.path().startsWith("k=2/"))
                    .toList());

            IOException e =
                    assertThrows(IOException.class, () -> job.commit(new CommitPlan(files, Overwrite.touched())));

            assertFalse(e instanceof CommittedException);
            assertTrue(e.getMessage().contains("k=2/part-"), e::getMessage);
            assertFalse(e.getMessage().contains("k=1/part-"), e::getMessage);
            job.abort();
        }
        assertEquals(rows("k=1:a"), fixture.rows());
        assertEquals(rows("k=1:d"), runOn(fixture, Overwrite.touched(), "k=1", "d"));
    }

    @Test
    void aJobThatEndsBeforeItsCommitLeavesNothing() throws IOException {
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            fixture.attempt(job.placement(), id, "0", "", "a", "k=1/l=2", "b").commit(path -> true);
            job.abort();
        }
        assertFalse(fixture.fs.exists(fixture.table));
    }

    @Test
    void anExistingTableSurvivesAFailedJob() throws IOException {
        Path empty = new Path(fixture.table, "k=0");
        fixture.fs.mkdirs(empty);
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            fixture.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true);
            job.abort();
        }
        assertTrue(fixture.fs.exists(empty));
    }

    @Test
    void aJobDoesNotRecreateADroppedTable() throws IOException {
        Assumptions.assumeTrue(hasDirectories());
        DirectJob job = DirectJob.begin(fixture.table, TestTable.newId(), "", fixture.conf, null);
        fixture.fs.delete(fixture.table, true);

        job.close();

        assertFalse(fixture.fs.exists(fixture.table));
    }

    @Test
    void foreignFilesInTheJournalAreIgnored() throws IOException {
        fixture.write(new Path(fixture.table, Store.JOURNAL + "/_turn-1.bak"), "");
        fixture.write(new Path(fixture.table, Store.JOURNAL + "/lock-1"), "");
        fixture.write(new Path(fixture.table, Store.JOURNAL + "/_turn-" + "9".repeat(30)), "");

        fixture.run(Overwrite.touched(), "k=1", "a");

        assertEquals(rows("k=1:a"), fixture.rows());
    }

    @Test
    void anInterruptedJobCleansUp() throws IOException {
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            TaskAttempt killed = fixture.attempt(job.placement(), id, "0", "k=1", "a", "k=2", "b");
            TaskAttempt counts = fixture.attempt(job.placement(), id, "1", "k=1", "c");
            counts.commit(path -> true);
            Thread.currentThread().interrupt();
            killed.abort();
            boolean isStillInterrupted = Thread.interrupted();
            assertEquals(
                    1, fixture.access(null).store().leftovers("", id::equals).size());

            Thread.currentThread().interrupt();
            job.abort();
            assertTrue(Thread.interrupted() && isStillInterrupted);
        }
        assertEquals(List.of(), fixture.access(null).store().leftovers("", id::equals));
        assertEquals(List.of(), fixture.hidden());
    }

    /**
     * Readers that list only a directory's files fail on a subdirectory; stock removes overwritten directories with all
     * their contents.
     */
    @Test
    void anOverwriteRemovesDirectoriesWithoutData() throws IOException {
        Assumptions.assumeTrue(hasDirectories());
        fixture.put("k=1/old", "o");
        fixture.fs.mkdirs(new Path(fixture.table, "k=1/empty/deeper"));
        fixture.put("k=1/saved/part-0", "s");
        fixture.put("k=1/saved/_SUCCESS", "");
        fixture.put("k=1/hidden/.kept", "h");
        Stores.of(new Path(fixture.table, "k=1/nested"), fixture.conf)
                .begin("done-7-into-" + TestTable.newId(), Journal.NOTHING);
        Stores.of(new Path(fixture.table, "k=1/busy"), fixture.conf)
                .begin(Journal.begin(TestTable.newId()), Journal.NOTHING);
        fixture.fs.mkdirs(new Path(fixture.table, "k=2/empty"));

        fixture.run(Overwrite.touched(), "k=1", "n");

        assertEquals(
                Set.of("busy", "hidden"),
                Arrays.stream(fixture.fs.listStatus(new Path(fixture.table, "k=1")))
                        .filter(FileStatus::isDirectory)
                        .map(status -> status.getPath().getName())
                        .collect(Collectors.toSet()));
        assertTrue(fixture.fs.exists(new Path(fixture.table, "k=2/empty")), "it was not overwritten");
        assertTrue(fixture.fs.exists(new Path(fixture.table, "k=1/hidden/.kept")));
    }

    @Test
    void pathsOutsideTheTableOrOfOtherJobsAreRefused() throws IOException {
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            TaskAttempt task = job.placement().attempt("0", fixture.conf);
            assertThrows(IllegalArgumentException.class, () -> task.file("../other", "part-" + id));
            assertThrows(IllegalArgumentException.class, () -> task.file("k=1/.hidden", "part-" + id));
            assertThrows(IllegalArgumentException.class, () -> task.file("k=1", "_part-" + id));
            assertThrows(IllegalArgumentException.class, () -> task.file("k=1", "part-0"));
            assertThrows(IllegalArgumentException.class, () -> job.placement().attempt("1-2", fixture.conf));
            job.abort();
        }
    }

    @Test
    void aFailedAttemptRemovesItsFilesAndNoOthers() throws IOException {
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            TaskAttempt failed = fixture.attempt(job.placement(), id, "0", "k=1", "half");
            TaskAttempt repeated = fixture.attempt(job.placement(), id, "1", "k=1", "whole");
            failed.abort();
            job.commit(new CommitPlan(repeated.commit(path -> true), Overwrite.nothing()));
        }
        assertEquals(rows("k=1:whole"), fixture.rows());
        assertEquals(List.of(), fixture.hidden());
    }

    @Test
    void filesOfASpeculativeTwinAndAZombieAreNotPublished() throws IOException {
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            TaskAttempt counts = fixture.attempt(job.placement(), id, "0", "k=1", "a");
            fixture.attempt(job.placement(), id, "1", "k=1", "a").commit(path -> true);
            TaskAttempt zombie = job.placement().attempt("2", fixture.conf);
            job.commit(new CommitPlan(counts.commit(path -> true), Overwrite.touched()));
            fixture.fill(zombie, id, "k=1", "late");
            endLate(zombie);
        }
        assertEquals(rows("k=1:a"), fixture.rows());
    }

    /** An attempt that ends after its job; on S3 it leaves an upload. */
    private void endLate(TaskAttempt zombie) throws IOException {
        if (hasDirectories()) {
            assertThrows(IOException.class, () -> zombie.commit(path -> true));
        } else {
            zombie.commit(path -> true);
        }
    }

    /** Cancelled statements are aborted while their tasks still run. */
    @Test
    void anAttemptThatEndsAfterItsJobWasAbortedLeavesNoFiles() throws IOException {
        Assumptions.assumeTrue(hasDirectories());
        fixture.put("k=1/old", "old");
        for (boolean isWritten : List.of(false, true)) {
            String id = TestTable.newId();
            try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
                TaskAttempt late = job.placement().attempt("0", fixture.conf);
                if (isWritten) {
                    fixture.fill(late, id, "k=1", "late");
                }
                job.abort();
                fixture.fill(late, id, "k=1", "late");
                endLate(late);
            }
            assertEquals(List.of(), fixture.hidden());
        }
        assertEquals(rows("k=1:old"), fixture.rows());
    }

    @Test
    void filesRequestedButNotWrittenAreLeftOut() throws IOException {
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            TaskAttempt task = fixture.attempt(job.placement(), id, "0", "k=1", "a");
            task.file("k=2", "part-00009-" + id);
            assertEquals(
                    1,
                    job.commit(new CommitPlan(
                                    task.commit(path -> path.toString().contains("k=1")), Overwrite.nothing()))
                            .addedFiles());
        }
    }

    @Test
    void anInsertIntoCommittedAfterAnOverwriteHasListedIsKept() throws Exception {
        fixture.put("k=1/old", "old");
        String overwrite = TestTable.newId();
        String insert = TestTable.newId();
        CountDownLatch listed = new CountDownLatch(1);
        Thread[] other = new Thread[1];
        try (DirectJob job = DirectJob.begin(fixture.table, overwrite, "", fixture.conf, null);
                DirectJob into = DirectJob.begin(fixture.table, insert, "", fixture.conf, null)) {
            List<StagedFile> added = fixture.attempt(into.placement(), insert, "0", "k=1", "inserted")
                    .commit(path -> true);
            other[0] = new Thread(() -> {
                try {
                    listed.await();
                    into.commit(new CommitPlan(added, Overwrite.nothing()));
                } catch (IOException | InterruptedException e) {
                    throw new AssertionError(e);
                }
            });
            other[0].start();
            job.commit(new CommitPlan(
                            fixture.attempt(job.placement(), overwrite, "0", "k=1", "new")
                                    .commit(path -> true),
                            Overwrite.touched())
                    .metastore(draft -> {
                        listed.countDown();
                        return null;
                    }));
            other[0].join();
        }
        assertEquals(rows("k=1:inserted", "k=1:new"), fixture.rows());
    }

    @Test
    void theLastOfManyConcurrentOverwritesWins() throws Exception {
        List<Thread> writers = new ArrayList<>();
        List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
        for (int i = 0; i < 8; i++) {
            String row = "writer" + i;
            Thread writer = new Thread(() -> {
                try {
                    fixture.run(Overwrite.below(List.of("")), "k=1", row, "k=2", row);
                } catch (IOException | RuntimeException e) {
                    failures.add(e);
                }
            });
            writers.add(writer);
            writer.start();
        }
        for (Thread writer : writers) {
            writer.join();
        }
        assertEquals(List.of(), failures);
        TreeSet<String> rows = fixture.rows();
        assertEquals(2, rows.size(), rows::toString);
        assertEquals(rows.first().substring("k=1:".length()), rows.last().substring("k=2:".length()));
        assertEquals(List.of(), fixture.hidden());
    }

    @Test
    void aRefusedCommitLeavesTheTableUnchanged() throws IOException {
        fixture.put("k=1/old", "a");
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            CommitPlan plan = new CommitPlan(
                    fixture.attempt(job.placement(), id, "0", "k=1", "b").commit(path -> true), Overwrite.touched());
            IOException e = assertThrows(
                    IOException.class,
                    () -> job.commit(plan.metastore(draft -> {
                        assertEquals(1, draft.added().get("k=1").files());
                        assertEquals(1, draft.deleted().get("k=1").bytes());
                        throw new IOException("too many partitions");
                    })));
            assertEquals("too many partitions", e.getMessage());
            job.abort();
        }
        assertEquals(rows("k=1:a"), fixture.rows());
        assertEquals(rows("k=1:c"), runOn(fixture, Overwrite.touched(), "k=1", "c"));
    }

    @Test
    void aCommitWaitsForTheLockAndNamesItsHolder() throws Exception {
        TestTable impatient = with(WriteOptions.LOCK_WAIT_MILLIS, 100);
        String holder = TestTable.newId();
        try (DirectJob first = DirectJob.begin(impatient.table, holder, "", impatient.conf, null)) {
            first.commit(new CommitPlan(List.of(), Overwrite.nothing()).metastore(draft -> {
                String message = assertThrows(IOException.class, () -> impatient.run(Overwrite.nothing(), "k=1", "a"))
                        .getMessage();
                assertTrue(message.contains(holder), message);
                return null;
            }));
        }
    }

    @Test
    void aLargeCommitIsDistributed() throws IOException {
        TestTable large = with(WriteOptions.DISTRIBUTE_FILES, 2);
        large.put("k=1/old1", "a");
        large.put("k=1/old2", "b");
        String id = TestTable.newId();
        int[] batches = {0};
        try (DirectJob job = DirectJob.begin(large.table, id, "", large.conf, null)) {
            job.commit(new CommitPlan(
                            large.attempt(job.placement(), id, "0", "k=1", "c", "k=1", "d")
                                    .commit(path -> true),
                            Overwrite.touched())
                    .distribution(all -> {
                        for (ApplyBatch batch : all) {
                            batches[0]++;
                            batch.run(large.conf);
                            batch.run(large.conf);
                        }
                    }));
        }
        assertEquals(2, batches[0]);
        assertEquals(rows("k=1:c", "k=1:d"), large.rows());
    }

    @Test
    void unknownVisibilityAndFileSystemsAreErrors() throws IOException {
        Configuration conf = newConfiguration();
        conf.set(WriteOptions.VISIBILITY, "at-once");
        assertThrows(
                IllegalArgumentException.class,
                () -> DirectJob.begin(fixture.table, TestTable.newId(), "", conf, null));
        Configuration viewFs = new Configuration(false);
        viewFs.set("fs.viewfs.mounttable.default.link./data", "file:///tmp");
        assertTrue(
                DirectJob.whyNot(new Path("viewfs:///").getFileSystem(viewFs)).isPresent());
    }
}
