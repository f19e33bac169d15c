package io.millstream.write;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.millstream.write.Recovery.Finding;
import io.millstream.write.Recovery.Run;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LocalDirectJobTest extends DirectJobContract {
  @TempDir java.nio.file.Path directory;

  @Override
  Path newTable() {
    return new Path("file://" + directory + "/table");
  }

  @Override
  Configuration newConfiguration() {
    return new Configuration(false);
  }

  @Override
  int shortLeaseMillis() {
    return 150;
  }

  @Override
  boolean hasDirectories() {
    return true;
  }

  @Test
  void recoveryRemovesWhatZombiesWriteAfterTheirJobHasCommitted() throws IOException {
    String id = TableBed.newId();
    try (DirectJob job = DirectJob.begin(bed.table, id, bed.conf, null)) {
      bed.attempt(job.placement(), id, "1", "k=1", "a").commit();
      TaskAttempt zombie = job.placement().attempt("2", bed.conf);
      job.commit(new CommitPlan(bed.attempt(job.placement(), id, "0", "k=1", "a").commit(), Overwrite.nothing()));
      TableBed.fill(bed.fs, zombie, id, "k=1", "late");
    }

    List<Finding> findings = Recovery.recover(bed.table, bed.conf, null, Run.REAL);

    assertEquals(List.of(id), findings.stream().map(Finding::job).toList());
    assertEquals(2, findings.get(0).steps().size());
    assertEquals(1, bed.rows().size());
    assertEquals(List.of(), bed.hidden());
  }

  @Test
  void whoMayWriteIntoTheTableMayWriteIntoTheJournal() throws IOException {
    bed.fs.mkdirs(bed.table);
    bed.fs.setPermission(bed.table, new FsPermission((short) 0770));
    try (DirectJob job = DirectJob.begin(bed.table, TableBed.newId(), bed.conf, null)) {
      assertEquals("rwxrwx---", bed.fs.getFileStatus(new Path(bed.table, Store.JOURNAL)).getPermission().toString());
      job.abort();
    }
  }

  @Test
  void aFileLeavesNoChecksumsUnderItsHiddenName() throws IOException {
    bed.run(Overwrite.nothing(), "k=1", "a");

    String[] names = new java.io.File(directory.toFile(), "table/k=1").list();
    assertEquals(2, names.length);
    for (String name : names) {
      assertEquals(false, name.contains(".direct-"), name);
    }
  }
}
