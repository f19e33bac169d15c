package io.millstream.write;

import java.io.IOException;
import java.io.Serializable;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** A part of a commit's apply that may run anywhere: some files to publish or some to delete. */
public final class ApplyBatch implements Serializable {
  private static final long serialVersionUID = 1;

  private final String table;
  private final List<PendingFile> published;
  private final List<OldFile> deleted;

  ApplyBatch(Path table, List<PendingFile> published, List<OldFile> deleted) {
    this.table = table.toString();
    this.published = published;
    this.deleted = deleted;
  }

  /**
   * Does it.
   *
   * @param conf of the file system
   * @throws IOException if it could not be done; it may be tried again
   */
  public void run(Configuration conf) throws IOException {
    throw new UnsupportedOperationException("not yet");
  }
}
