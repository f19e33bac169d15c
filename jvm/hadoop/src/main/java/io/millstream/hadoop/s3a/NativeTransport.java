package io.millstream.hadoop.s3a;

import io.millstream.hadoop.listing.ListingOptions;
import io.millstream.hadoop.natives.NativeLibrary;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.s3a.AWSCredentialProviderList;
import org.apache.hadoop.fs.s3a.Constants;
import org.apache.hadoop.fs.s3a.S3AEncryptionMethods;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.S3AInternals;
import org.apache.hadoop.fs.s3a.S3AUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3ServiceClientConfiguration;

/**
 * Decides whether native code makes the requests of a file system, and sets up its client.
 *
 * <p>Only timeouts, limits on retries and connections, and the user agent come from settings. The live client supplies
 * the URL of the bucket and its region, the live credential provider the credentials for each request, and this JVM the
 * root certificates. Other settings only decide whether this suffices: with a key of {@code fs.s3a} that is not in the
 * lists below, a proxy or an interceptor, the client makes all requests.
 */
final class NativeTransport implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NativeTransport.class);
    private static final String PREFIX = "fs.s3a.";
    private static final String BUCKET_PREFIX = "fs.s3a.bucket.";
    private static final Duration ESTABLISH = Duration.ofSeconds(30);
    private static final Duration READ = Duration.ofSeconds(200);
    private static final int CONNECTIONS = 500;

    /** Keys whose effect shows in the client's and provider's answers, or that do not concern lists and reads. */
    private static final Set<String> KNOWN = Set.of(
            "access.key",
            "secret.key",
            "session.token",
            "security.credential.provider.path",
            "aws.credentials.provider",
            "aws.credentials.provider.mapping",
            "endpoint",
            "endpoint.region",
            "path.style.access",
            "connection.ssl.enabled",
            "cross.region.access.enabled",
            "user.agent.prefix",
            "connection.establish.timeout",
            "connection.timeout",
            "connection.maximum",
            "connection.acquisition.timeout",
            "connection.expect.continue",
            "connection.idle.time",
            "connection.keepalive",
            "connection.part.upload.timeout",
            "connection.request.timeout",
            "connection.ttl",
            "socket.recv.buffer",
            "socket.send.buffer",
            "threads.max",
            "threads.keepalivetime",
            "max.total.tasks",
            "executor.capacity",
            "attempts.maximum",
            "paging.maximum",
            "list.version",
            "bucket.probe",
            "impl",
            "acl.default",
            "block.size",
            "buffer.dir",
            "readahead.range",
            "etag.checksum.enabled",
            "downgrade.syncable.exceptions",
            "multiobjectdelete.enable",
            "bulk.delete.page.size",
            "directory.marker.retention",
            "directory.operations.purge.uploads",
            "performance.flags",
            "optimized.copy.from.local.enabled",
            "change.detection.mode",
            "experimental.input.fadvise",
            "experimental.aws.s3.throttling",
            "checksum.generation",
            "request.md5.header",
            "object.content.encoding",
            "classloader.isolation",
            "encryption.algorithm",
            "server-side-encryption-algorithm",
            "encryption.key",
            "encryption.context",
            "input.fadvise",
            "input.async.drain.threshold");
    /** Prefixes of such keys. */
    private static final List<String> KNOWN_GROUPS = List.of(
            "assumed.role.",
            "committer.",
            "create.",
            "fast.",
            "multipart.",
            "retry.",
            "vectored.",
            "prefetch.",
            "analytics.",
            "select.",
            "s3guard.",
            "metadatastore.");
    /** Keys and prefixes of keys that requests for new objects would have to honour. */
    private static final List<String> OF_NEW_OBJECTS = List.of(
            "acl.default",
            "create.header.",
            "create.storage.class",
            "encryption.",
            "server-side-encryption-algorithm",
            "object.content.encoding",
            "request.md5.header",
            "checksum.generation");
    /** Server-side encryption: the server decrypts for everyone who may read. */
    private static final Set<S3AEncryptionMethods> SERVER_SIDE = EnumSet.of(
            S3AEncryptionMethods.NONE,
            S3AEncryptionMethods.SSE_S3,
            S3AEncryptionMethods.SSE_KMS,
            S3AEncryptionMethods.DSSE_KMS);
    /** Streams other than these may return bytes that differ from the object's. */
    private static final String STREAM = "input.stream.type";

    private static final Set<String> KNOWN_STREAMS = Set.of("default", "classic", "prefetch", "analytics");
    private static final List<String> PROXY_PROPERTIES = List.of("http.proxyHost", "https.proxyHost", "socksProxyHost");
    private static final List<String> PROXY_VARIABLES =
            List.of("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy");
    private static final List<String> USUAL_INTERCEPTORS =
            List.of("org.apache.hadoop.fs.s3a.", "software.amazon.awssdk.");

    private final NativeBucket bucket;
    private final AWSCredentialProviderList credentials;
    private final String url;
    private final String whyNot;
    private final boolean mayWrite;
    private final AtomicBoolean hasTold = new AtomicBoolean();
    private final AtomicBoolean hasEnded = new AtomicBoolean();
    private final AtomicBoolean isClosed = new AtomicBoolean();

    private NativeTransport(NativeBucket bucket, AWSCredentialProviderList credentials, String url, boolean mayWrite) {
        this.mayWrite = mayWrite;
        this.bucket = bucket;
        this.credentials = credentials;
        this.url = url;
        this.whyNot = null;
    }

    private NativeTransport(String whyNot) {
        this.bucket = null;
        this.credentials = null;
        this.url = null;
        this.mayWrite = false;
        this.whyNot = whyNot;
    }

    /** The transport of a file system that has been initialized. */
    static NativeTransport of(S3AFileSystem fileSystem) {
        try {
            String whyNot = whyNot(fileSystem.getBucket(), fileSystem.getConf());
            if (whyNot == null) {
                S3AInternals internals = fileSystem.getS3AInternals();
                S3Client client = internals.getAmazonS3Client("reading many files");
                whyNot = whyNot(client.serviceClientConfiguration());
                return whyNot == null ? open(fileSystem, internals, client) : new NativeTransport(whyNot);
            }
            return new NativeTransport(whyNot);
        } catch (GeneralSecurityException | IOException | RuntimeException | LinkageError e) {
            // A client that cannot answer this still works.
            return new NativeTransport(e.toString());
        }
    }

    private static NativeTransport open(S3AFileSystem fileSystem, S3AInternals internals, S3Client client)
            throws GeneralSecurityException, IOException {
        Configuration conf = fileSystem.getConf();
        Region region = region(internals, client.serviceClientConfiguration());
        String object = client.utilities()
                .getUrl(url -> url.bucket(fileSystem.getBucket()).key("k").region(region))
                .toString();
        String url = object.substring(0, object.length() - 1);
        byte[][] certificates = url.startsWith("https:") ? trusted() : new byte[0][];
        String prefix = conf.getTrimmed(Constants.USER_AGENT_PREFIX, "");
        NativeBucket.Settings settings = new NativeBucket.Settings(
                url,
                region.id(),
                prefix.isEmpty() ? "Millstream" : prefix + ", Millstream",
                millis(conf, Constants.ESTABLISH_TIMEOUT, ESTABLISH),
                millis(conf, Constants.SOCKET_TIMEOUT, READ),
                retries(conf, Constants.MAX_ERROR_RETRIES),
                retries(conf, Constants.RETRY_THROTTLE_LIMIT),
                conf.getInt(Constants.MAXIMUM_CONNECTIONS, CONNECTIONS),
                certificates);
        AWSCredentialProviderList credentials = internals.shareCredentials("reading many files");
        boolean mayWrite = describesNoObjects(conf)
                && S3AUtils.getEncryptionAlgorithm(fileSystem.getBucket(), conf) == S3AEncryptionMethods.NONE;
        return new NativeTransport(new NativeBucket(settings, () -> now(credentials)), credentials, url, mayWrite);
    }

    /**
     * The region of the bucket. With access across regions, the client may be set to any, and learns the right one from
     * redirections.
     */
    private static Region region(S3AInternals internals, S3ServiceClientConfiguration client) throws IOException {
        boolean isCertain = !Boolean.TRUE.equals(client.crossRegionAccessEnabled())
                || client.endpointOverride().isPresent();
        String found = isCertain ? null : internals.getBucketMetadata().bucketRegion();
        return found == null ? client.region() : Region.of(found);
    }

    /** Why the client has to make all requests, judged without asking it; null if it need not. */
    static String whyNot(String bucket, Configuration conf) throws IOException {
        if (!NativeLibrary.isLoaded()) {
            return NativeLibrary.whyNot();
        } else if (!conf.getBoolean(ListingOptions.NATIVE_S3, true)) {
            return ListingOptions.NATIVE_S3 + " is false";
        } else if (!SERVER_SIDE.contains(S3AUtils.getEncryptionAlgorithm(bucket, conf))) {
            // It may also be in a credential store.
            return "objects are encrypted by "
                    + S3AUtils.getEncryptionAlgorithm(bucket, conf).getMethod();
        } else if (Boolean.getBoolean("com.sun.net.ssl.checkRevocation")) {
            return "com.sun.net.ssl.checkRevocation is set";
        }
        for (String property : PROXY_PROPERTIES) {
            if (System.getProperty(property) != null) {
                return property + " is set";
            }
        }
        for (String variable : PROXY_VARIABLES) {
            if (System.getenv(variable) != null) {
                return variable + " is set";
            }
        }
        return unknownKey(conf);
    }

    /** Why this client has to make all requests; null if it need not. */
    private static String whyNot(S3ServiceClientConfiguration client) {
        for (ExecutionInterceptor interceptor : client.overrideConfiguration().executionInterceptors()) {
            if (USUAL_INTERCEPTORS.stream().noneMatch(interceptor.getClass().getName()::startsWith)) {
                return "requests are changed by " + interceptor.getClass().getName();
            }
        }
        return client.region() == null ? "the client does not know its region" : null;
    }

    /**
     * The reason, if an S3A key or its value is not known to be irrelevant; per-bucket keys have been merged into the
     * others.
     */
    static String unknownKey(Configuration conf) {
        for (Map.Entry<String, String> setting : settings(conf).entrySet()) {
            String name = setting.getKey();
            boolean isKnown = KNOWN.contains(name)
                    || KNOWN_GROUPS.stream().anyMatch(name::startsWith)
                    || name.equals(STREAM)
                            && KNOWN_STREAMS.contains(setting.getValue().trim().toLowerCase(Locale.ROOT));
            if (!isKnown) {
                return PREFIX + name + " is set";
            }
        }
        return null;
    }

    /** Whether new objects get the server's defaults. */
    static boolean describesNoObjects(Configuration conf) {
        return settings(conf).keySet().stream()
                .noneMatch(name -> OF_NEW_OBJECTS.stream().anyMatch(name::startsWith));
    }

    /** S3A's settings that differ from the defaults, without the prefix of their keys and without per-bucket ones. */
    private static Map<String, String> settings(Configuration conf) {
        Configuration defaults = new Configuration(false);
        defaults.addResource("core-default.xml");
        Map<String, String> settings = new LinkedHashMap<>();
        for (Map.Entry<String, String> entry : conf) {
            String key = entry.getKey();
            if (key.startsWith(PREFIX)
                    && !key.startsWith(BUCKET_PREFIX)
                    && !entry.getValue().isBlank()
                    && !entry.getValue().equals(defaults.getRaw(key))) {
                settings.put(key.substring(PREFIX.length()), entry.getValue());
            }
        }
        return settings;
    }

    /** A number of retries; without the key, native code's maximum. */
    private static int retries(Configuration conf, String key) {
        return Math.max(0, conf.getInt(key, Integer.MAX_VALUE));
    }

    private static int millis(Configuration conf, String key, Duration otherwise) {
        long millis = conf.getTimeDuration(key, otherwise.toMillis(), TimeUnit.MILLISECONDS);
        // 0 means no limit.
        return millis <= 0 ? Integer.MAX_VALUE : (int) Math.min(millis, Integer.MAX_VALUE);
    }

    /** The certificates of authorities that this JVM trusts. */
    private static byte[][] trusted() throws GeneralSecurityException {
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init((KeyStore) null);
        List<byte[]> certificates = new ArrayList<>();
        for (TrustManager manager : factory.getTrustManagers()) {
            if (manager instanceof X509TrustManager x509) {
                for (X509Certificate certificate : x509.getAcceptedIssuers()) {
                    certificates.add(certificate.getEncoded());
                }
            }
        }
        return certificates.toArray(new byte[0][]);
    }

    private static String[] now(AWSCredentialProviderList provider) throws IOException {
        try {
            AwsCredentials now = provider.resolveCredentials();
            if (now.accessKeyId() == null) {
                return new String[0];
            }
            return new String[] {
                now.accessKeyId(),
                now.secretAccessKey(),
                now instanceof AwsSessionCredentials session ? session.sessionToken() : ""
            };
        } catch (SdkException e) {
            // S3A reports the error.
            LOG.debug("No credentials", e);
            throw new IOException(e);
        }
    }

    /** The native client for listings; null if they are left to the file system's own. */
    NativeBucket lister() {
        return bucket != null && bucket.lists() ? bucket : null;
    }

    /** The native client for objects; null as above. */
    NativeBucket reader() {
        return bucket != null && bucket.reads() ? bucket : null;
    }

    /** The native client for new objects; null as above. */
    NativeBucket writer() {
        return bucket != null && mayWrite && bucket.writes() ? bucket : null;
    }

    /** Why the file system's own client makes the requests; null if it does not. */
    String whyNot() {
        return whyNot;
    }

    /**
     * Logs why a request had no result: for the first one, and for the last one before the client stops making such
     * requests.
     */
    void refused(String refusal) {
        if (!(bucket.lists() && bucket.reads() && bucket.writes()) && !hasEnded.getAndSet(true)) {
            LOG.info("{}: S3A's client handles such requests from now on: {}", url, refusal);
        } else if (!hasTold.getAndSet(true)) {
            LOG.info("{}: S3A's client repeats a request: {}", url, refusal);
        } else {
            LOG.debug("{}: S3A's client repeats a request: {}", url, refusal);
        }
    }

    /** Which client makes the requests, and why not native code. */
    @Override
    public String toString() {
        if (whyNot != null) {
            return "S3A's client: " + whyNot;
        }
        return bucket.reads() ? "native" : "S3A's client: native requests were refused, see the log";
    }

    @Override
    public void close() {
        if (bucket != null && !isClosed.getAndSet(true)) {
            bucket.close();
            credentials.close();
        }
    }
}
