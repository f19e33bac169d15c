package io.millstream.write;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Predicate;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.WriteOperations;
import org.apache.hadoop.fs.s3a.commit.CommitConstants;
import org.apache.hadoop.fs.s3a.commit.files.SinglePendingCommit;
import org.apache.hadoop.fs.s3a.commit.magic.InMemoryMagicCommitTracker;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An attempt's pending uploads. S3A keeps what it knows of them in the memory of this process if it is configured so
 * ({@code fs.s3a.committer.magic.track.commits.in.memory.enabled}), which costs no request; else in an object beside a marker, which
 * costs several for each file.
 */
final class S3aUploads implements TaskAttempt {
  private static final Logger LOG = LoggerFactory.getLogger(S3aUploads.class);

  private record Asked(String directory, String name) { }

  private final S3AFileSystem fs;
  private final WriteOperations operations;
  private final Path table;
  private final WriteOptions options;
  private final String job;
  /** S3A's name for the attempt, which is in the memory of all that run in this process. */
  private final String tracked;
  private final Path directory;
  private final List<Asked> asked = new ArrayList<>();

  S3aUploads(S3AFileSystem fs, WriteOperations operations, Path table, WriteOptions options, String job, String attempt) {
    this.fs = fs;
    this.operations = operations;
    this.table = table;
    this.options = options;
    this.job = job;
    this.tracked = job + "_" + attempt;
    // S3A takes the fourth name below for the attempt.
    this.directory = new Path(table, CommitConstants.MAGIC_PATH_PREFIX + job + "/job/attempt/tasks/" + tracked);
  }

  static boolean areInMemory(S3AFileSystem fs) {
    return fs.getConf().getBoolean(CommitConstants.FS_S3A_COMMITTER_MAGIC_TRACK_COMMITS_IN_MEMORY_ENABLED,
        CommitConstants.FS_S3A_COMMITTER_MAGIC_TRACK_COMMITS_IN_MEMORY_ENABLED_DEFAULT);
  }

  /** The directories of jobs that S3A keeps what it knows in. */
  static List<Store.Leftover> directories(S3AFileSystem fs, Path table, Predicate<String> ofJob) throws IOException {
    List<Store.Leftover> directories = new ArrayList<>();
    try {
      for (FileStatus status : fs.listStatus(table)) {
        String name = status.getPath().getName();
        if (name.startsWith(CommitConstants.MAGIC_PATH_PREFIX)) {
          String job = name.substring(CommitConstants.MAGIC_PATH_PREFIX.length());
          if (ofJob.test(job)) {
            directories.add(new Store.Leftover(job, name, null));
          }
        }
      }
    } catch (FileNotFoundException e) {
      return directories;
    }
    return directories;
  }

  @Override
  public Path file(String place, String name) {
    Names.check(place, name, job);
    Asked file = new Asked(place, name);
    asked.add(file);
    return magic(file);
  }

  private Path magic(Asked file) {
    Path base = new Path(directory, CommitConstants.BASE);
    return new Path(file.directory.isEmpty() ? base : new Path(base, file.directory), file.name);
  }

  @Override
  public List<PendingFile> commit() throws IOException {
    List<PendingFile> files = new ArrayList<>();
    for (SinglePendingCommit upload : uploads()) {
      String relative = upload.getDestinationKey().substring(fs.pathToKey(table).length() + 1);
      int slash = relative.lastIndexOf('/');
      files.add(PendingFile.upload(relative.substring(0, Math.max(0, slash)), relative.substring(slash + 1), upload.getLength(),
          upload.getUploadId(), S3aPart.tracked(upload.getEtags())));
    }
    forget();
    return files;
  }

  private List<SinglePendingCommit> uploads() throws IOException {
    if (areInMemory(fs)) {
      return InMemoryMagicCommitTracker.getTaskAttemptIdToMpuMetadata().getOrDefault(tracked, List.of());
    }
    return Parallel.map(options.threads, asked, this::upload).stream().filter(Objects::nonNull).toList();
  }

  private SinglePendingCommit upload(Asked file) throws IOException {
    try {
      Path pending = magic(file).suffix(CommitConstants.PENDING_SUFFIX);
      return SinglePendingCommit.load(fs, pending, (FileStatus) null, SinglePendingCommit.serializer());
    } catch (FileNotFoundException e) {
      return null;
    }
  }

  /** Removes what S3A keeps for the committer that this attempt does not have. */
  private void forget() throws IOException {
    if (areInMemory(fs)) {
      InMemoryMagicCommitTracker.getTaskAttemptIdToMpuMetadata().remove(tracked);
      List<Path> paths = InMemoryMagicCommitTracker.getTaskAttemptIdToPath().remove(tracked);
      if (paths != null) {
        paths.forEach(InMemoryMagicCommitTracker.getPathToBytesWritten()::remove);
      }
    } else {
      fs.delete(directory, true);
    }
  }

  @Override
  public void abort() {
    try {
      Parallel.map(options.threads, uploads(), upload -> {
        try {
          operations.abortMultipartCommit(upload.getDestinationKey(), upload.getUploadId());
        } catch (FileNotFoundException e) {
          LOG.debug("Upload {} is gone already", upload.getUploadId(), e);
        }
        return null;
      });
      forget();
    } catch (IOException e) {
      LOG.warn("An aborted task attempt leaves uploads of job {} below {} to the job's recovery", job, table, e);
    }
  }
}
