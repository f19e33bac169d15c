package io.millstream.write;

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
 * What the protocol asks of the file system that a table is on. Paths are relative to the table. A driver that dies leaves the table
 * as some prefix of these calls did, so they are what the tests stop at.
 */
interface Store {
  /** The journal's directory. */
  String JOURNAL = ".direct-writes";

  /** A file of the journal, without the directory, and when it was written by the clock of the store. */
  record Entry(String name, long modifiedMillis) { }

  /** A file that an attempt has written and that is not published: a hidden file, or an upload by its id. */
  record Leftover(String job, String path, String uploadId) { }

  /** Why a file system has no store; empty if it has one. */
  static Optional<String> whyNot(FileSystem fs) {
    return switch (fs.getUri().getScheme()) {
      case "file", "hdfs" -> Optional.empty();
      case "s3a" -> S3aStore.whyNot(fs);
      default -> Optional.of("direct writes know the file systems file, hdfs and s3a, but not " + fs.getUri().getScheme());
    };
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
    return switch (fs.getUri().getScheme()) {
      case "file" -> new LocalStore(fs, root, options);
      case "s3a" -> S3aStore.open(fs, root, options);
      default -> new HdfsStore(fs, root, options);
    };
  }

  /** The files of the journal; none if there is no journal. */
  List<Entry> journal() throws IOException;

  /** What a file of the journal holds; null if it is not there. */
  byte[] read(String entry) throws IOException;

  /**
   * Makes a file of the journal, whole or not at all, unless it is there.
   *
   * @return whether it now holds this content
   */
  boolean create(String entry, byte[] content) throws IOException;

  /** Writes a file of the journal, whether or not it is there; who reads it meanwhile may find it empty. */
  void replace(String entry, byte[] content) throws IOException;

  /** Removes files of the journal in this order; those that are not there are fine. */
  void remove(Collection<String> entries) throws IOException;

  /** Where a task attempt writes. */
  TaskAttempt attempt(String job, String attempt) throws IOException;

  /**
   * Gives a pending file its name.
   *
   * @return false if it is neither pending nor there
   */
  boolean publish(PendingFile file) throws IOException;

  /**
   * The files of directories, those left out that readers leave out.
   *
   * @param recursive whether with those in directories below
   */
  List<OldFile> list(Collection<String> directories, boolean recursive) throws IOException;

  /** Deletes files; those that are not there are fine. */
  void delete(List<OldFile> files) throws IOException;

  /** Removes those of the directories that are empty, and those above them that become so, up to a directory that is to stay. */
  void prune(Set<String> directories, Collection<String> stay) throws IOException;

  /** What jobs have pending. */
  List<Leftover> leftovers(Predicate<String> ofJob) throws IOException;

  /** Whether leftovers name their jobs, so that those of unknown jobs can be told from other programs' files. */
  boolean leftoversNameTheirJobs();

  /** Removes leftovers; those that are not there are fine. */
  void discard(List<Leftover> leftovers) throws IOException;
}
