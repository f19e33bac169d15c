package io.millstream.write.store.s3a;

import io.millstream.hadoop.s3a.MillstreamS3AFileSystem;
import io.millstream.write.store.JobId;
import io.millstream.write.store.Names;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.Pause;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.UnsuitedException;
import io.millstream.write.store.WriteOptions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.s3a.Constants;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.WriteOperations;
import org.apache.hadoop.fs.s3a.commit.CommitConstants;
import org.apache.hadoop.fs.statistics.StoreStatisticNames;
import org.apache.hadoop.util.functional.CallableRaisingIOE;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.CompletedPart;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.ListMultipartUploadsRequest;
import software.amazon.awssdk.services.s3.model.ListMultipartUploadsResponse;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Response;
import software.amazon.awssdk.services.s3.model.MultipartUpload;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;
import software.amazon.awssdk.services.s3.model.S3Exception;
import software.amazon.awssdk.services.s3.model.S3Object;

/**
 * The store for {@code s3a:}. A staged file is a multipart upload to its final key; completing the upload publishes the
 * file. S3A makes such uploads for files below a directory of its magic committer, so the writer of any format can be
 * used ({@link S3aUploadFileSystem}).
 */
public final class S3aStore implements Store {
    private static final Logger LOG = LoggerFactory.getLogger(S3aStore.class);
    private static final int PRECONDITION_FAILED = 412;
    private static final int CONFLICT = 409;
    private static final int CREATE_ATTEMPTS = 5;
    private static final int DELETE_ATTEMPTS = 6;
    private static final long FIRST_DELETE_PAUSE_MILLIS = 50;
    private static final Pattern ACCESS_DENIED = Pattern.compile("Access ?Denied");
    private static final Pattern JOBS = Pattern.compile(JobId.PATTERN);
    /** Up to this number, directories are listed separately. */
    private static final int FEW_DIRECTORIES = 4;

    private static final int FLAT_LISTING_KEYS = 1000;
    private static final int PAGE_KEYS = 1000;
    /**
     * Number of directories that can be listed in the time of one page: pages are sequential, directories are listed in
     * parallel.
     */
    private static final int DIRECTORIES_A_PAGE = 16;
    /** Buckets that are known to honour If-None-Match. */
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

    public static Store open(FileSystem fs, Path table, WriteOptions options) throws IOException {
        return new S3aStore((S3AFileSystem) fs, table, options);
    }

    public static Optional<String> whyNot(FileSystem fs) {
        // Files are written through a separate S3A instance, which would bypass a subclass of the user.
        if (fs.getClass() != S3AFileSystem.class && fs.getClass() != MillstreamS3AFileSystem.class) {
            return Optional.of("direct writes to s3a need Hadoop's S3AFileSystem, but this is "
                    + fs.getClass().getName());
        }
        return ((S3AFileSystem) fs).isMagicCommitEnabled()
                ? S3aPart.whyNot()
                : Optional.of("direct writes to s3a need " + CommitConstants.MAGIC_COMMITTER_ENABLED
                        + " and multipart uploads");
    }

    private String key(String entry) {
        return fs.pathToKey(Names.entry(journal, entry));
    }

    /** Runs a call with S3A's retries and exceptions. */
    private <T> T retried(String action, String key, CallableRaisingIOE<T> call) throws IOException {
        return operations.retry(action, key, true, call);
    }

    /** One request a page, even if there is no journal: S3A would check three times whether it is a directory. */
    @Override
    public List<Entry> journal() throws IOException {
        if (fs.getConf().getInt(Constants.LIST_VERSION, Constants.DEFAULT_LIST_VERSION) == 1) {
            return journalByS3a();
        }
        String prefix = fs.pathToKey(journal) + Path.SEPARATOR;
        ListObjectsV2Request.Builder request =
                fs.getRequestFactory().newListObjectsV2RequestBuilder(prefix, Path.SEPARATOR, PAGE_KEYS);
        List<Entry> entries = new ArrayList<>();
        ListObjectsV2Response page;
        do {
            ListObjectsV2Request next = request.build();
            page = retried("list", prefix, () -> client.listObjectsV2(next));
            for (S3Object object : page.contents()) {
                String name = object.key().substring(prefix.length());
                String entry = name.isEmpty() ? null : Names.entryOf(new Path(journal, name));
                if (entry != null) {
                    entries.add(new Entry(entry, object.lastModified().toEpochMilli()));
                }
            }
            request.continuationToken(page.nextContinuationToken());
        } while (Boolean.TRUE.equals(page.isTruncated()));
        return entries;
    }

    /** For servers that know only the first version of the request. */
    private List<Entry> journalByS3a() throws IOException {
        List<Entry> entries = new ArrayList<>();
        try {
            for (FileStatus status : fs.listStatus(journal)) {
                String entry = Names.entryOf(status.getPath());
                if (entry != null) {
                    entries.add(new Entry(entry, status.getModificationTime()));
                }
            }
        } catch (FileNotFoundException e) {
            return entries;
        }
        return entries;
    }

    @Override
    public byte[] read(String entry) throws IOException {
        GetObjectRequest request =
                fs.getRequestFactory().newGetObjectRequestBuilder(key(entry)).build();
        try {
            return retried(
                    "read", key(entry), () -> client.getObjectAsBytes(request).asByteArray());
        } catch (FileNotFoundException e) {
            return null;
        }
    }

    /** There are no directories. */
    @Override
    public boolean begin(String entry, byte[] content) throws IOException {
        return create(entry, content);
    }

    @Override
    public boolean create(String entry, byte[] content) throws IOException {
        boolean created = putNew(entry, content) || Arrays.equals(read(entry), content);
        if (created && !CONDITIONAL_BUCKETS.contains(bucket())) {
            if (putNew(entry, content)) {
                remove(List.of(entry));
                throw new UnsuitedException(
                        "the S3 server of " + fs.getUri()
                                + " does not honour If-None-Match, which direct writes need to decide which job"
                                + " commits",
                        null);
            }
            CONDITIONAL_BUCKETS.add(bucket());
        }
        return created;
    }

    /** The bucket with its endpoint, since another server may have a bucket of the same name. */
    private String bucket() {
        return fs.getConf().getTrimmed(Constants.ENDPOINT, "") + "/" + fs.getBucket();
    }

    /** Creates an object. False if it exists, which may be because a reply was lost and the request repeated. */
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
                // Another request for the same key is in progress; S3 asks clients to retry.
                if (attempt == CREATE_ATTEMPTS
                        || !(e.getCause() instanceof S3Exception s3)
                        || s3.statusCode() != CONFLICT) {
                    throw e;
                }
            }
        }
    }

    private PutObjectRequest put(String entry, byte[] content, boolean onlyNew) {
        PutObjectRequest.Builder request =
                operations.createPutObjectRequest(key(entry), content.length, null).toBuilder();
        return onlyNew
                ? request.overrideConfiguration(c -> c.putHeader("If-None-Match", "*"))
                        .build()
                : request.build();
    }

    @Override
    public void replace(String entry, byte[] content) throws IOException {
        retried(
                "replace",
                key(entry),
                () -> client.putObject(put(entry, content, false), RequestBody.fromBytes(content)));
    }

    @Override
    public void remove(Collection<String> entries) throws IOException {
        deletePaths(entries.stream().map(entry -> Names.entry(journal, entry)).toList());
    }

    private void deletePaths(List<Path> paths) throws IOException {
        if (paths.isEmpty()) {
            return;
        }
        try (BulkDelete bulk = fs.createBulkDelete(fs.makeQualified(new Path(Path.SEPARATOR)))) {
            List<List<Path>> pages = new ArrayList<>();
            for (int start = 0; start < paths.size(); start += bulk.pageSize()) {
                pages.add(paths.subList(start, Math.min(paths.size(), start + bulk.pageSize())));
            }
            Parallel.map(options.threads, pages, page -> deletePage(bulk, page));
        }
    }

    /** S3A retries failed requests, but a successful request may still report single objects that must be retried. */
    private static Void deletePage(BulkDelete bulk, List<Path> page) throws IOException {
        List<Map.Entry<Path, String>> failed = bulk.bulkDelete(page);
        for (int attempt = 1; !failed.isEmpty(); attempt++) {
            boolean isRefused = failed.stream()
                    .anyMatch(
                            failure -> ACCESS_DENIED.matcher(failure.getValue()).find());
            if (isRefused || attempt == DELETE_ATTEMPTS) {
                throw new IOException("cannot delete " + failed.size() + " objects, such as "
                        + failed.get(0).getKey() + ": " + failed.get(0).getValue());
            }
            Pause.sleep(FIRST_DELETE_PAUSE_MILLIS << attempt);
            failed = bulk.bulkDelete(failed.stream().map(Map.Entry::getKey).toList());
        }
        return null;
    }

    @Override
    public TaskAttempt attempt(String job, String attempt) {
        return new S3aUploads(fs, operations, table, options, job, attempt);
    }

    @Override
    public boolean publish(StagedFile file) throws IOException {
        Path path = path(file.directory(), file.name());
        try {
            operations.commitUpload(fs.pathToKey(path), file.stagedAs(), completedParts(file), file.bytes());
            return true;
        } catch (FileNotFoundException e) {
            // There is no such upload: it was completed or aborted.
            try {
                return fs.getFileStatus(path).getLen() == file.bytes();
            } catch (FileNotFoundException gone) {
                return false;
            }
        }
    }

    @Override
    public List<StagedFile> unpublished(List<StagedFile> files) throws IOException {
        Set<String> directories = files.stream().map(StagedFile::directory).collect(Collectors.toSet());
        Map<String, Long> sizes = new HashMap<>();
        list(directories, false).forEach(file -> sizes.put(file.toString(), file.bytes()));
        return files.stream()
                .filter(file -> !Objects.equals(sizes.get(file.toString()), file.bytes()))
                .toList();
    }

    private static List<CompletedPart> completedParts(StagedFile file) {
        List<CompletedPart> parts = new ArrayList<>();
        for (String part : file.parts()) {
            parts.add(S3aPart.of(part).completed(parts.size() + 1));
        }
        return parts;
    }

    private Path path(String directory, String name) {
        return Names.path(Names.path(table, directory), name);
    }

    @Override
    public List<OldFile> list(Collection<String> directories, boolean recursive) throws IOException {
        if (directories.size() > FEW_DIRECTORIES && directories.stream().noneMatch(d -> d.startsWith(Path.SEPARATOR))) {
            List<OldFile> files = flat(new HashSet<>(directories), recursive);
            if (files != null) {
                return files;
            }
        }
        List<OldFile> files = new ArrayList<>();
        Parallel.map(options.threads, directories, directory -> files(directory, recursive))
                .forEach(files::addAll);
        return files;
    }

    private List<OldFile> files(String directory, boolean recursive) throws IOException {
        List<OldFile> files = new ArrayList<>();
        try {
            RemoteIterator<LocatedFileStatus> statuses = fs.listFiles(Names.path(table, directory), recursive);
            while (statuses.hasNext()) {
                add(directory, statuses.next(), files);
            }
        } catch (FileNotFoundException e) {
            return List.of();
        }
        return files;
    }

    /**
     * Lists all files below the directories' common parent; null if these are too many compared with the number of
     * directories.
     */
    private List<OldFile> flat(Set<String> directories, boolean recursive) throws IOException {
        List<OldFile> files = new ArrayList<>();
        int maxKeys = FLAT_LISTING_KEYS * (1 + directories.size() / DIRECTORIES_A_PAGE);
        try {
            RemoteIterator<LocatedFileStatus> statuses =
                    fs.listFiles(Names.path(table, commonParent(directories)), true);
            for (int keys = 0; statuses.hasNext(); keys++) {
                if (keys == maxKeys) {
                    return null;
                }
                FileStatus status = statuses.next();
                String directory = relative(status.getPath().getParent());
                String listed = recursive ? above(directory, directories) : directory;
                if (directories.contains(listed)) {
                    add(listed, status, files);
                }
            }
        } catch (FileNotFoundException e) {
            return List.of();
        }
        return files;
    }

    /** The one of these directories that a directory is or is below; some other directory if there is none. */
    private static String above(String directory, Set<String> directories) {
        String up = directory;
        while (!directories.contains(up) && !up.isEmpty()) {
            up = Names.parent(up);
        }
        return up;
    }

    private static String commonParent(Collection<String> directories) {
        String common = null;
        for (String directory : directories) {
            common = common == null ? directory : commonParent(common, directory);
        }
        return common;
    }

    private static String commonParent(String a, String b) {
        String common = a;
        while (!(b + "/").startsWith(common + "/") && !common.isEmpty()) {
            common = Names.parent(common);
        }
        return common;
    }

    /** Adds a file unless it is hidden in the directory that was listed. */
    private void add(String listed, FileStatus status, List<OldFile> files) {
        String directory = relative(status.getPath().getParent());
        String below = directory.substring(Math.min(directory.length(), listed.length())) + "/"
                + status.getPath().getName();
        if (Arrays.stream(below.split("/")).noneMatch(Names::isHidden)) {
            files.add(
                    new OldFile(directory, status.getPath().getName(), status.getLen(), status.getModificationTime()));
        }
    }

    /** A directory's name: relative to the table's, or absolute if it is elsewhere. */
    private String relative(Path directory) {
        String path = directory.toUri().getPath();
        String top = table.isRoot() ? "" : table.toUri().getPath();
        return path.equals(table.toUri().getPath())
                ? ""
                : path.startsWith(top + "/") ? path.substring(top.length() + 1) : path;
    }

    @Override
    public void delete(List<OldFile> files) throws IOException {
        deletePaths(
                files.stream().map(file -> path(file.directory(), file.name())).toList());
    }

    @Override
    public void makeDirectories(Collection<String> directories) throws IOException {
        Parallel.map(options.threads, directories, directory -> fs.mkdirs(Names.path(table, directory)));
    }

    @Override
    public void removeTree(String directory) throws IOException {
        fs.delete(Names.path(table, directory), true);
    }

    @Override
    public boolean copiesInRenames() {
        return true;
    }

    /** There are no directories. */
    @Override
    public void prune(Set<String> directories, Collection<String> stay) {}

    @Override
    public List<Leftover> leftovers(String below, Predicate<String> ofJob) throws IOException {
        List<Leftover> leftovers = new ArrayList<>();
        String prefix = S3aUploads.prefix(fs, table);
        try {
            uploads(upload -> {
                String job = jobOf(upload.key()).orElse("");
                if (ofJob.test(job)) {
                    leftovers.add(new Leftover(job, upload.key().substring(prefix.length()), upload.uploadId()));
                }
            });
        } catch (AccessDeniedException e) {
            LOG.warn("Leftover uploads to {} are not removed, because the credentials may not list uploads", table, e);
        }
        return leftovers;
    }

    /** Lists the incomplete uploads below the table. */
    private void uploads(Consumer<MultipartUpload> each) throws IOException {
        String prefix = S3aUploads.prefix(fs, table);
        ListMultipartUploadsRequest.Builder request =
                fs.getRequestFactory().newListMultipartUploadsRequestBuilder(prefix);
        ListMultipartUploadsResponse page;
        do {
            ListMultipartUploadsRequest next = request.build();
            page = retried("list uploads", prefix, () -> client.listMultipartUploads(next));
            page.uploads().forEach(each);
            request.keyMarker(page.nextKeyMarker()).uploadIdMarker(page.nextUploadIdMarker());
        } while (Boolean.TRUE.equals(page.isTruncated()));
    }

    /** Not every server lists all uploads, so those that the listing does not show are checked one by one. */
    @Override
    public List<StagedFile> missing(List<StagedFile> files) throws IOException {
        Set<String> there = new HashSet<>();
        try {
            uploads(upload -> there.add(upload.uploadId()));
            List<StagedFile> unseen = files.stream()
                    .filter(file -> !there.contains(file.stagedAs()))
                    .toList();
            return Parallel.map(options.threads, unseen, file -> isThere(file) ? null : file).stream()
                    .filter(Objects::nonNull)
                    .toList();
        } catch (AccessDeniedException e) {
            LOG.warn(
                    "Cannot check whether the uploads to {} still exist, because the credentials may not list uploads",
                    table,
                    e);
            return List.of();
        }
    }

    private boolean isThere(StagedFile file) throws IOException {
        String key = fs.pathToKey(path(file.directory(), file.name()));
        try {
            retried(
                    "list parts",
                    key,
                    () -> client.listParts(request -> request.bucket(fs.getBucket())
                            .key(key)
                            .uploadId(file.stagedAs())
                            .maxParts(1)));
            return true;
        } catch (FileNotFoundException e) {
            return false;
        }
    }

    /** The job whose file a key names. */
    private static Optional<String> jobOf(String key) {
        Matcher job = JOBS.matcher(key.substring(key.lastIndexOf('/') + 1));
        return job.find() ? Optional.of(job.group()) : Optional.empty();
    }

    /** Other programs' uploads may have similar names. */
    @Override
    public boolean leftoversNameTheirJobs() {
        return false;
    }

    @Override
    public void discard(List<Leftover> leftovers) throws IOException {
        Parallel.map(options.threads, leftovers, leftover -> {
            try {
                operations.abortMultipartCommit(fs.pathToKey(Names.path(table, leftover.path())), leftover.uploadId());
            } catch (FileNotFoundException e) {
                return false; // it is already gone
            }
            return true;
        });
    }

    @Override
    public long requests() {
        return fs.getIOStatistics().counters().getOrDefault(StoreStatisticNames.STORE_IO_REQUEST, 0L);
    }
}
