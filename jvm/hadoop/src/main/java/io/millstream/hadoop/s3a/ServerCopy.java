package io.millstream.hadoop.s3a;

import io.millstream.hadoop.listing.Versions;
import io.millstream.hadoop.natives.UnfitFileException;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.Constants;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.S3AUtils;
import org.apache.hadoop.fs.s3a.Statistic;
import org.apache.hadoop.fs.store.audit.AuditSpan;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.CopyObjectRequest;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.MetadataDirective;
import software.amazon.awssdk.services.s3.model.S3Exception;

/**
 * Server-side copies of objects between buckets or within one, with the client of the destination's live S3A file
 * system, whose credentials must also allow reading the source. If the server does not copy, the bytes go through the
 * caller, as between any two file systems.
 *
 * <p>Request and limit: <a href="https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html">CopyObject</a>.
 */
public final class ServerCopy {
    private static final Logger LOG = LoggerFactory.getLogger(ServerCopy.class);
    /** The largest object that one request copies. */
    private static final long MAX_BYTES = 5L << 30;

    private static final int NOT_FOUND = 404;
    private static final int PRECONDITION_FAILED = 412;
    /** Not allowed, not implemented, or not for these two buckets. */
    private static final Set<Integer> REFUSALS = Set.of(400, 403, 405, 501);
    /** Settings that must be the same for both. */
    private static final String[] PLACE = {Constants.ENDPOINT, Constants.AWS_REGION, Constants.PATH_STYLE_ACCESS};

    private static final String CLIENT_SIDE = "CSE";

    private final S3AFileSystem source;
    private final S3AFileSystem destination;
    private final S3Client client;
    private final AuditSpan span;
    private volatile boolean isRefused;

    private ServerCopy(S3AFileSystem source, S3AFileSystem destination) throws IOException {
        this.source = source;
        this.destination = destination;
        this.client = destination.getS3AInternals().getAmazonS3Client("copies by the server");
        this.span = destination.createSpan("op_copy", null, null);
    }

    /**
     * Prepares copies.
     *
     * @return null if the two are not buckets of one server, or the server cannot see the objects' contents
     * @throws IOException if a file system is closed
     */
    public static ServerCopy between(FileSystem source, FileSystem destination) throws IOException {
        if (!(source instanceof S3AFileSystem) || !(destination instanceof S3AFileSystem)) {
            return null;
        }
        Configuration from = source.getConf();
        Configuration to = destination.getConf();
        for (String setting : PLACE) {
            if (!from.getTrimmed(setting, "").equals(to.getTrimmed(setting, ""))) {
                return null;
            }
        }
        return isEncryptedHere(from) || isEncryptedHere(to)
                ? null
                : new ServerCopy((S3AFileSystem) source, (S3AFileSystem) destination);
    }

    /** With keys in requests or in the client, a copy needs more than a name. */
    private static boolean isEncryptedHere(Configuration conf) {
        String algorithm = conf.getTrimmed(Constants.S3_ENCRYPTION_ALGORITHM, "");
        return algorithm.startsWith(CLIENT_SIDE) || algorithm.equals("SSE-C");
    }

    /**
     * Copies one object with its content type and similar metadata.
     *
     * @param from the source
     * @param version the ETag that the source must have
     * @param metadata user metadata of the copy, added to that of its source
     * @param to the copy, which is replaced if it exists
     * @return false if the server does not support this; nothing has changed
     * @throws java.io.FileNotFoundException if the source does not exist
     * @throws UnfitFileException if the source has another version
     * @throws IOException if the copy failed
     */
    public boolean copy(Path from, String version, Map<String, String> metadata, Path to) throws IOException {
        if (isRefused) {
            return false;
        }
        HeadObjectResponse found = source.getS3AInternals().getObjectMetadata(from);
        if (!version.equals(Versions.plain(found.eTag()))) {
            throw new UnfitFileException(from + " has changed");
        }
        if (found.contentLength() > MAX_BYTES) {
            return false;
        }
        // Some servers change the case of names, which are case-insensitive.
        Map<String, String> all = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        all.putAll(found.metadata());
        all.putAll(metadata);
        String key = source.pathToKey(from);
        CopyObjectRequest request = destination
                .getRequestFactory()
                .newCopyObjectRequestBuilder(key, destination.pathToKey(to), found)
                .sourceBucket(source.getBucket())
                .copySourceIfMatch(Versions.quoted(version))
                .metadataDirective(MetadataDirective.REPLACE)
                .metadata(all)
                .build();
        span.activate();
        destination.getInstrumentation().incrementCounter(Statistic.OBJECT_COPY_REQUESTS, 1);
        try {
            client.copyObject(request);
            return true;
        } catch (S3Exception e) {
            if (e.statusCode() == PRECONDITION_FAILED) {
                throw new UnfitFileException(from + " has changed", e);
            }
            if (e.statusCode() == NOT_FOUND) {
                throw S3AUtils.translateException("copy", from, e);
            }
            if (!REFUSALS.contains(e.statusCode())) {
                throw S3AUtils.translateException("copy", to, e);
            }
            isRefused = true;
            LOG.info("The server refuses to copy {} to {}, so this process copies it: {}", from, to, e.getMessage());
            return false;
        } catch (SdkException e) {
            throw S3AUtils.translateException("copy", to, e);
        }
    }
}
