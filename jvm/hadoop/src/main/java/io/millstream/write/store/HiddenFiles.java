package io.millstream.write.store;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** An attempt's hidden files. */
public final class HiddenFiles implements TaskAttempt {
  private static final Logger LOG = LoggerFactory.getLogger(HiddenFiles.class);

  private record Asked(String directory, String name) { }

  private final HiddenFileStore store;
  private final String job;
  private final String prefix;
  private final List<Asked> asked = new ArrayList<>();

  public HiddenFiles(HiddenFileStore store, String job, String prefix) {
    this.store = store;
    this.job = job;
    this.prefix = prefix;
  }

  @Override
  public Path file(String directory, String name) {
    Names.check(directory, name, job);
    Asked file = new Asked(directory, name);
    asked.add(file);
    return hidden(file);
  }

  private Path hidden(Asked file) {
    return Names.path(store.directory(file.directory), prefix + file.name);
  }

  @Override
  public List<StagedFile> commit() throws IOException {
    List<StagedFile> written = Parallel.map(store.options.threads, asked, this::written).stream()
        .filter(Objects::nonNull)
        .toList();
    if (store.options.sync) {
      store.sync(written.stream().map(f -> Names.path(store.directory(f.directory()), f.pending())).toList());
    }
    return written;
  }

  private StagedFile written(Asked file) throws IOException {
    FileStatus status = store.pending(file.directory, prefix + file.name);
    return status == null ? null : StagedFile.hidden(file.directory, file.name, status.getLen(), prefix + file.name);
  }

  @Override
  public void abort() {
    Uninterrupted.run(this::deleteAll);
  }

  private void deleteAll() {
    try {
      Parallel.map(store.options.threads, asked, file -> {
        store.deleteFile(hidden(file));
        return null;
      });
    } catch (IOException e) {
      LOG.warn("An aborted task attempt leaves files {}* below {} to the job's recovery", prefix, store.table, e);
    }
  }
}
