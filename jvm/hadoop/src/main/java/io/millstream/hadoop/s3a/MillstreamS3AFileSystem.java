package io.millstream.hadoop.s3a;

import static org.apache.hadoop.fs.CommonConfigurationKeysPublic.IO_FILE_BUFFER_SIZE_DEFAULT;
import static org.apache.hadoop.fs.CommonConfigurationKeysPublic.IO_FILE_BUFFER_SIZE_KEY;

import io.millstream.hadoop.Companions;
import io.millstream.hadoop.DirectoryListing;
import io.millstream.hadoop.FileRanges;
import io.millstream.hadoop.FileReadAhead;
import io.millstream.hadoop.ListedFileSystem;
import io.millstream.hadoop.ListingOptions;
import io.millstream.hadoop.NativeLibrary;
import io.millstream.hadoop.RemoteFiles;
import io.millstream.hadoop.StreamFiles;
import io.millstream.hadoop.Versions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.impl.OpenFileParameters;
import org.apache.hadoop.fs.s3a.Constants;
import org.apache.hadoop.fs.s3a.S3AFileStatus;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.S3ListRequest;
import org.apache.hadoop.fs.s3a.S3ListResult;
import org.apache.hadoop.fs.store.audit.AuditSpan;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.services.s3.model.CommonPrefix;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Response;
import software.amazon.awssdk.services.s3.model.S3Object;

/**
 * Hadoop's S3A, of which Spark's data sets are listed in parallel, and small files are handed out once they have been read ahead.
 *
 * <p>Set {@code fs.s3a.impl} to this class. Everything else is S3A's own, and S3A answers whatever cannot be answered exactly as it
 * would; the log says why.
 */
public class MillstreamS3AFileSystem extends S3AFileSystem implements ListedFileSystem {
  private static final Logger LOG = LoggerFactory.getLogger(MillstreamS3AFileSystem.class);
  private static final int DEFAULT_THREADS = 32;
  private static final String DIRECTORY_BUCKET = "--x-s3";

  private ListingOptions options;
  private String whyNot;
  private final AtomicReference<String> said = new AtomicReference<>();

  private final StreamFiles.Opener itself = new StreamFiles.Opener() {
    @Override
    public FSDataInputStream open(Path path) throws IOException {
      // Not open(Path), which calls the method below.
      return MillstreamS3AFileSystem.super.open(path, getConf().getInt(IO_FILE_BUFFER_SIZE_KEY, IO_FILE_BUFFER_SIZE_DEFAULT));
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
    Companions.start();
  }

  /** Why S3A itself has to do everything; null if there is no reason. */
  private String whyNot(Configuration effective) {
    String encryption = effective.getTrimmed(Constants.S3_ENCRYPTION_ALGORITHM, "");
    if (getBucket().endsWith(DIRECTORY_BUCKET)) {
      return "directory buckets do not list keys in their order";
    } else if (encryption.toUpperCase(Locale.ROOT).startsWith("CSE")) {
      return "with client-side encryption, files have other lengths than their objects";
    } else if (effective.getInt(Constants.LIST_VERSION, Constants.DEFAULT_LIST_VERSION) != Constants.DEFAULT_LIST_VERSION) {
      return Constants.LIST_VERSION + " is not " + Constants.DEFAULT_LIST_VERSION;
    }
    return null;
  }

  private void say(String reason) {
    if (!reason.equals(said.getAndSet(reason))) {
      LOG.info("{} is listed and read by S3A and Spark themselves: {}", getUri(), reason);
    }
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
    AuditSpan span = createSpan("op_list_files", roots.isEmpty() ? null : roots.get(0).toString(), null);
    S3aListing listing = new S3aListing(getUri(), (prefix, delimiter, after, next) -> {
      span.activate();
      return page(prefix, delimiter, after, next);
    }, options.threadsOr(DEFAULT_THREADS));
    List<String> prefixes = new ArrayList<>();
    for (Path root : roots) {
      String key = pathToKey(root);
      prefixes.add(key.isEmpty() ? "" : key + "/");
    }
    long start = System.nanoTime();
    try {
      List<DirectoryListing> listings = listing.list(prefixes);
      addRootsWithoutKeys(roots, listings);
      LOG.info("Listed {} in {} ms: requests {}, shards {}", roots.size() == 1 ? roots.get(0) : roots.size() + " roots",
          (System.nanoTime() - start) / 1_000_000, listing.requests(), listing.shards());
      return listings;
    } catch (InterruptedIOException e) {
      throw e;
    } catch (IOException e) {
      say(e.toString());
      return null;
    }
  }

  /** A root below which there are no keys may be a file, or missing; S3A looks in this order, too. */
  private void addRootsWithoutKeys(List<Path> roots, List<DirectoryListing> listings) throws IOException {
    Set<Integer> listed = new HashSet<>();
    listings.forEach(listing -> listed.add(listing.root()));
    for (int root = 0; root < roots.size(); root++) {
      if (!listed.contains(root)) {
        Path path = roots.get(root);
        try {
          FileStatus status = super.getFileStatus(path);
          if (status.isFile()) {
            String parent = path.getParent().toUri().getPath();
            DirectoryListing.Builder file = new DirectoryListing.Builder(getUri(), parent, root).ofFile();
            file.add(path.getName(), status.getLen(), status.getModificationTime(), Versions.pack(version(status)));
            listings.add(file.build());
          }
        } catch (FileNotFoundException e) {
          listings.add(new DirectoryListing.Builder(getUri(), path.toUri().getPath(), root).missing().build());
        }
      }
    }
  }

  private static String version(FileStatus status) {
    return status instanceof S3AFileStatus known ? known.getEtag() : null;
  }

  private Keys.Page page(String prefix, String delimiter, String after, String next) throws IOException {
    ListObjectsV2Request.Builder request = getRequestFactory().newListObjectsV2RequestBuilder(prefix, delimiter, Keys.PAGE);
    // Keys may have characters that XML cannot express.
    request.startAfter(after).continuationToken(next).encodingType("url");
    S3ListResult result = listObjects(S3ListRequest.v2(request.build()), getInstrumentation());
    ListObjectsV2Response page = result.getV2();
    List<Keys.Item> items = new ArrayList<>(page.contents().size());
    for (S3Object object : page.contents()) {
      items.add(new Keys.Item(object.key(), object.size(), object.lastModified().toEpochMilli(), object.eTag()));
    }
    List<String> prefixes = page.commonPrefixes().stream().map(CommonPrefix::prefix).toList();
    return new Keys.Page(items, prefixes, Boolean.TRUE.equals(page.isTruncated()) ? page.nextContinuationToken() : null);
  }

  @Override
  public RemoteFiles files(FileRanges ranges) throws IOException {
    return whyNot == null ? new S3aFiles(this, statistics, itself, ranges) : new StreamFiles(itself, ranges);
  }

  @Override
  public FileStatus getFileStatus(Path f) throws IOException {
    FileStatus ahead = FileReadAhead.status(this, f, file -> new S3AFileStatus(file.size(), file.modificationTime(), file.path(),
        getDefaultBlockSize(file.path()), getUsername(), file.version(), null));
    return ahead == null ? super.getFileStatus(f) : ahead;
  }

  @Override
  public FSDataInputStream open(Path f, int bufferSize) throws IOException {
    FSDataInputStream ahead = FileReadAhead.stream(this, f);
    return ahead == null ? super.open(f, bufferSize) : ahead;
  }

  @Override
  public CompletableFuture<FSDataInputStream> openFileWithOptions(Path rawPath, OpenFileParameters parameters) throws IOException {
    FSDataInputStream ahead = FileReadAhead.stream(this, rawPath);
    return ahead == null ? super.openFileWithOptions(rawPath, parameters) : CompletableFuture.completedFuture(ahead);
  }
}
