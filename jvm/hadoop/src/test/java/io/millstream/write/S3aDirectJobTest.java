package io.millstream.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.commit.CommitConstants;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Over an S3 server: {@code testbed/s3 -- mvn -f jvm/pom.xml -pl hadoop test -Dtest.groups=s3}. */
@Tag("s3")
class S3aDirectJobTest extends DirectJobContract {
  private static final int PARTITIONS = 100;
  private static final int MOST_REQUESTS_BESIDE_FILES = 25;

  @Override
  Path newTable() {
    return S3Bed.newTable();
  }

  @Override
  Configuration newConfiguration() {
    return S3Bed.configuration();
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

  @AfterEach
  void endFaults() throws IOException {
    S3Bed.ask("faults", "[]");
  }

  private static int total(String statistics) {
    int total = 0;
    for (String field : statistics.split("\\s+")) {
      if (field.matches("[A-Za-z]+=\\d+") && Character.isUpperCase(field.charAt(0))) {
        total += Integer.parseInt(field.substring(field.indexOf('=') + 1));
      }
    }
    return total;
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
    S3Bed.ask("reset", "");

    bed.run(Overwrite.touched(), files.toArray(new String[0]));

    String statistics = S3Bed.ask("statistics", null);
    assertTrue(total(statistics) <= 3 * PARTITIONS + MOST_REQUESTS_BESIDE_FILES, statistics);
    assertTrue(statistics.contains("CompleteMultipartUpload=" + PARTITIONS), statistics);
    assertEquals(expected, bed.rows());
  }

  @Test
  void aCompletionWhoseAnswerIsLostIsFoundDone() throws IOException {
    S3Bed.ask("faults", "[{\"operation\": \"CompleteMultipartUpload\", \"count\": 1, \"after\": true, \"do\": \"drop\"}]");

    assertEquals(2, bed.run(Overwrite.nothing(), "k=1", "a", "k=2", "b").addedFiles());

    assertEquals(2, bed.rows().size());
  }

  @Test
  void aRecordWhoseAnswerIsLostIsFoundWritten() throws IOException {
    S3Bed.ask("faults", "[{\"operation\": \"PutObject\", \"path\": \".commit\", \"count\": 1, \"after\": true, \"do\": \"drop\"}]");

    bed.run(Overwrite.nothing(), "k=1", "a");

    assertEquals(1, bed.rows().size());
  }

  @Test
  void aServerThatIsBusyIsAskedAgain() throws IOException {
    S3Bed.ask("faults", "[{\"count\": 3, \"do\": \"answer\", \"status\": 503, \"code\": \"SlowDown\"}]");

    bed.run(Overwrite.nothing(), "k=1", "a");

    assertEquals(1, bed.rows().size());
  }

  @Test
  void anUploadThatSomebodyAbortedIsAnErrorThatNamesTheFile() throws IOException {
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, bed.conf, null)) {
      List<PendingFile> files = bed.attempt(job.placement(), id, "0", "k=1", "a").commit();
      Store store = bed.access(null).store();
      store.discard(store.leftovers(id::equals));

      IOException e = assertThrows(CommittedException.class, () -> job.commit(new CommitPlan(files, Overwrite.nothing())));

      assertTrue(e.getCause().getMessage().contains("k=1/part-"), e.getCause()::getMessage);
    }
  }

  @Test
  void aCommittedJobLeavesNoUploads() throws IOException {
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, bed.conf, null)) {
      bed.attempt(job.placement(), id, "1", "k=1", "twin").commit();
      job.commit(new CommitPlan(bed.attempt(job.placement(), id, "0", "k=1", "a").commit(), Overwrite.nothing()));
    }
    assertEquals(List.of(), bed.access(null).store().leftovers(id::equals));
  }

  @Test
  void withoutTrackingInMemoryTheTrackIsOnS3AndIsRemoved() throws IOException {
    Configuration conf = newConfiguration();
    conf.setBoolean(CommitConstants.FS_S3A_COMMITTER_MAGIC_TRACK_COMMITS_IN_MEMORY_ENABLED, false);
    conf.setBoolean("fs.s3a.impl.disable.cache", true);
    TableBed onS3 = new TableBed(bed.table, conf);

    onS3.run(Overwrite.nothing(), "k=1", "a", "", "b");
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(onS3.table, id, conf, null)) {
      onS3.attempt(job.placement(), id, "0", "k=1", "aborted").abort();
      onS3.attempt(job.placement(), id, "1", "k=1", "left");
      job.abort();
    }

    assertEquals(new TreeSet<>(List.of("k=1:a", ":b")), onS3.rows());
    assertEquals(List.of(), onS3.access(null).store().leftovers(any -> true));
  }
}
