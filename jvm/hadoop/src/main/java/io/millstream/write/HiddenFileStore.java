package io.millstream.write;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * File systems with directories and a rename: a pending file is {@code .direct-JOB-ATTEMPT.NAME} in the directory in which it will be
 * {@code NAME}. Beside it, and not in a directory of the job, because a rename within one directory locks nothing but that directory:
 * from one directory to another Linux lets through one rename at a time in the whole file system, over NFS as well.
 */
abstract class HiddenFileStore implements Store {
  private static final Logger LOG = LoggerFactory.getLogger(HiddenFileStore.class);
  private static final String PREFIX = ".direct-";

  protected final FileSystem fs;
  protected final Path table;
  protected final WriteOptions options;
  protected final Path journal;

  HiddenFileStore(FileSystem fs, Path table, WriteOptions options) {
    this.fs = fs;
    this.table = table;
    this.options = options;
    this.journal = new Path(table, JOURNAL);
  }

  /** Makes sure that files, and their names in their directories, survive a power failure. */
  abstract void sync(Collection<Path> files) throws IOException;

  @Override
  public List<Entry> journal() throws IOException {
    List<Entry> entries = new ArrayList<>();
    for (FileStatus status : entries(journal)) {
      entries.add(new Entry(status.getPath().getName(), status.getModificationTime()));
    }
    return entries;
  }

  /** What a directory holds; nothing if it is not there. */
  private FileStatus[] entries(Path directory) throws IOException {
    try {
      return fs.listStatus(directory);
    } catch (FileNotFoundException e) {
      return new FileStatus[0];
    }
  }

  @Override
  public byte[] read(String entry) throws IOException {
    try (FSDataInputStream in = fs.open(new Path(journal, entry))) {
      return in.readAllBytes();
    } catch (FileNotFoundException e) {
      return null;
    }
  }

  @Override
  public void remove(Collection<String> entries) throws IOException {
    for (String entry : entries) {
      fs.delete(new Path(journal, entry), false);
    }
    removeIfEmpty(journal);
  }

  @Override
  public TaskAttempt attempt(String job, String attempt) {
    return new HiddenFiles(this, job, PREFIX + job + "-" + attempt + ".");
  }

  @Override
  public boolean publish(PendingFile file) throws IOException {
    Path directory = directory(file.directory());
    Path hidden = new Path(directory, file.pending());
    Path published = new Path(directory, file.name());
    IOException failure = null;
    try {
      if (fs.rename(hidden, published)) {
        return true;
      }
    } catch (FileNotFoundException e) {
      failure = e;
    }
    if (isThere(hidden)) {
      throw new IOException("cannot rename " + hidden + " to " + published, failure);
    }
    boolean there = isThere(published);
    if (there) {
      finishRename(hidden, published);
    }
    return there;
  }

  /** Does what a rename that was cut short may have left undone. */
  void finishRename(Path hidden, Path published) throws IOException { }

  private boolean isThere(Path path) throws IOException {
    try {
      fs.getFileStatus(path);
      return true;
    } catch (FileNotFoundException e) {
      return false;
    }
  }

  @Override
  public List<OldFile> list(Collection<String> directories, boolean recursive) throws IOException {
    List<OldFile> files = new ArrayList<>();
    walk(directories, recursive, (directory, status) -> {
      if (!Names.isHidden(status.getPath().getName())) {
        files.add(new OldFile(directory, status.getPath().getName(), status.getLen(), status.getModificationTime()));
      }
    });
    return files;
  }

  private interface Visitor {
    void file(String directory, FileStatus status);
  }

  /** Lists level by level, the directories of a level at once; hidden directories are left out. */
  private void walk(Collection<String> directories, boolean recursive, Visitor visitor) throws IOException {
    Collection<String> level = directories;
    while (!level.isEmpty()) {
      List<String> below = new ArrayList<>();
      List<FileStatus[]> listings = Parallel.map(options.threads, level, directory -> entries(directory(directory)));
      int next = 0;
      for (String directory : level) {
        for (FileStatus status : listings.get(next++)) {
          String name = status.getPath().getName();
          if (!status.isDirectory()) {
            visitor.file(directory, status);
          } else if (recursive && !Names.isHidden(name)) {
            below.add(directory.isEmpty() ? name : directory + "/" + name);
          }
        }
      }
      level = below;
    }
  }

  @Override
  public void delete(List<OldFile> files) throws IOException {
    Parallel.map(options.threads, files, file -> fs.delete(new Path(directory(file.directory()), file.name()), false));
  }

  @Override
  public void prune(Set<String> directories, Collection<String> stay) throws IOException {
    List<String> deepestFirst = new ArrayList<>(withParents(directories, stay));
    deepestFirst.sort(Comparator.comparingInt(String::length).reversed());
    for (String directory : deepestFirst) {
      removeIfEmpty(directory(directory));
    }
  }

  private static Set<String> withParents(Set<String> directories, Collection<String> stay) {
    Set<String> all = new HashSet<>();
    for (String directory : directories) {
      String up = directory;
      while (!up.isEmpty() && !stay.contains(up) && all.add(up)) {
        up = up.substring(0, Math.max(0, up.lastIndexOf('/')));
      }
    }
    return all;
  }

  private void removeIfEmpty(Path directory) throws IOException {
    if (entries(directory).length == 0) {
      try {
        fs.delete(directory, false);
      } catch (IOException e) {
        LOG.debug("{} is not empty any more, or may not be removed", directory, e);
      }
    }
  }

  @Override
  public List<Leftover> leftovers(Predicate<String> ofJob) throws IOException {
    List<Leftover> leftovers = new ArrayList<>();
    walk(List.of(""), true, (directory, status) -> {
      String name = status.getPath().getName();
      String job = jobOf(name);
      if (job != null && ofJob.test(job)) {
        leftovers.add(new Leftover(job, directory.isEmpty() ? name : directory + "/" + name, null));
      }
    });
    return leftovers;
  }

  /** The job in a hidden file's name; an attempt's id has no hyphen. */
  private static String jobOf(String name) {
    int dot = name.indexOf('.', PREFIX.length());
    int hyphen = dot < 0 ? -1 : name.lastIndexOf('-', dot);
    return name.startsWith(PREFIX) && hyphen > PREFIX.length() ? name.substring(PREFIX.length(), hyphen) : null;
  }

  @Override
  public boolean leftoversNameTheirJobs() {
    return true;
  }

  @Override
  public void discard(List<Leftover> leftovers) throws IOException {
    Parallel.map(options.threads, leftovers, leftover -> fs.delete(directory(leftover.path()), false));
  }

  Path directory(String relative) {
    return relative.isEmpty() ? table : new Path(table, relative);
  }
}
