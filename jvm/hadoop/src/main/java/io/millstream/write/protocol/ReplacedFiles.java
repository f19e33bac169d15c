package io.millstream.write.protocol;

import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.protocol.Finding;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.store.Names;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What swaps have replaced. Who has asked the metastore before a swap lists and reads the old directories after it, and takes files that
 * are gone for files that never were. So these files stay for some time, listed in the commit record of the job that replaced them.
 */
public final class ReplacedFiles {
  private static final Logger LOG = LoggerFactory.getLogger(ReplacedFiles.class);

  private final TableAccess table;

  public ReplacedFiles(TableAccess table) {
    this.table = table;
  }

  public boolean mayGo(Journal journal, Journal.Job job) {
    return job.isFinished() && job.replacedMillis() != 0 && table.metastore() != null
        && journal.nowMillis() - job.replacedMillis() > table.options().keepReplacedMillis;
  }

  /** Removes those of a job. Nothing depends on it, so what fails is left to the next one. */
  public void tryRemove(String job) {
    try {
      remove(job, Run.REAL);
    } catch (IOException | RuntimeException e) {
      LOG.warn("Not removed from {}, and tried again at its next write: {}", table.root(), e.toString());
    }
  }

  /** Removes those of a job, or says which. */
  public Finding remove(String job, Run run) throws IOException {
    byte[] commit = table.store().read(Journal.commit(job));
    List<String> steps = new ArrayList<>();
    if (commit != null) {
      CommitRecord record = CommitRecord.of(commit);
      Set<Path> inUse = inUse(job, record.change());
      List<OldFile> files = table.unchanged(record.deleted().stream().filter(file -> !isIn(inUse, file.directory())).toList());
      files.forEach(file -> steps.add("delete " + file));
      if (run == Run.REAL) {
        table.store().delete(files);
        table.store().delete(successMarks(record, inUse));
        removeDirectories(job, record, inUse);
      }
    }
    if (run == Run.REAL) {
      table.store().remove(List.of(Journal.replaced(job), Journal.commit(job)));
    }
    return new Finding(job, "unknown", Verdict.REMOVE_REPLACED, steps);
  }

  private void removeDirectories(String job, CommitRecord record, Set<Path> inUse) throws IOException {
    table.store().prune(abandoned(record, inUse), List.of());
    if (record.change().none() != null) {
      table.store().removeTree(SwapDirectories.none(job));
    }
  }

  /** Directories that nobody has any use for. */
  private Set<String> abandoned(CommitRecord record, Set<Path> inUse) {
    return record.deleted().stream()
        .map(OldFile::directory)
        .filter(directory -> !directory.startsWith(Path.SEPARATOR) && !directory.isEmpty() && !isIn(inUse, directory))
        .collect(Collectors.toSet());
  }

  /** What committers leave beside the files that they commit. */
  private List<OldFile> successMarks(CommitRecord record, Set<Path> inUse) {
    return abandoned(record, inUse).stream().map(directory -> new OldFile(directory, "_SUCCESS", 0, 0)).toList();
  }

  /** Directories at which the catalog has something again: somebody has put it back. */
  private Set<Path> inUse(String job, MetastoreChange change) throws IOException {
    MetastoreChange current = table.metastore().current(change, table.root());
    if (current == null) {
      throw new IOException("job " + job + " has replaced files, which stay: " + change.database() + "." + change.table() + " is gone, renamed or"
          + " another table, so that nobody can say whether they are in use. This is said until "
          + new Path(table.root(), Store.JOURNAL + "/" + Journal.replaced(job)) + " is removed, which removes no data");
    }
    List<String> names = new ArrayList<>(change.droppedPartitions());
    change.partitions().forEach(partition -> names.add(partition.name()));
    if (change.tableLocation() != null) {
      names.add("");
    }
    return table.metastore().locations(current.database(), current.table(), names).values().stream()
        .map(location -> withoutScheme(new Path(location)))
        .collect(Collectors.toSet());
  }

  /** Whether readers of one of these directories find files of that one, also as a directory in it. */
  private boolean isIn(Set<Path> inUse, String directory) {
    Path above = withoutScheme(Names.path(table.root(), directory));
    while (above != null && !inUse.contains(above)) {
      above = Names.isHidden(above.getName()) ? null : above.getParent();
    }
    return above != null;
  }

  private static Path withoutScheme(Path path) {
    return new Path(path.toUri().getPath());
  }

  /** Those in directories that a job is about to put partitions into. */
  public List<OldFile> in(Collection<String> directories) throws IOException {
    List<OldFile> files = new ArrayList<>();
    if (!directories.isEmpty()) {
      for (Journal.Job job : Journal.of(table.store()).jobs()) {
        byte[] commit = job.replacedMillis() == 0 ? null : table.store().read(Journal.commit(job.id));
        if (commit != null) {
          CommitRecord.of(commit).deleted().stream().filter(file -> directories.contains(file.directory())).forEach(files::add);
        }
      }
    }
    return table.unchanged(files);
  }
}
