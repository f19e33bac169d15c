package io.millstream.write.store;

import io.millstream.write.store.hdfs.HdfsStore;
import io.millstream.write.store.local.LocalStore;
import io.millstream.write.store.s3a.S3aStore;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * What the protocol asks of the file system that a table is on. Paths are relative to the table's; those of old files may be absolute,
 * of the same file system. A driver that dies leaves the table as some prefix of these calls did, so they are what the tests stop at.
 */
public interface Store {
  /** The journal's directory. */
  String JOURNAL = ".direct-writes";

  /** A file of the journal, without the directory, and when it was written by the clock of the store. */
  record Entry(String name, long modifiedMillis) { }

  /** A file that an attempt has written and that is not published: a hidden file, or an upload by its id. */
  record Leftover(String job, String path, String uploadId) { }

  /** Why a file system has no store; empty if it has one. */
  static Optional<String> whyNot(FileSystem fs) {
    return switch (kind(fs)) {
      case "file", "hdfs" -> Optional.empty();
      case "s3a" -> S3aStore.whyNot(fs);
      default -> Optional.of("direct writes know the file systems file, hdfs and s3a, but not " + fs.getUri().getScheme());
    };
  }

  /** Its scheme; but S3A is S3A, whatever it is called, as by {@code s3:} tables of Glue. */
  private static String kind(FileSystem fs) {
    return fs.getClass().getName().equals("org.apache.hadoop.fs.s3a.S3AFileSystem") ? "s3a" : fs.getUri().getScheme();
  }

  /** The store of a table. */
  static Store of(Path table, Configuration conf) throws IOException {
    FileSystem fs = table.getFileSystem(conf);
    Optional<String> whyNot = whyNot(fs);
    if (whyNot.isPresent()) {
      throw new UnsupportedOperationException(whyNot.get());
    }
    WriteOptions options = new WriteOptions(conf);
    Path root = fs.makeQualified(table);
    return switch (kind(fs)) {
      case "file" -> new LocalStore(root, options);
      case "s3a" -> S3aStore.open(fs, root, options);
      default -> new HdfsStore(fs, root, options);
    };
  }

  /** Why directories of a table cannot change places; empty if they can. */
  static Optional<String> whyNoExchange(Path table, Configuration conf) throws IOException {
    FileSystem fs = table.getFileSystem(conf);
    return fs.getUri().getScheme().equals("file")
        ? new LocalStore(fs.makeQualified(table), new WriteOptions(conf)).exchange().whyNot()
        : Optional.of("the file system " + fs.getUri().getScheme() + " does not exchange directories");
  }

  /** The files of the journal; none if there is no journal. */
  List<Entry> journal() throws IOException;

  /** What a file of the journal holds; null if it is not there. */
  byte[] read(String entry) throws IOException;

  /**
   * Makes a file of the journal, whole or not at all, unless it is there. Where there are directories, it fails if the journal is gone: the
   * table has been dropped or renamed, and is not to be there again.
   *
   * @return whether it now holds this content
   */
  boolean create(String entry, byte[] content) throws IOException;

  /** The same for the first file of a job, which makes the directories of the table and of the journal. */
  boolean begin(String entry, byte[] content) throws IOException;

  /**
   * Writes a file of the journal, whether or not it is there; who reads it meanwhile may find it empty. Where there are directories, it
   * fails if the journal is gone: the table has been dropped, and is not to be there again.
   */
  void replace(String entry, byte[] content) throws IOException;

  /** Removes files of the journal in this order; those that are not there are fine. */
  void remove(Collection<String> entries) throws IOException;

  /** Where a task attempt writes. */
  TaskAttempt attempt(String job, String attempt) throws IOException;

  /** Which of these files, staged as far as anybody knows, are not there. */
  List<StagedFile> missing(List<StagedFile> files) throws IOException;

  /**
   * Gives a staged file its name.
   *
   * @return false if it is neither staged nor there
   */
  boolean publish(StagedFile file) throws IOException;

  /** Whether files of a directory that is renamed are copied, so that they have another time then. */
  default boolean copiesInRenames() {
    return false;
  }

  /** Which of these files a reader would not find, as they are not where they were to be published. */
  List<StagedFile> unpublished(List<StagedFile> files) throws IOException;

  /**
   * The files of directories, those left out that readers leave out.
   *
   * @param recursive whether with those in directories below
   */
  List<OldFile> list(Collection<String> directories, boolean recursive) throws IOException;

  /**
   * What directories hold, with those below.
   *
   * @param files that readers see
   * @param hollow directories below the given ones in which there are none
   */
  record Holdings(List<OldFile> files, List<String> hollow) { }

  /** What directories hold. Directories without files are reported where they are more than a part of files' names. */
  default Holdings holdings(Collection<String> directories) throws IOException {
    return new Holdings(list(directories, true), List.of());
  }

  /** Deletes files; those that are not there are fine. */
  void delete(List<OldFile> files) throws IOException;

  /**
   * Takes the room that an entry will need, so that a disk that is full by then does not stop {@link #create} of it with this content. Files stores alone
   * need that.
   */
  default void reserve(String entry, byte[] content) throws IOException { }

  /** Removes what is reserved for a job and was not needed. */
  default void release(String job) throws IOException { }

  /** Makes directories, relative to the table's or absolute, and those above them; those that are there are fine. */
  void makeDirectories(Collection<String> directories) throws IOException;

  /** Removes a directory with all that is in it; it need not be there. */
  void removeTree(String directory) throws IOException;

  /** Makes sure that what happened to the names in these directories, and in those above them, survives a power failure. */
  default void persist(Collection<String> directories) throws IOException { }

  /**
   * Makes clients that keep what they have listed of these directories, and of those above them, list them again. Called after the last change of
   * a commit: on NFS, changes within one tick of the server's clock look like one.
   */
  default void invalidateListings(Collection<String> directories) throws IOException { }

  /** Removes those of the directories that are empty, and those above them that become so, up to a directory that is to stay. */
  void prune(Set<String> directories, Collection<String> stay) throws IOException;

  /**
   * As {@link #prune}; also directories in which nothing is but what has no use without files: success marks, checksums, journals of no running job.
   *
   * @param isOver whether an entry of a journal says that a job is over
   */
  default void removeHollow(Set<String> directories, Collection<String> stay, Predicate<String> isOver) throws IOException { }

  /**
   * What jobs have staged.
   *
   * @param below the directory that they write below, and nowhere else; "" if that is not known. A store that can list what is staged alone looks everywhere
   */
  List<Leftover> leftovers(String below, Predicate<String> ofJob) throws IOException;

  /** Whether leftovers name their jobs, so that those of unknown jobs can be told from other programs' files. */
  boolean leftoversNameTheirJobs();

  /** Of these leftovers those whose jobs begin in no journal of a directory above the table's, or below it and above the file. */
  default List<Leftover> withoutOtherRoots(List<Leftover> leftovers) throws IOException {
    return leftovers;
  }

  /** Whether the table has a directory that can be missing, and is. */
  default boolean isMissing() throws IOException {
    return false;
  }

  /** Removes a directory, relative to the table's, and those in it, as far as nothing else is in them. */
  default void removeEmptyTree(String directory) throws IOException { }

  /** Removes leftovers; those that are not there are fine. */
  void discard(List<Leftover> leftovers) throws IOException;

  /** How directories change places; null if they cannot. */
  default Exchange exchange() {
    return null;
  }

  /** How many requests this process has sent to the file system so far, for whatever purpose; 0 if nobody counts them. */
  default long requests() {
    return 0;
  }
}
