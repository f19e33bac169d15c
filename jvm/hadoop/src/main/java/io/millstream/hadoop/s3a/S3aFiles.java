package io.millstream.hadoop.s3a;

import io.millstream.hadoop.listing.Versions;
import io.millstream.hadoop.reading.FileRanges;
import io.millstream.hadoop.reading.ListedFile;
import io.millstream.hadoop.reading.RemoteFiles;
import io.millstream.hadoop.reading.StreamFiles;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.Statistic;
import org.apache.hadoop.fs.store.audit.AuditSpan;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.core.ResponseInputStream;
import software.amazon.awssdk.core.exception.AbortedException;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.S3Exception;

/**
 * Objects that native threads read: one GET of the listed version for the bytes that a reader requests, and no HEAD.
 * Native code sends the requests itself if it may ({@link NativeTransport}). Otherwise, and if it does not get the
 * bytes, this class sends them with the client of the live S3A file system.
 *
 * <p>An object of unknown version is also left to S3A's own stream: its parts could come from different versions.
 *
 * <p>The client repeats a refused request; a body that ends early is requested again from there. If that fails, or the
 * object has changed or is gone, the file is left to S3A's own stream, whose answer is the contract. But a file that
 * has changed after parts of it were read fails, as it does in S3A.
 */
final class S3aFiles extends RemoteFiles {
    private static final Logger LOG = LoggerFactory.getLogger(S3aFiles.class);
    private static final int CHUNK = 64 << 10;
    private static final ThreadLocal<byte[]> CHUNKS = ThreadLocal.withInitial(() -> new byte[CHUNK]);
    private static final int ATTEMPTS = 3;
    private static final int PRECONDITION_FAILED = 412;
    private static final long FIRST_PAUSE_MILLIS = 50;

    private final S3AFileSystem fileSystem;
    private final FileSystem.Statistics statistics;
    private final StreamFiles.Opener opener;
    private final S3Client client;
    private final AuditSpan span;
    private final NativeTransport transport;
    /** Ranges that S3A's own streams have read. */
    private final Set<Integer> ofStreams = ConcurrentHashMap.newKeySet();

    /**
     * The objects of ranges.
     *
     * @param statistics the statistics of the scheme, in which streams count in addition to S3A's own
     * @param opener S3A's own streams
     * @param transport the native client
     */
    S3aFiles(
            S3AFileSystem fileSystem,
            FileSystem.Statistics statistics,
            StreamFiles.Opener opener,
            NativeTransport transport,
            FileRanges ranges)
            throws IOException {
        super(ranges);
        this.transport = transport;
        this.fileSystem = fileSystem;
        this.statistics = statistics;
        this.opener = opener;
        this.client = fileSystem.getS3AInternals().getAmazonS3Client("reading many files");
        this.span = fileSystem.createSpan("op_open", null, null);
    }

    @Override
    protected File file(int range, ListedFile entry) {
        return new S3Object(range, entry);
    }

    @Override
    protected boolean isAsListed(int range) {
        return !ofStreams.contains(range);
    }

    @Override
    protected long nativeBucket() {
        NativeBucket bucket = transport.reader();
        return bucket == null ? 0 : bucket.number();
    }

    @Override
    protected void hasReadNatively(int made, int turnedAway, long bytes, String refusal) {
        fileSystem.getInstrumentation().incrementCounter(Statistic.ACTION_HTTP_GET_REQUEST, made);
        fileSystem.getInstrumentation().incrementCounter(Statistic.STORE_IO_THROTTLED, turnedAway);
        fileSystem.getInstrumentation().incrementCounter(Statistic.STREAM_READ_BYTES, bytes);
        statistics.incrementReadOps(made);
        countBytes(bytes);
        if (refusal != null) {
            transport.refused(refusal);
        }
    }

    private void countBytes(long bytes) {
        if (!areCountedByCaller()) {
            statistics.incrementBytesRead(bytes);
        }
    }

    private final class S3Object extends File {
        private final ListedFile entry;
        /** Whether bytes of the listed version have been read. */
        private boolean isRead;
        /** S3A's own stream, once it has to answer. */
        private FSDataInputStream stream;
        /** Why that could not read: it closes itself then, so the result of another reader would say nothing. */
        private IOException failure;

        S3Object(int range, ListedFile entry) {
            super(range);
            this.entry = entry;
        }

        @Override
        protected int fill(long offset, ByteBuffer buffer) throws IOException {
            // No request would tell whether an empty object still exists and is empty.
            if (entry.version().size() <= 0 || entry.version().tag() == null || hasStream()) {
                return readStream(null, offset, buffer);
            }
            if (offset >= entry.version().size()) {
                return 0;
            }
            int wanted = (int) Math.min(buffer.remaining(), entry.version().size() - offset);
            buffer.limit(buffer.position() + wanted);
            SdkException refusal = null;
            for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
                try {
                    get(offset + buffer.position(), buffer);
                } catch (AbortedException e) {
                    throw interrupted(e);
                } catch (S3Exception e) {
                    return readStream(e, offset, buffer.position(0));
                } catch (SdkException e) {
                    refusal = e;
                } catch (InterruptedIOException e) {
                    if (Thread.currentThread().isInterrupted()) {
                        throw e;
                    }
                    refusal = SdkException.create("timed out", e);
                } catch (IOException e) {
                    refusal = SdkException.create("the body ended early", e);
                }
                if (!buffer.hasRemaining()) {
                    // If another reader has found a new version meanwhile, all rows must come from that.
                    return accept() ? wanted : readStream(null, offset, buffer.position(0));
                }
                if (attempt < ATTEMPTS) {
                    LOG.debug("Reading {} from {} again", entry.path(), offset + buffer.position(), refusal);
                    countRetry();
                    pause(FIRST_PAUSE_MILLIS << (attempt - 1));
                }
            }
            return readStream(refusal, offset, buffer.position(0));
        }

        /** Reads with S3A's own stream because of {@code cause}. */
        private int readStream(SdkException cause, long offset, ByteBuffer buffer) throws IOException {
            FSDataInputStream answering = stream(cause);
            synchronized (answering) {
                if (failure != null) {
                    throw failure;
                }
                try {
                    return StreamFiles.read(answering, offset, buffer);
                } catch (IOException e) {
                    failure = e;
                    throw e;
                }
            }
        }

        /** Reads into the buffer until it is full, or the body ends. */
        private void get(long from, ByteBuffer buffer) throws IOException {
            boolean isWhole = from == 0 && buffer.remaining() == entry.version().size();
            GetObjectRequest.Builder request =
                    fileSystem.getRequestFactory().newGetObjectRequestBuilder(fileSystem.pathToKey(entry.path()));
            if (!isWhole) {
                request.range("bytes=" + from + "-" + (from + buffer.remaining() - 1));
            }
            request.ifMatch(Versions.quoted(entry.version().tag()));
            span.activate();
            countRequest();
            fileSystem.getInstrumentation().incrementCounter(Statistic.ACTION_HTTP_GET_REQUEST, 1);
            statistics.incrementReadOps(1);
            byte[] chunk = CHUNKS.get();
            int before = buffer.position();
            try (ResponseInputStream<GetObjectResponse> body = client.getObject(request.build())) {
                String version = body.response().eTag();
                if (version != null && !entry.version().tag().equals(Versions.plain(version))) {
                    throw S3Exception.builder()
                            .statusCode(PRECONDITION_FAILED)
                            .message("a different version: the server does not support If-Match")
                            .build();
                }
                for (int read = 0; read >= 0 && buffer.hasRemaining(); ) {
                    buffer.put(chunk, 0, read);
                    read = body.read(chunk, 0, Math.min(chunk.length, buffer.remaining()));
                }
            } finally {
                fileSystem
                        .getInstrumentation()
                        .incrementCounter(Statistic.STREAM_READ_BYTES, buffer.position() - before);
                countBytes(buffer.position() - before);
            }
        }

        /** Records that bytes of the listed version are used; false if S3A's own stream has to answer. */
        @Override
        protected synchronized boolean accept() {
            isRead = stream == null;
            return isRead;
        }

        private synchronized boolean hasStream() {
            return stream != null;
        }

        /** S3A's own stream, which opens the current version. */
        private synchronized FSDataInputStream stream(SdkException cause) throws IOException {
            if (stream == null) {
                if (isRead) {
                    throw new IOException(
                            "the object changed or became unreadable while it was being read: " + entry.path(), cause);
                }
                if (cause != null) {
                    LOG.info("{} is left to S3A: {}", entry.path(), cause.toString());
                }
                ofStreams.add(range);
                stream = isOnlyAsListed() ? listedStream() : opener.open(entry.path());
            }
            return stream;
        }

        /** S3A's own stream, which reads the version found when it was opened, if that is the listed one. */
        private FSDataInputStream listedStream() throws IOException {
            FSDataInputStream opened = opener.open(entry.path());
            try {
                requireListed(entry, ListedFile.of(opener.status(entry.path())));
                return opened;
            } catch (IOException e) {
                opened.close();
                throw e;
            }
        }

        @Override
        protected boolean endsQuietly() {
            return true;
        }

        @Override
        protected ListedFile now() throws IOException {
            if (hasStream() && isOnlyAsListed()) {
                return entry; // it has been compared with the stream's, whose time S3 states in whole seconds only
            }
            return hasStream() || entry.version().size() < 0 ? ListedFile.of(opener.status(entry.path())) : entry;
        }

        @Override
        protected synchronized void close() {
            if (stream != null) {
                try {
                    stream.close();
                } catch (IOException e) {
                    LOG.debug("Closing {}", entry.path(), e);
                }
            }
        }
    }

    private static InterruptedIOException interrupted(Exception cause) {
        InterruptedIOException interrupted = new InterruptedIOException("Interrupted while reading");
        interrupted.initCause(cause);
        return interrupted;
    }

    private static void pause(long millis) throws InterruptedIOException {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw interrupted(e);
        }
    }
}
