package io.millstream.write.store;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * File systems with directories and a rename: a staged file is {@code .direct-JOB-ATTEMPT.NAME} in the directory in which it will be
 * {@code NAME}. Beside it, and not in a directory of the job, because a rename within one directory locks nothing but that directory:
 * from one directory to another Linux lets through one rename at a time in the whole file system, over NFS as well.
 */
public abstract class HiddenFileStore implements Store {
  protected static final String PREFIX = ".direct-";
  private static final String SUCCESS = "_SUCCESS";

  public final Path table;
  public final WriteOptions options;
  public final Path journal;

  public HiddenFileStore(Path table, WriteOptions options) {
    this.table = table;
    this.options = options;
    this.journal = new Path(table, JOURNAL);
  }

  /** What a directory holds; nothing if it is not there. */
  public abstract List<FileStatus> entries(Path directory) throws IOException;

  /** Null if it is not there. */
  public abstract FileStatus status(Path path) throws IOException;

  /** Null if it is not there. */
  public abstract byte[] content(Path file) throws IOException;

  /** False if it is not there, or, where a rename replaces nothing, another file of the new name is. */
  public abstract boolean rename(Path from, Path to) throws IOException;

  /** Deletes a file; it need not be there. */
  public abstract void deleteFile(Path file) throws IOException;

  /** Removes a directory unless something is in it, or it may not be removed. */
  public abstract void removeIfEmpty(Path directory) throws IOException;

  /** Makes sure that files, and their names in their directories, survive a power failure. */
  public abstract void sync(Collection<Path> files) throws IOException;

  @Override
  public List<Entry> journal() throws IOException {
    List<Entry> entries = new ArrayList<>();
    for (FileStatus status : entries(journal)) {
      entries.add(new Entry(status.getPath().getName(), status.getModificationTime()));
    }
    return entries;
  }

  @Override
  public byte[] read(String entry) throws IOException {
    return content(Names.path(journal, entry));
  }

  @Override
  public void remove(Collection<String> entries) throws IOException {
    for (String entry : entries) {
      deleteFile(Names.path(journal, entry));
    }
    removeIfEmpty(journal);
  }

  @Override
  public TaskAttempt attempt(String job, String attempt) {
    return new HiddenFiles(this, job, PREFIX + job + "-" + attempt + ".");
  }

  /** A file that an attempt may have written; null if it has not. */
  public FileStatus staged(String directory, String name) throws IOException {
    return status(Names.path(directory(directory), name));
  }

  @Override
  public List<StagedFile> missing(List<StagedFile> files) throws IOException {
    return Parallel.map(options.threads, files, this::ifMissing).stream().filter(Objects::nonNull).toList();
  }

  private StagedFile ifMissing(StagedFile file) throws IOException {
    return status(Names.path(directory(file.directory()), file.stagedAs())) == null ? file : null;
  }

  @Override
  public boolean publish(StagedFile file) throws IOException {
    Path directory = directory(file.directory());
    Path hidden = Names.path(directory, file.stagedAs());
    Path published = Names.path(directory, file.name());
    if (rename(hidden, published)) {
      return true;
    }
    if (status(hidden) != null) {
      throw new IOException("cannot rename " + hidden + " to " + published);
    }
    return status(published) != null;
  }

  @Override
  public List<StagedFile> unpublished(List<StagedFile> files) throws IOException {
    return Parallel.map(options.threads, files, file -> status(Names.path(directory(file.directory()), file.name())) == null ? file : null).stream()
        .filter(Objects::nonNull)
        .toList();
  }

  @Override
  public List<OldFile> list(Collection<String> directories, boolean recursive) throws IOException {
    return walk(directories, name -> recursive && !Names.isHidden(name), HiddenFileStore::visible).picked;
  }

  private static OldFile visible(String directory, FileStatus status) {
    String name = status.getPath().getName();
    return Names.isHidden(name) ? null : new OldFile(directory, name, status.getLen(), status.getModificationTime());
  }

  @Override
  public Holdings holdings(Collection<String> directories) throws IOException {
    Level<OldFile> found = walk(directories, name -> !Names.isHidden(name), HiddenFileStore::visible);
    Set<String> filled = withParents(found.picked.stream().map(OldFile::directory).collect(Collectors.toSet()), List.of());
    return new Holdings(found.picked, found.below.stream().filter(directory -> !filled.contains(directory)).toList());
  }

  /** What to keep of a file; null if nothing. */
  private interface Picker<T> {
    T of(String directory, FileStatus file);
  }

  /** What is kept of the files in a directory, and the directories below that are gone into. */
  private record Level<T>(List<T> picked, List<String> below) { }

  /** Lists level by level, the directories of a level at once. Of a listing nothing stays but what is picked: levels may be long. */
  private <T> Level<T> walk(Collection<String> directories, Predicate<String> goesInto, Picker<T> picker) throws IOException {
    Level<T> all = new Level<>(new ArrayList<>(), new ArrayList<>());
    Collection<String> level = directories;
    while (!level.isEmpty()) {
      List<String> below = new ArrayList<>();
      for (Level<T> found : Parallel.map(options.threads, level, directory -> look(directory, goesInto, picker))) {
        all.picked.addAll(found.picked);
        below.addAll(found.below);
      }
      all.below.addAll(below);
      level = below;
    }
    return all;
  }

  private <T> Level<T> look(String directory, Predicate<String> goesInto, Picker<T> picker) throws IOException {
    Level<T> found = new Level<>(new ArrayList<>(), new ArrayList<>());
    for (FileStatus status : entries(directory(directory))) {
      String name = status.getPath().getName();
      if (status.isDirectory()) {
        if (goesInto.test(name)) {
          found.below.add(directory.isEmpty() ? name : directory + "/" + name);
        }
      } else {
        T pick = picker.of(directory, status);
        if (pick != null) {
          found.picked.add(pick);
        }
      }
    }
    return found;
  }

  @Override
  public void delete(List<OldFile> files) throws IOException {
    Parallel.map(options.threads, files, file -> {
      deleteFile(Names.path(directory(file.directory()), file.name()));
      return null;
    });
  }

  @Override
  public void prune(Set<String> directories, Collection<String> stay) throws IOException {
    for (String directory : deepestFirst(directories, stay)) {
      removeIfEmpty(directory(directory));
    }
  }

  private static List<String> deepestFirst(Set<String> directories, Collection<String> stay) {
    List<String> deepestFirst = new ArrayList<>(withParents(directories, stay));
    deepestFirst.sort(Comparator.comparingInt(String::length).reversed());
    return deepestFirst;
  }

  @Override
  public void removeHollow(Set<String> directories, Collection<String> stay, Predicate<String> isOver) throws IOException {
    for (String directory : deepestFirst(directories, stay)) {
      Path path = directory(directory);
      List<FileStatus> found = entries(path);
      Set<String> names = found.stream().map(status -> status.getPath().getName()).collect(Collectors.toSet());
      boolean isHollow = true;
      for (FileStatus status : found) {
        isHollow &= status.isDirectory() ? isIdleJournal(status.getPath(), isOver) : isMark(status.getPath().getName(), names);
      }
      if (isHollow) {
        removeAll(found);
        removeIfEmpty(path);
      }
    }
  }

  /** Whether a file means nothing where no data is: a mark of success, or the checksums of a file that is gone, or of such a mark. */
  private static boolean isMark(String name, Set<String> beside) {
    String of = name.startsWith(".") && name.endsWith(".crc") ? name.substring(1, name.length() - ".crc".length()) : null;
    return name.equals(SUCCESS) || of != null && (of.equals(SUCCESS) || !beside.contains(of));
  }

  /** Whether a directory is a journal of jobs that are all over: of a table that was here, inside of another one. */
  private boolean isIdleJournal(Path directory, Predicate<String> isOver) throws IOException {
    if (!directory.getName().equals(JOURNAL)) {
      return false;
    }
    for (FileStatus entry : entries(directory)) {
      if (entry.isDirectory() || !isOver.test(entry.getPath().getName())) {
        return false;
      }
    }
    return true;
  }

  private void removeAll(List<FileStatus> found) throws IOException {
    for (FileStatus status : found) {
      if (status.isDirectory()) {
        removeAll(entries(status.getPath()));
        removeIfEmpty(status.getPath());
      } else {
        deleteFile(status.getPath());
      }
    }
  }

  private static Set<String> withParents(Set<String> directories, Collection<String> stay) {
    Set<String> all = new HashSet<>();
    for (String directory : directories) {
      String up = directory;
      while (!up.isEmpty() && !stay.contains(up) && all.add(up)) {
        up = Names.parent(up);
      }
    }
    return all;
  }

  @Override
  public boolean isMissing() throws IOException {
    return status(table) == null;
  }

  @Override
  public void removeEmptyTree(String top) throws IOException {
    List<String> directories = new ArrayList<>(List.of(top));
    for (int next = 0; next < directories.size(); next++) {
      directories.addAll(look(directories.get(next), name -> true, (directory, file) -> null).below);
    }
    Collections.reverse(directories);
    for (String found : directories) {
      removeIfEmpty(directory(found));
    }
  }

  @Override
  public List<Leftover> leftovers(String below, Predicate<String> ofJob) throws IOException {
    return walk(withSwapped(below), name -> !Names.isHidden(name) || SwapDirectories.isOne(name), (directory, status) -> {
      String name = status.getPath().getName();
      String job = jobOf(name);
      boolean isLeft = job != null && ofJob.test(job);
      return isLeft ? new Leftover(job, directory.isEmpty() ? name : directory + "/" + name, null) : null;
    }).picked;
  }

  /** Where files may be that were written below a directory: other jobs may let directories change places ({@code Exchanges}). */
  private List<String> withSwapped(String below) throws IOException {
    if (below.isEmpty()) {
      return List.of("");
    }
    Set<String> directories = new HashSet<>(look("", SwapDirectories::isOne, (directory, file) -> null).below);
    directories.add(below);
    return List.copyOf(directories);
  }

  /** The job in a hidden file's name, null if there is none; an attempt's id has no hyphen. */
  public static String jobOf(String name) {
    int dot = name.indexOf('.', PREFIX.length());
    int hyphen = dot < 0 ? -1 : name.lastIndexOf('-', dot);
    return name.startsWith(PREFIX) && hyphen > PREFIX.length() ? name.substring(PREFIX.length(), hyphen) : null;
  }

  @Override
  public boolean leftoversNameTheirJobs() {
    return true;
  }

  @Override
  public List<Leftover> withoutOtherRoots(List<Leftover> leftovers) throws IOException {
    Set<Path> begins = new HashSet<>();
    for (Leftover leftover : leftovers) {
      otherRoots(leftover).forEach(root -> begins.add(begin(root, leftover)));
    }
    Set<Path> found = ConcurrentHashMap.newKeySet();
    Parallel.map(options.threads, begins, begin -> status(begin) != null && found.add(begin));
    return leftovers.stream()
        .filter(leftover -> otherRoots(leftover).stream().noneMatch(root -> found.contains(begin(root, leftover))))
        .toList();
  }

  private static Path begin(Path root, Leftover leftover) {
    return Names.path(root, JOURNAL + "/" + Names.begin(leftover.job()));
  }

  /** Directories that may be the roots of jobs that write where a leftover is. */
  private List<Path> otherRoots(Leftover leftover) {
    List<Path> roots = new ArrayList<>();
    for (Path above = table.getParent(); above != null; above = above.getParent()) {
      roots.add(above);
    }
    for (String below = Names.parent(leftover.path()); !below.isEmpty(); below = Names.parent(below)) {
      roots.add(directory(below));
    }
    return roots;
  }

  @Override
  public void discard(List<Leftover> leftovers) throws IOException {
    Parallel.map(options.threads, leftovers, leftover -> {
      deleteFile(Names.path(table, leftover.path()));
      return null;
    });
  }

  public Path directory(String relative) {
    return Names.path(table, relative);
  }
}
