package io.millstream.write;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.WriteOperations;
import org.apache.hadoop.fs.s3a.commit.CommitConstants;
import org.apache.hadoop.util.functional.CallableRaisingIOE;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.CompletedPart;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.ListMultipartUploadsRequest;
import software.amazon.awssdk.services.s3.model.ListMultipartUploadsResponse;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;
import software.amazon.awssdk.services.s3.model.S3Exception;

/**
 * {@code s3a:}: a pending file is a multipart upload to its final key, whose completion is the publication. S3A makes it when a file
 * is written below a directory of its magic committer, so that any format's writer does.
 */
final class S3aStore implements Store {
  private static final int PRECONDITION_FAILED = 412;
  private static final int CONFLICT = 409;
  private static final int CREATE_ATTEMPTS = 5;
  private static final Pattern UUIDS = Pattern.compile("\\p{XDigit}{8}(?:-\\p{XDigit}{4}){3}-\\p{XDigit}{12}");
  /** Up to so many directories are listed one by one. */
  private static final int FEW_DIRECTORIES = 4;
  private static final int FLAT_LISTING_KEYS = 1000;
  /** A flat listing is one page after the other, and listings of directories are many at once. */
  private static final int DIRECTORIES_A_PAGE = 16;
  /** Buckets that are known to refuse to make what is there. */
  private static final Set<String> CONDITIONAL_BUCKETS = ConcurrentHashMap.newKeySet();

  private final S3AFileSystem fs;
  private final Path table;
  private final WriteOptions options;
  private final Path journal;
  private final S3Client client;
  private final WriteOperations operations;

  private S3aStore(S3AFileSystem fs, Path table, WriteOptions options) throws IOException {
    this.fs = fs;
    this.table = table;
    this.options = options;
    this.journal = new Path(table, JOURNAL);
    this.client = fs.getS3AInternals().getAmazonS3Client("direct writes");
    this.operations = fs.createWriteOperationHelper(fs.createSpan("op_direct_write", table.toString(), null));
  }

  static Store open(FileSystem fs, Path table, WriteOptions options) throws IOException {
    return new S3aStore((S3AFileSystem) fs, table, options);
  }

  static Optional<String> whyNot(FileSystem fs) {
    if (!(fs instanceof S3AFileSystem s3a)) {
      return Optional.of("direct writes to s3a need Hadoop's S3AFileSystem, and this is " + fs.getClass().getName());
    }
    return s3a.isMagicCommitEnabled()
        ? Optional.empty()
        : Optional.of("direct writes to s3a need " + CommitConstants.MAGIC_COMMITTER_ENABLED + " and multipart uploads");
  }

  private String key(String entry) {
    return fs.pathToKey(new Path(journal, entry));
  }

  /** With S3A's retries, and its exceptions. */
  private <T> T retried(String action, String key, CallableRaisingIOE<T> call) throws IOException {
    return operations.retry(action, key, true, call);
  }

  @Override
  public List<Entry> journal() throws IOException {
    List<Entry> entries = new ArrayList<>();
    try {
      for (FileStatus status : fs.listStatus(journal)) {
        entries.add(new Entry(status.getPath().getName(), status.getModificationTime()));
      }
    } catch (FileNotFoundException e) {
      return entries;
    }
    return entries;
  }

  @Override
  public byte[] read(String entry) throws IOException {
    GetObjectRequest request = fs.getRequestFactory().newGetObjectRequestBuilder(key(entry)).build();
    try {
      return retried("read", key(entry), () -> client.getObjectAsBytes(request).asByteArray());
    } catch (FileNotFoundException e) {
      return null;
    }
  }

  @Override
  public boolean create(String entry, byte[] content) throws IOException {
    boolean created = putNew(entry, content) || Arrays.equals(read(entry), content);
    if (created && !CONDITIONAL_BUCKETS.contains(fs.getBucket())) {
      if (putNew(entry, content)) {
        throw new UnsupportedOperationException("the server of " + fs.getUri() + " does not know If-None-Match, by which direct writes"
            + " decide who commits");
      }
      CONDITIONAL_BUCKETS.add(fs.getBucket());
    }
    return created;
  }

  /** False if it is there; it may be that an answer was lost and the request repeated. */
  private boolean putNew(String entry, byte[] content) throws IOException {
    for (int attempt = 1; ; attempt++) {
      try {
        return retried("create", key(entry), () -> {
          try {
            client.putObject(put(entry, content, true), RequestBody.fromBytes(content));
            return true;
          } catch (S3Exception e) {
            if (e.statusCode() == PRECONDITION_FAILED) {
              return false;
            }
            throw e;
          }
        });
      } catch (IOException e) {
        // Another request for the same key is under way: S3 asks to try again.
        if (attempt == CREATE_ATTEMPTS || !(e.getCause() instanceof S3Exception s3) || s3.statusCode() != CONFLICT) {
          throw e;
        }
      }
    }
  }

  private PutObjectRequest put(String entry, byte[] content, boolean onlyNew) {
    PutObjectRequest.Builder request = operations.createPutObjectRequest(key(entry), content.length, null).toBuilder();
    return onlyNew ? request.overrideConfiguration(c -> c.putHeader("If-None-Match", "*")).build() : request.build();
  }

  @Override
  public void replace(String entry, byte[] content) throws IOException {
    retried("replace", key(entry), () -> client.putObject(put(entry, content, false), RequestBody.fromBytes(content)));
  }

  @Override
  public void remove(Collection<String> entries) throws IOException {
    deletePaths(entries.stream().map(entry -> new Path(journal, entry)).toList());
  }

  private void deletePaths(List<Path> paths) throws IOException {
    if (paths.isEmpty()) {
      return;
    }
    try (BulkDelete bulk = fs.createBulkDelete(table)) {
      List<List<Path>> pages = new ArrayList<>();
      for (int start = 0; start < paths.size(); start += bulk.pageSize()) {
        pages.add(paths.subList(start, Math.min(paths.size(), start + bulk.pageSize())));
      }
      Parallel.map(options.threads, pages, page -> {
        List<Map.Entry<Path, String>> failed = bulk.bulkDelete(page);
        if (!failed.isEmpty()) {
          throw new IOException("cannot delete " + failed.size() + " objects, such as " + failed.get(0).getKey() + ": "
              + failed.get(0).getValue());
        }
        return null;
      });
    }
  }

  @Override
  public TaskAttempt attempt(String job, String attempt) {
    return new S3aUploads(fs, operations, table, options, job, attempt);
  }

  @Override
  public boolean publish(PendingFile file) throws IOException {
    Path path = path(file.directory(), file.name());
    try {
      operations.commitUpload(fs.pathToKey(path), file.pending(), completedParts(file), file.bytes());
      return true;
    } catch (FileNotFoundException e) {
      // No such upload: it is completed already, or gone.
      try {
        return fs.getFileStatus(path).getLen() == file.bytes();
      } catch (FileNotFoundException gone) {
        return false;
      }
    }
  }

  private static List<CompletedPart> completedParts(PendingFile file) {
    List<CompletedPart> parts = new ArrayList<>();
    for (String part : file.parts()) {
      parts.add(S3aPart.of(part).completed(parts.size() + 1));
    }
    return parts;
  }

  private Path path(String directory, String name) {
    return new Path(directory.isEmpty() ? table : new Path(table, directory), name);
  }

  @Override
  public List<OldFile> list(Collection<String> directories, boolean recursive) throws IOException {
    if (!recursive && directories.size() > FEW_DIRECTORIES) {
      List<OldFile> files = flat(new HashSet<>(directories));
      if (files != null) {
        return files;
      }
    }
    List<OldFile> files = new ArrayList<>();
    Parallel.map(options.threads, directories, directory -> files(directory, recursive)).forEach(files::addAll);
    return files;
  }

  private List<OldFile> files(String directory, boolean recursive) throws IOException {
    List<OldFile> files = new ArrayList<>();
    try {
      RemoteIterator<LocatedFileStatus> statuses = fs.listFiles(directory.isEmpty() ? table : new Path(table, directory), recursive);
      while (statuses.hasNext()) {
        add(statuses.next(), files);
      }
    } catch (FileNotFoundException e) {
      return List.of();
    }
    return files;
  }

  /** Lists all of what is below the directories' common parent, if that is not much more than they are; else null. */
  private List<OldFile> flat(Set<String> directories) throws IOException {
    List<OldFile> files = new ArrayList<>();
    int most = FLAT_LISTING_KEYS * (1 + directories.size() / DIRECTORIES_A_PAGE);
    try {
      RemoteIterator<LocatedFileStatus> statuses = fs.listFiles(new Path(table, commonParent(directories)), true);
      for (int keys = 0; statuses.hasNext(); keys++) {
        if (keys == most) {
          return null;
        }
        add(statuses.next(), files);
      }
    } catch (FileNotFoundException e) {
      return List.of();
    }
    files.removeIf(file -> !directories.contains(file.directory()));
    return files;
  }

  /** A path, or "." for the table. */
  private static String commonParent(Collection<String> directories) {
    String common = null;
    for (String directory : directories) {
      common = common == null ? directory : commonParent(common, directory);
    }
    return common == null || common.isEmpty() ? Path.CUR_DIR : common;
  }

  private static String commonParent(String a, String b) {
    String common = a;
    while (!(b + "/").startsWith(common + "/") && !common.isEmpty()) {
      common = common.substring(0, Math.max(0, common.lastIndexOf('/')));
    }
    return common;
  }

  private void add(FileStatus status, List<OldFile> files) {
    String relative = status.getPath().toUri().getPath().substring(table.toUri().getPath().length() + 1);
    if (Arrays.stream(relative.split("/")).noneMatch(Names::isHidden)) {
      int slash = relative.lastIndexOf('/');
      files.add(new OldFile(relative.substring(0, Math.max(0, slash)), relative.substring(slash + 1), status.getLen(),
          status.getModificationTime()));
    }
  }

  @Override
  public void delete(List<OldFile> files) throws IOException {
    deletePaths(files.stream().map(file -> path(file.directory(), file.name())).toList());
  }

  /** There are no directories. */
  @Override
  public void prune(Set<String> directories, Collection<String> stay) { }

  @Override
  public List<Leftover> leftovers(Predicate<String> ofJob) throws IOException {
    List<Leftover> leftovers = new ArrayList<>();
    String prefix = fs.pathToKey(table) + "/";
    ListMultipartUploadsRequest.Builder request = fs.getRequestFactory().newListMultipartUploadsRequestBuilder(prefix);
    ListMultipartUploadsResponse page;
    do {
      ListMultipartUploadsRequest next = request.build();
      page = retried("list uploads", prefix, () -> client.listMultipartUploads(next));
      page.uploads().forEach(upload -> jobs(upload.key()).filter(ofJob).ifPresent(
          job -> leftovers.add(new Leftover(job, upload.key().substring(prefix.length()), upload.uploadId()))));
      request.keyMarker(page.nextKeyMarker()).uploadIdMarker(page.nextUploadIdMarker());
    } while (Boolean.TRUE.equals(page.isTruncated()));
    if (!S3aUploads.areInMemory(fs)) {
      leftovers.addAll(S3aUploads.directories(fs, table, ofJob));
    }
    return leftovers;
  }

  /** The job whose file a key names. */
  private static Optional<String> jobs(String key) {
    Matcher uuid = UUIDS.matcher(key.substring(key.lastIndexOf('/') + 1));
    return uuid.find() ? Optional.of(uuid.group()) : Optional.empty();
  }

  /** Other programs' uploads have names such as ours. */
  @Override
  public boolean leftoversNameTheirJobs() {
    return false;
  }

  @Override
  public void discard(List<Leftover> leftovers) throws IOException {
    Parallel.map(options.threads, leftovers, leftover -> {
      Path path = new Path(table, leftover.path());
      if (leftover.uploadId() == null) {
        return fs.delete(path, true);
      }
      try {
        operations.abortMultipartCommit(fs.pathToKey(path), leftover.uploadId());
      } catch (FileNotFoundException e) {
        return false; // it is gone already
      }
      return true;
    });
  }
}
