package io.millstream.hadoop.s3a;

import static org.apache.hadoop.fs.CommonConfigurationKeysPublic.IO_FILE_BUFFER_SIZE_DEFAULT;
import static org.apache.hadoop.fs.CommonConfigurationKeysPublic.IO_FILE_BUFFER_SIZE_KEY;

import io.millstream.hadoop.fs.FileSystemInitializers;
import io.millstream.hadoop.listing.DatasetNames;
import io.millstream.hadoop.listing.DirectoryListing;
import io.millstream.hadoop.listing.ListedVersions;
import io.millstream.hadoop.listing.ListingOptions;
import io.millstream.hadoop.listing.Version;
import io.millstream.hadoop.listing.Versions;
import io.millstream.hadoop.natives.NativeLibrary;
import io.millstream.hadoop.reading.FileRanges;
import io.millstream.hadoop.reading.FileReadAhead;
import io.millstream.hadoop.reading.ListedFileSystem;
import io.millstream.hadoop.reading.RemoteFiles;
import io.millstream.hadoop.reading.StreamFiles;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.impl.OpenFileParameters;
import org.apache.hadoop.fs.s3a.Constants;
import org.apache.hadoop.fs.s3a.S3AEncryptionMethods;
import org.apache.hadoop.fs.s3a.S3AFileStatus;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.S3ALocatedFileStatus;
import org.apache.hadoop.fs.s3a.S3AUtils;
import org.apache.hadoop.fs.s3a.S3ListRequest;
import org.apache.hadoop.fs.s3a.Statistic;
import org.apache.hadoop.fs.store.audit.AuditSpan;
import org.apache.hadoop.util.functional.RemoteIterators;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.services.s3.model.CommonPrefix;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Response;
import software.amazon.awssdk.services.s3.model.S3Object;

/**
 * Hadoop's S3A that lists Spark's data sets in parallel and serves small files that have been read ahead.
 *
 * <p>Set {@code fs.s3a.impl} to this class. Everything else is S3A's own. S3A also handles every call that native code
 * cannot answer identically; the log says why.
 */
public class MillstreamS3AFileSystem extends S3AFileSystem implements ListedFileSystem {
    private static final Logger LOG = LoggerFactory.getLogger(MillstreamS3AFileSystem.class);
    private static final int DEFAULT_THREADS = 32;
    private static final String DIRECTORY_BUCKET = "--x-s3";

    private ListingOptions options;
    private String whyNot;
    private final AtomicReference<String> said = new AtomicReference<>();
    private NativeTransport transport;

    private final StreamFiles.Opener itself = new StreamFiles.Opener() {
        @Override
        public FSDataInputStream open(Path path) throws IOException {
            // Not open(Path), which calls the method below.
            return MillstreamS3AFileSystem.super.open(
                    path, getConf().getInt(IO_FILE_BUFFER_SIZE_KEY, IO_FILE_BUFFER_SIZE_DEFAULT));
        }

        @Override
        public FileStatus status(Path path) throws IOException {
            return MillstreamS3AFileSystem.super.getFileStatus(path);
        }
    };

    @Override
    public void initialize(URI name, Configuration conf) throws IOException {
        super.initialize(name, conf);
        options = new ListingOptions(getConf());
        whyNot = whyNot(getConf());
        FileSystemInitializers.start();
    }

    /** Why S3A itself has to do everything; null if it need not. */
    private String whyNot(Configuration effective) throws IOException {
        S3AEncryptionMethods encryption = S3AUtils.getEncryptionAlgorithm(getBucket(), effective);
        if (getBucket().endsWith(DIRECTORY_BUCKET)) {
            return "directory buckets do not list keys in order";
        } else if (encryption.getMethod().startsWith("CSE")) {
            return "with client-side encryption, files and their objects differ in length";
        } else if (effective.getInt(Constants.LIST_VERSION, Constants.DEFAULT_LIST_VERSION)
                != Constants.DEFAULT_LIST_VERSION) {
            return Constants.LIST_VERSION + " is not " + Constants.DEFAULT_LIST_VERSION;
        }
        // A Hadoop key since 3.4.2.
        return effective.getTrimmed("fs.s3a.input.stream.type", "").equalsIgnoreCase("custom")
                ? "files are read by custom streams"
                : null;
    }

    private void say(String reason) {
        if (!reason.equals(said.getAndSet(reason))) {
            LOG.info("{} is listed and read by S3A and Spark themselves: {}", getUri(), reason);
        }
    }

    /** Sends native requests. Created on first use: many file systems only write. */
    private synchronized NativeTransport nativeTransport() {
        if (transport == null) {
            transport = NativeTransport.of(this);
            if (transport.whyNot() != null) {
                LOG.info("{} is listed and read by S3A's client: {}", getUri(), transport.whyNot());
            }
        }
        return transport;
    }

    /** The native client that reads objects; null if there is none. */
    NativeBucket nativeReader() {
        return nativeTransport().reader();
    }

    /** The native client that writes objects; null if there is none. */
    NativeBucket nativeWriter() {
        return nativeTransport().writer();
    }

    /** Reports why native code has left a request to S3A. */
    void nativeRefused(String refusal) {
        nativeTransport().refused(refusal);
    }

    /** Counts native requests. */
    void countNative(Statistic kind, long requests, long throttled) {
        getInstrumentation().incrementCounter(kind, requests);
        getInstrumentation().incrementCounter(Statistic.STORE_IO_THROTTLED, throttled);
    }

    /** Counts bytes of objects that native code has read or written. */
    void countNativeBytes(long read, long written) {
        if (read > 0) {
            getInstrumentation().incrementCounter(Statistic.STREAM_READ_BYTES, read);
            statistics.incrementReadOps(1);
            statistics.incrementBytesRead(read);
        } else {
            getInstrumentation().incrementCounter(Statistic.OBJECT_PUT_BYTES, written);
            statistics.incrementWriteOps(1);
            statistics.incrementBytesWritten(written);
        }
    }

    @Override
    public void close() throws IOException {
        synchronized (this) {
            if (transport != null) {
                transport.close();
            }
        }
        super.close();
    }

    @Override
    public boolean listsNatively() {
        boolean can = options.enabled() && NativeLibrary.isLoaded();
        if (can && whyNot != null) {
            say(whyNot);
        }
        return can && whyNot == null;
    }

    @Override
    public List<DirectoryListing> listDataset(List<Path> roots) throws IOException {
        List<String> prefixes = roots.stream().map(this::prefix).toList();
        long start = System.nanoTime();
        try {
            S3aListing listing = listing(roots.isEmpty() ? null : roots.get(0));
            List<DirectoryListing> listings = listing.list(prefixes);
            addRootsWithoutKeys(roots, listings);
            LOG.info(
                    "Listed {} in {} ms: requests {}, shards {}",
                    roots.size() == 1 ? roots.get(0) : roots.size() + " roots",
                    (System.nanoTime() - start) / 1_000_000,
                    listing.requests(),
                    listing.shards());
            return listings;
        } catch (InterruptedIOException e) {
            throw e;
        } catch (IOException e) {
            say(e.toString());
            return null;
        }
    }

    private S3aListing listing(Path path) throws IOException {
        AuditSpan span;
        try {
            span = createSpan("op_list_files", path == null ? null : path.toString(), null);
        } catch (IllegalStateException e) {
            // It is closed, which S3A's own calls report.
            throw new IOException(e);
        }
        return new S3aListing(
                getUri(),
                (prefix, delimiter, after, next) -> {
                    Keys.Page page = nativePage(prefix, delimiter, after, next);
                    if (page == null) {
                        span.activate();
                        page = page(prefix, delimiter, after, next);
                    }
                    return page;
                },
                options.threadsOr(DEFAULT_THREADS));
    }

    /** The prefix of a directory's keys. */
    private String prefix(Path directory) {
        String key = pathToKey(directory);
        return key.isEmpty() ? "" : key + "/";
    }

    /**
     * Like S3A's, but when the caller of a recursive listing reads beyond the first page, many parallel requests list
     * the rest. Many callers only check whether there is a file.
     */
    @Override
    public RemoteIterator<LocatedFileStatus> listFiles(Path f, boolean recursive) throws IOException {
        if (!recursive || !listsNatively()) {
            return super.listFiles(f, recursive);
        }
        Path directory = makeQualified(f);
        S3aListing.Beginning beginning;
        try {
            beginning = listing(directory).beginning(prefix(directory));
        } catch (InterruptedIOException e) {
            throw e;
        } catch (IOException e) {
            say(e.toString());
            return super.listFiles(f, true);
        }
        // If no file is found, the path is a file, an empty directory, or missing.
        return beginning.isAll() && beginning.files().isEmpty()
                ? super.listFiles(f, true)
                : new FileListing(directory, beginning);
    }

    /** The files of the first page, then the others. */
    private final class FileListing implements RemoteIterator<LocatedFileStatus> {
        private final Path directory;
        private final boolean isAll;
        private final RemoteIterator<LocatedFileStatus> first;
        private final Set<Path> delivered = new HashSet<>();
        private RemoteIterator<LocatedFileStatus> rest;

        FileListing(Path directory, S3aListing.Beginning beginning) {
            this.directory = directory;
            isAll = beginning.isAll();
            first = statuses(beginning.files());
        }

        @Override
        public boolean hasNext() throws IOException {
            return first.hasNext() || !isAll && rest().hasNext();
        }

        @Override
        public LocatedFileStatus next() throws IOException {
            if (!first.hasNext()) {
                return rest().next();
            }
            LocatedFileStatus status = first.next();
            delivered.add(status.getPath());
            return status;
        }

        private RemoteIterator<LocatedFileStatus> rest() throws IOException {
            if (rest == null) {
                rest = RemoteIterators.filteringRemoteIterator(all(), status -> !delivered.contains(status.getPath()));
            }
            return rest;
        }

        private RemoteIterator<LocatedFileStatus> all() throws IOException {
            try {
                return statuses(listing(directory).files(prefix(directory)));
            } catch (InterruptedIOException e) {
                throw e;
            } catch (IOException e) {
                say(e.toString());
                return MillstreamS3AFileSystem.super.listFiles(directory, true);
            }
        }

        private RemoteIterator<LocatedFileStatus> statuses(List<Keys.Item> files) {
            return RemoteIterators.mappingRemoteIterator(
                    RemoteIterators.remoteIteratorFromIterable(files), MillstreamS3AFileSystem.this::status);
        }
    }

    @Override
    public RemoteIterator<LocatedFileStatus> listLocatedStatus(Path f) throws IOException {
        return ListedVersions.collecting(super.listLocatedStatus(f));
    }

    private LocatedFileStatus status(Keys.Item item) throws IOException {
        Path path = keyToQualifiedPath(item.key());
        S3AFileStatus status = new S3AFileStatus(
                item.size(),
                item.modificationTime(),
                path,
                getDefaultBlockSize(path),
                getUsername(),
                Versions.quoted(Versions.unpack(item.version())),
                null);
        return new S3ALocatedFileStatus(status, getFileBlockLocations(status, 0, item.size()));
    }

    /** Looks up roots below which there are no keys, in parallel. */
    private void addRootsWithoutKeys(List<Path> roots, List<DirectoryListing> listings) throws IOException {
        Set<Integer> listed = new HashSet<>();
        listings.forEach(listing -> listed.add(listing.root()));
        List<Callable<DirectoryListing>> asked = new ArrayList<>();
        for (int i = 0; i < roots.size(); i++) {
            int root = i;
            if (!listed.contains(root)) {
                asked.add(() -> withoutKeys(roots.get(root), root, roots.size() > 1));
            }
        }
        if (asked.isEmpty()) {
            return;
        }
        ExecutorService threads =
                Executors.newFixedThreadPool(Math.min(asked.size(), options.threadsOr(DEFAULT_THREADS)));
        try {
            for (Future<DirectoryListing> answer : threads.invokeAll(asked)) {
                DirectoryListing listing = answer.get();
                if (listing != null) {
                    listings.add(listing);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw (InterruptedIOException) new InterruptedIOException("Interrupted while listing").initCause(e);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof IOException cause ? cause : new IOException(e.getCause());
        } finally {
            threads.shutdownNow();
        }
    }

    /**
     * A root below which there are no keys: a file, an empty directory (null), or missing; S3A checks in the same
     * order.
     *
     * @param isOneOfMany whether there are other roots: Spark ignores hidden files among them, but, since 4.3, not a
     *     single one
     */
    private DirectoryListing withoutKeys(Path path, int root, boolean isOneOfMany) throws IOException {
        try {
            FileStatus status = super.getFileStatus(path);
            if (!status.isFile()) {
                return null;
            }
            String parent = path.getParent().toUri().getPath();
            DirectoryListing.Builder file = new DirectoryListing.Builder(getUri(), parent, root).ofFile();
            if (!isOneOfMany || !DatasetNames.isHidden(path.getName())) {
                byte[] tag = Versions.pack(Version.tagOf(status));
                file.add(path.getName(), status.getLen(), status.getModificationTime(), tag);
            }
            return file.build();
        } catch (FileNotFoundException e) {
            return new DirectoryListing.Builder(getUri(), path.toUri().getPath(), root)
                    .missing()
                    .build();
        }
    }

    /** A page requested by native code; null if S3A's client has to request it. */
    private Keys.Page nativePage(String prefix, String delimiter, String after, String next) {
        NativeBucket bucket = nativeTransport().lister();
        if (bucket == null) {
            return null;
        }
        try {
            NativeBucket.Answer answer = bucket.page(prefix, delimiter, after, next);
            getInstrumentation().incrementCounter(Statistic.OBJECT_LIST_REQUEST, answer.requests());
            getInstrumentation().incrementCounter(Statistic.STORE_IO_THROTTLED, answer.throttled());
            return answer.page();
        } catch (IOException e) {
            nativeTransport().refused(e.getMessage());
            return null;
        }
    }

    private Keys.Page page(String prefix, String delimiter, String after, String next) throws IOException {
        ListObjectsV2Request.Builder request =
                getRequestFactory().newListObjectsV2RequestBuilder(prefix, delimiter, Keys.PAGE);
        // Keys may have characters that XML cannot express.
        request.startAfter(after).continuationToken(next).encodingType("url");
        ListObjectsV2Response page;
        try {
            page = listObjects(S3ListRequest.v2(request.build()), getInstrumentation())
                    .getV2();
        } catch (SdkException e) {
            throw S3AUtils.translateException("listing", prefix, e);
        }
        if (page.isTruncated() == null || page.isTruncated() && page.nextContinuationToken() == null) {
            throw new IOException("the listing does not say whether it continues, or has no continuation token");
        }
        List<Keys.Item> items = new ArrayList<>(page.contents().size());
        for (S3Object object : page.contents()) {
            if (object.size() == null || object.lastModified() == null) {
                throw new IOException("an object has no size or no time");
            }
            items.add(new Keys.Item(
                    object.key(), object.size(), object.lastModified().toEpochMilli(), Versions.pack(object.eTag())));
        }
        List<String> prefixes =
                page.commonPrefixes().stream().map(CommonPrefix::prefix).toList();
        return new Keys.Page(items, prefixes, page.isTruncated() ? page.nextContinuationToken() : null);
    }

    @Override
    public String transport() {
        return whyNot == null ? nativeTransport().toString() : "S3A's client: " + whyNot;
    }

    @Override
    public RemoteFiles files(FileRanges ranges) throws IOException {
        return whyNot == null
                ? new S3aFiles(this, statistics, itself, nativeTransport(), ranges)
                : new StreamFiles(itself, ranges);
    }

    @Override
    public FileStatus getFileStatus(Path f) throws IOException {
        // For a single object, S3 reports the time in whole seconds; some servers' listings are more exact.
        FileStatus ahead = FileReadAhead.status(
                this,
                f,
                file -> new S3AFileStatus(
                        file.size(),
                        file.modificationTime() / 1000 * 1000,
                        file.path(),
                        getDefaultBlockSize(file.path()),
                        getUsername(),
                        Versions.quoted(file.version().tag()),
                        null));
        return ahead == null ? super.getFileStatus(f) : ahead;
    }

    @Override
    public FSDataInputStream open(Path f, int bufferSize) throws IOException {
        FSDataInputStream ahead = FileReadAhead.stream(this, f);
        return ahead == null ? super.open(f, bufferSize) : ahead;
    }

    @Override
    public CompletableFuture<FSDataInputStream> openFileWithOptions(Path rawPath, OpenFileParameters parameters)
            throws IOException {
        FSDataInputStream ahead = FileReadAhead.stream(this, rawPath);
        return ahead == null
                ? super.openFileWithOptions(rawPath, parameters)
                : CompletableFuture.completedFuture(ahead);
    }
}
