package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.UnsuitedException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.mockito.AdditionalAnswers;
import org.mockito.Mockito;

/** On an S3 server: {@code testbed/s3 -- mvn -f jvm/pom.xml -pl write -am test -Dtest.groups=s3}. */
@Tag("s3")
class S3aDirectJobTest extends DirectJobContract implements S3Store {
    private static final int PARTITIONS = 50;
    private static final int MOST_REQUESTS_BESIDE_FILES = 25;

    @Override
    List<String> oddNames() {
        return List.of("a:b", "a b", "a%b", "a#?");
    }

    @AfterEach
    void endFaults() throws IOException {
        S3TestServer.ask("faults", "[]");
    }

    private static int total(String statistics) {
        return Integer.parseInt(statistics.replaceFirst("(?s).*total=(\\d+).*", "$1"));
    }

    @Test
    void anOverwriteOfManyPartitionsIsThreeRequestsAFile() throws IOException {
        List<String> files = new ArrayList<>();
        TreeSet<String> expected = new TreeSet<>();
        for (int i = 0; i < PARTITIONS; i++) {
            Collections.addAll(files, "k=" + i, "new");
            expected.add("k=" + i + ":new");
        }
        fixture.run(Overwrite.nothing(), files.toArray(new String[0]));
        S3TestServer.ask("reset", "");

        CommitOutcome outcome = fixture.run(Overwrite.touched(), files.toArray(new String[0]));

        String statistics = S3TestServer.ask("statistics", null);
        assertEquals(2 * PARTITIONS, outcome.uploadRequests());
        assertEquals(total(statistics), outcome.requests() + outcome.uploadRequests(), statistics);
        assertTrue(total(statistics) <= 3 * PARTITIONS + MOST_REQUESTS_BESIDE_FILES, statistics);
        assertTrue(statistics.contains("CompleteMultipartUpload=" + PARTITIONS), statistics);
        assertEquals(expected, fixture.rows());
    }

    @Test
    void aDirectoryWithoutAJournalCostsAReaderOneRequest() throws IOException {
        fixture.put("k=1/old", "o");
        S3TestServer.ask("reset", "");

        assertEquals(Optional.empty(), ReadGuard.above(fixture.table.getParent(), part -> true, fixture.conf, null));

        String statistics = S3TestServer.ask("statistics", null);
        assertEquals(1, total(statistics), statistics);
    }

    @Test
    void aCompletionWhoseReplyIsLostIsFoundDone() throws IOException {
        S3TestServer.ask(
                "faults",
                "[{\"operation\": \"CompleteMultipartUpload\", \"count\": 1, \"after\": true, \"do\": \"drop\"}]");

        assertEquals(2, fixture.run(Overwrite.nothing(), "k=1", "a", "k=2", "b").addedFiles());

        assertEquals(2, fixture.rows().size());
    }

    @Test
    void aRecordWhoseReplyIsLostIsFoundWritten() throws IOException {
        S3TestServer.ask(
                "faults",
                "[{\"operation\": \"PutObject\", \"path\": \".commit\", \"count\": 1, \"after\": true, \"do\": \"drop\"}]");

        fixture.run(Overwrite.nothing(), "k=1", "a");

        assertEquals(1, fixture.rows().size());
    }

    @Test
    void requestsToABusyServerAreRetried() throws IOException {
        S3TestServer.ask("faults", "[{\"count\": 3, \"do\": \"answer\", \"status\": 503, \"code\": \"SlowDown\"}]");

        fixture.run(Overwrite.nothing(), "k=1", "a");

        assertEquals(1, fixture.rows().size());
    }

    @Test
    void failedDeletionsOfKeysAreRetried() throws IOException {
        fixture.put("k=1/old1", "a");
        fixture.put("k=1/old2", "b");
        String failure = "<DeleteResult><Error><Key>"
                + ((S3AFileSystem) fixture.fs).pathToKey(new Path(fixture.table, "k=1/old1"))
                + "</Key><Code>InternalError</Code><Message>try again</Message></Error></DeleteResult>";
        S3TestServer.ask(
                "faults",
                "[{\"operation\": \"DeleteObjects\", \"count\": 1, \"do\": \"answer\", \"status\": 200, \"body\": \""
                        + failure + "\"}]");

        fixture.access(null)
                .store()
                .delete(List.of(new OldFile("k=1", "old1", 1, 1), new OldFile("k=1", "old2", 1, 1)));

        // The reply did not mention the other key, so that one counts as deleted.
        assertEquals(Set.of("k=1:b"), fixture.rows());
    }

    @Test
    void aBucketWithoutConditionalRequestsIsLeftUnchanged() throws IOException {
        S3AFileSystem fs = (S3AFileSystem) fixture.fs;
        String name = "plain-" + TestTable.newId();
        fs.getS3AInternals().getAmazonS3Client("test").createBucket(request -> request.bucket(name));
        Path table = new Path("s3a://" + name + "/table");
        S3TestServer.ask(
                "faults",
                "[{\"operation\": \"PutObject\", \"path\": \"" + name
                        + "\", \"skip\": 1, \"count\": 1, \"do\": \"answer\", \"status\": 200, \"body\": \" \"}]");

        UnsuitedException e = assertThrows(
                UnsuitedException.class, () -> DirectJob.begin(table, TestTable.newId(), "", fixture.conf, null));

        assertTrue(e.getMessage().contains("If-None-Match"), e::getMessage);
        assertFalse(table.getFileSystem(fixture.conf).exists(table));
    }

    @Test
    void s3aMayHaveTheSchemeS3() throws IOException {
        Configuration conf = new Configuration(fixture.conf);
        conf.set("fs.s3.impl", S3AFileSystem.class.getName());
        TestTable glue = new TestTable(new Path(fixture.table.toString().replaceFirst("s3a:", "s3:")), conf);
        glue.put("k=1/old", "a");

        assertEquals(Optional.empty(), DirectJob.whyNot(glue.table.getFileSystem(conf)));
        glue.run(Overwrite.touched(), "k=1", "b", "k=2", "c");

        assertEquals(Set.of("k=1:b", "k=2:c"), glue.rows());
    }

    @Test
    void anUploadAbortedAfterTheRecordRevokesTheCommit() throws IOException {
        String id = TestTable.newId();
        Store store = fixture.access(null).store();
        Store watched = Mockito.mock(Store.class, AdditionalAnswers.delegatesTo(store));
        Mockito.doAnswer(call -> {
                    store.discard(store.leftovers("", id::equals));
                    return store.create(call.getArgument(0), call.getArgument(1));
                })
                .when(watched)
                .create(Mockito.endsWith(".commit"), Mockito.any());
        try (DirectJob job = DirectJob.begin(fixture.access(null).through(watched), id, "")) {
            List<StagedFile> files =
                    fixture.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true);

            IOException e =
                    assertThrows(IOException.class, () -> job.commit(new CommitPlan(files, Overwrite.nothing())));

            assertTrue(
                    !(e instanceof CommittedException) && e.getMessage().contains("nothing is written"), e::getMessage);
        }
        assertEquals(List.of(), fixture.hidden());
        fixture.run(Overwrite.nothing(), "k=1", "b");
        assertEquals(1, fixture.rows().size());
    }

    @Test
    void uploadsThatMayNotBeListedCauseAWarning() throws IOException {
        S3TestServer.ask(
                "faults",
                "[{\"operation\": \"ListMultipartUploads\", \"do\": \"answer\", \"status\": 403, \"code\": \"AccessDenied\"}]");

        fixture.run(Overwrite.nothing(), "k=1", "a");

        assertEquals(1, fixture.rows().size());
        assertEquals(List.of(), fixture.hidden());
    }

    @Test
    void uploadsThatMayNotBeListedAreNotRemovedWithTheirJobs() throws IOException {
        S3TestServer.ask(
                "faults",
                "[{\"operation\": \"ListMultipartUploads\", \"do\": \"answer\", \"status\": 403, \"code\": \"AccessDenied\"}]");
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            fixture.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true);
            job.abort();
        }

        fixture.run(Overwrite.nothing(), "k=1", "b");

        assertEquals(Set.of("k=1:b"), fixture.rows());
        assertEquals(List.of(), fixture.hidden());
        S3TestServer.ask("faults", "[]");
        assertEquals(1, fixture.access(null).store().leftovers("", id::equals).size());
    }

    @Test
    void aTableMayBeAWholeBucket() throws IOException {
        S3AFileSystem fs = (S3AFileSystem) fixture.fs;
        String name = "root-" + TestTable.newId();
        fs.getS3AInternals().getAmazonS3Client("test").createBucket(request -> request.bucket(name));
        TestTable root = new TestTable(new Path("s3a://" + name + "/"), newConfiguration());
        root.put("k=1/old", "a");
        root.put("old", "b");

        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(root.table, id, "", root.conf, null)) {
            root.attempt(job.placement(), id, "1", "k=1", "twin").commit(path -> true);
            List<StagedFile> files =
                    root.attempt(job.placement(), id, "0", "k=1", "c", "", "d").commit(path -> true);
            job.commit(new CommitPlan(files, Overwrite.below(List.of(""))));
        }

        assertEquals(new TreeSet<>(List.of("k=1:c", ":d")), root.rows());
        assertEquals(List.of(), root.access(null).store().leftovers("", id::equals));
    }

    @Test
    void aCommittedJobLeavesNoUploads() throws IOException {
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, null)) {
            fixture.attempt(job.placement(), id, "1", "k=1", "twin").commit(path -> true);
            job.commit(new CommitPlan(
                    fixture.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true), Overwrite.nothing()));
        }
        assertEquals(List.of(), fixture.access(null).store().leftovers("", id::equals));
    }

    @Test
    void magicCommittersFindTheirOwnUploads() throws IOException {
        Path magic = new Path(fixture.table, "__magic_job-1/job/attempt/tasks/task/__base/k=1/file");
        fixture.fs.create(magic).close();

        fixture.run(Overwrite.nothing(), "k=1", "a");

        assertTrue(fixture.fs.exists(magic.suffix(".pending")));
    }
}
