package io.millstream.write.protocol;

import io.millstream.write.store.Store;
import io.millstream.write.store.TaskAttempt;
import java.io.IOException;
import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** Where the tasks of a job write; goes to them. */
public final class Placement implements Serializable {
  private static final long serialVersionUID = 1;

  private final String table;
  private final String job;

  public Placement(Path table, String job) {
    this.table = table.toString();
    this.job = job;
  }

  /**
   * Makes the paths of {@link TaskAttempt#file} known to writers.
   *
   * @param conf with which they reach their file system
   */
  public static void prepare(Configuration conf) {
    // By its name: the class is not loaded where there is no S3A.
    conf.set("fs.direct-s3a.impl", "io.millstream.write.store.s3a.S3aUploadFileSystem");
  }

  /**
   * Begins a task attempt.
   *
   * @param id unique within the job, also among repeated and speculative attempts: letters, digits and {@code _}
   * @param conf of the file system
   * @return its files
   * @throws IOException if the file system cannot be reached
   */
  public TaskAttempt attempt(String id, Configuration conf) throws IOException {
    if (!id.matches("\\w+")) {
      throw new IllegalArgumentException("not the id of a task attempt: " + id);
    }
    return Store.of(new Path(table), conf).attempt(job, id);
  }
}
