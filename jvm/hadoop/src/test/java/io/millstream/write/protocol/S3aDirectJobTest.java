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

/** Over an S3 server: {@code testbed/s3 -- mvn -f jvm/pom.xml -pl hadoop test -Dtest.groups=s3}. */
@Tag("s3")
class S3aDirectJobTest extends DirectJobContract {
  private static final int PARTITIONS = 50;
  private static final int MOST_REQUESTS_BESIDE_FILES = 25;

  @Override
  Path newTable() {
    return S3TestServer.newTable();
  }

  @Override
  Configuration newConfiguration() {
    return S3TestServer.configuration();
  }

  /** S3 tells times in seconds. */
  @Override
  int shortLeaseMillis() {
    return 2000;
  }

  @Override
  boolean hasDirectories() {
    return false;
  }

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
    bed.run(Overwrite.nothing(), files.toArray(new String[0]));
    S3TestServer.ask("reset", "");

    CommitOutcome outcome = bed.run(Overwrite.touched(), files.toArray(new String[0]));

    String statistics = S3TestServer.ask("statistics", null);
    assertEquals(2 * PARTITIONS, outcome.uploadRequests());
    assertEquals(total(statistics), outcome.requests() + outcome.uploadRequests(), statistics);
    assertTrue(total(statistics) <= 3 * PARTITIONS + MOST_REQUESTS_BESIDE_FILES, statistics);
    assertTrue(statistics.contains("CompleteMultipartUpload=" + PARTITIONS), statistics);
    assertEquals(expected, bed.rows());
  }

  @Test
  void aCompletionWhoseAnswerIsLostIsFoundDone() throws IOException {
    S3TestServer.ask("faults", "[{\"operation\": \"CompleteMultipartUpload\", \"count\": 1, \"after\": true, \"do\": \"drop\"}]");

    assertEquals(2, bed.run(Overwrite.nothing(), "k=1", "a", "k=2", "b").addedFiles());

    assertEquals(2, bed.rows().size());
  }

  @Test
  void aRecordWhoseAnswerIsLostIsFoundWritten() throws IOException {
    S3TestServer.ask("faults", "[{\"operation\": \"PutObject\", \"path\": \".commit\", \"count\": 1, \"after\": true, \"do\": \"drop\"}]");

    bed.run(Overwrite.nothing(), "k=1", "a");

    assertEquals(1, bed.rows().size());
  }

  @Test
  void aServerThatIsBusyIsAskedAgain() throws IOException {
    S3TestServer.ask("faults", "[{\"count\": 3, \"do\": \"answer\", \"status\": 503, \"code\": \"SlowDown\"}]");

    bed.run(Overwrite.nothing(), "k=1", "a");

    assertEquals(1, bed.rows().size());
  }

  @Test
  void keysThatAServerCouldNotDeleteAreDeletedOnceMore() throws IOException {
    bed.put("k=1/old1", "a");
    bed.put("k=1/old2", "b");
    String failure = "<DeleteResult><Error><Key>" + ((S3AFileSystem) bed.fs).pathToKey(new Path(bed.table, "k=1/old1"))
        + "</Key><Code>InternalError</Code><Message>try again</Message></Error></DeleteResult>";
    S3TestServer.ask("faults", "[{\"operation\": \"DeleteObjects\", \"count\": 1, \"do\": \"answer\", \"status\": 200, \"body\": \"" + failure
        + "\"}]");

    bed.access(null).store().delete(List.of(new OldFile("k=1", "old1", 1, 1), new OldFile("k=1", "old2", 1, 1)));

    // The answer said nothing of the other, so that one counts as deleted.
    assertEquals(Set.of("k=1:b"), bed.rows());
  }

  @Test
  void aBucketWithoutConditionsIsLeftAsItWas() throws IOException {
    S3AFileSystem fs = (S3AFileSystem) bed.fs;
    String name = "plain-" + TestTable.newId();
    fs.getS3AInternals().getAmazonS3Client("test").createBucket(request -> request.bucket(name));
    Path table = new Path("s3a://" + name + "/table");
    S3TestServer.ask("faults", "[{\"operation\": \"PutObject\", \"path\": \"" + name + "\", \"skip\": 1, \"count\": 1, \"do\": \"answer\","
        + " \"status\": 200, \"body\": \" \"}]");

    UnsuitedException e = assertThrows(UnsuitedException.class, () -> DirectJob.begin(table, TestTable.newId(), "", bed.conf, null));

    assertTrue(e.getMessage().contains("If-None-Match"), e::getMessage);
    assertFalse(table.getFileSystem(bed.conf).exists(table));
  }

  @Test
  void s3aMayBeCalledS3() throws IOException {
    Configuration conf = new Configuration(bed.conf);
    conf.set("fs.s3.impl", S3AFileSystem.class.getName());
    TestTable glue = new TestTable(new Path(bed.table.toString().replaceFirst("s3a:", "s3:")), conf);
    glue.put("k=1/old", "a");

    assertEquals(Optional.empty(), DirectJob.whyNot(glue.table.getFileSystem(conf)));
    glue.run(Overwrite.touched(), "k=1", "b", "k=2", "c");

    assertEquals(Set.of("k=1:b", "k=2:c"), glue.rows());
  }

  @Test
  void anUploadThatSomebodyAbortedAfterTheRecordTakesTheCommitBack() throws IOException {
    String id = TestTable.newId();
    Store store = bed.access(null).store();
    Store watched = Mockito.mock(Store.class, AdditionalAnswers.delegatesTo(store));
    Mockito.doAnswer(call -> {
      store.discard(store.leftovers("", id::equals));
      return store.create(call.getArgument(0), call.getArgument(1));
    }).when(watched).create(Mockito.endsWith(".commit"), Mockito.any());
    try (DirectJob job = DirectJob.begin(bed.access(null).through(watched), id, "")) {
      List<StagedFile> files = bed.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true);

      IOException e = assertThrows(IOException.class, () -> job.commit(new CommitPlan(files, Overwrite.nothing())));

      assertTrue(!(e instanceof CommittedException) && e.getMessage().contains("nothing is written"), e::getMessage);
    }
    assertEquals(List.of(), bed.hidden());
    bed.run(Overwrite.nothing(), "k=1", "b");
    assertEquals(1, bed.rows().size());
  }

  @Test
  void uploadsThatMayNotBeListedCostAWarning() throws IOException {
    S3TestServer.ask("faults", "[{\"operation\": \"ListMultipartUploads\", \"do\": \"answer\", \"status\": 403, \"code\": \"AccessDenied\"}]");

    bed.run(Overwrite.nothing(), "k=1", "a");

    assertEquals(1, bed.rows().size());
    assertEquals(List.of(), bed.hidden());
  }

  @Test
  void uploadsThatMayNotBeListedAreNotRemovedWithTheirJobs() throws IOException {
    S3TestServer.ask("faults", "[{\"operation\": \"ListMultipartUploads\", \"do\": \"answer\", \"status\": 403, \"code\": \"AccessDenied\"}]");
    String id = TestTable.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, "", bed.conf, null)) {
      bed.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true);
      job.abort();
    }

    bed.run(Overwrite.nothing(), "k=1", "b");

    assertEquals(Set.of("k=1:b"), bed.rows());
    assertEquals(List.of(), bed.hidden());
    S3TestServer.ask("faults", "[]");
    assertEquals(1, bed.access(null).store().leftovers("", id::equals).size());
  }

  @Test
  void aTableMayBeAllOfABucket() throws IOException {
    S3AFileSystem fs = (S3AFileSystem) bed.fs;
    String name = "root-" + TestTable.newId();
    fs.getS3AInternals().getAmazonS3Client("test").createBucket(request -> request.bucket(name));
    TestTable root = new TestTable(new Path("s3a://" + name + "/"), newConfiguration());
    root.put("k=1/old", "a");
    root.put("old", "b");

    String id = TestTable.newId();
    try (DirectJob job = DirectJob.begin(root.table, id, "", root.conf, null)) {
      root.attempt(job.placement(), id, "1", "k=1", "twin").commit(path -> true);
      List<StagedFile> files = root.attempt(job.placement(), id, "0", "k=1", "c", "", "d").commit(path -> true);
      job.commit(new CommitPlan(files, Overwrite.below(List.of(""))));
    }

    assertEquals(new TreeSet<>(List.of("k=1:c", ":d")), root.rows());
    assertEquals(List.of(), root.access(null).store().leftovers("", id::equals));
  }

  @Test
  void aCommittedJobLeavesNoUploads() throws IOException {
    String id = TestTable.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, "", bed.conf, null)) {
      bed.attempt(job.placement(), id, "1", "k=1", "twin").commit(path -> true);
      job.commit(new CommitPlan(bed.attempt(job.placement(), id, "0", "k=1", "a").commit(path -> true), Overwrite.nothing()));
    }
    assertEquals(List.of(), bed.access(null).store().leftovers("", id::equals));
  }

  @Test
  void whatMagicCommittersKeepOfTheirUploadsIsWhereTheyLookForIt() throws IOException {
    Path magic = new Path(bed.table, "__magic_job-1/job/attempt/tasks/task/__base/k=1/file");
    bed.fs.create(magic).close();

    bed.run(Overwrite.nothing(), "k=1", "a");

    assertTrue(bed.fs.exists(magic.suffix(".pending")));
  }
}
