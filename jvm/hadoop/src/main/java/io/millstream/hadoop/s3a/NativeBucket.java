package io.millstream.hadoop.s3a;

import io.millstream.hadoop.natives.WireReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A native client of a bucket, which uses a fraction of the SDK's CPU time. The file system that owns it supplies its
 * settings, and the credentials for each request.
 *
 * <p>It accepts only unambiguous responses; otherwise the file system's own client repeats the request. Native code
 * encodes a page of a listing as:
 *
 * <pre>
 *  u32 requests, u32 throttled requests
 *  next             the token that continues the listing; empty at its end
 *  u32 n, n times   key, u64 size, i64 mtimeMillis, version (packed, see Versions)
 *  u32 n, n times   common prefix
 * </pre>
 */
final class NativeBucket implements AutoCloseable {
    private static final byte[] NONE = {};

    private final long number;

    /** Provides credentials to native code. */
    @FunctionalInterface
    interface CredentialSource {
        /**
         * The current credentials; called by native threads for each request.
         *
         * @return access key, secret key and session token, which may be empty; an empty array for anonymous requests
         * @throws IOException if there are none
         */
        String[] credentials() throws IOException;
    }

    /**
     * Settings of a client.
     *
     * @param url URL of the bucket, with a slash at its end; keys are appended to it
     * @param region region of the bucket, for signatures
     * @param userAgent {@code User-Agent} of requests
     * @param connectMillis timeout of connecting
     * @param readMillis timeout of a read
     * @param retries maximum number of retries of a request; native code makes no more than two
     * @param throttleRetries the same for a throttled request; no more than seven
     * @param connections maximum number of connections
     * @param certificates trusted root certificates (DER)
     */
    record Settings(
            String url,
            String region,
            String userAgent,
            int connectMillis,
            int readMillis,
            int retries,
            int throttleRetries,
            int connections,
            byte[][] certificates) {}

    /**
     * A page of a listing.
     *
     * @param requests number of requests needed
     * @param throttled number of requests that the server throttled
     */
    record Answer(Keys.Page page, int requests, int throttled) {}

    /** Creates a client, without a request. */
    NativeBucket(Settings settings, CredentialSource credentials) {
        number = open(
                settings.url(),
                settings.region(),
                settings.userAgent(),
                settings.connectMillis(),
                settings.readMillis(),
                settings.retries(),
                settings.throttleRetries(),
                settings.connections(),
                settings.certificates(),
                credentials);
    }

    /** The number by which native code knows it. */
    long number() {
        return number;
    }

    /** Whether it lists pages: not after too many refused list requests, and not when closed. */
    boolean lists() {
        return lists(number);
    }

    /** Whether it reads objects, by the same rule. */
    boolean reads() {
        return reads(number);
    }

    /** Whether it writes objects, by the same rule. */
    boolean writes() {
        return writes(number);
    }

    /**
     * Lists a page, as {@link Keys#list} does.
     *
     * @throws IOException if the file system's own client has to make the request
     */
    Answer page(String prefix, String delimiter, String after, String next) throws IOException {
        return decode(page(number, bytes(prefix), bytes(delimiter), bytes(after), bytes(next)));
    }

    private static byte[] bytes(String text) {
        return text == null ? NONE : text.getBytes(StandardCharsets.UTF_8);
    }

    static Answer decode(byte[] encoded) {
        WireReader in = new WireReader(encoded);
        int requests = in.u32();
        int throttled = in.u32();
        String next = text(in);
        int count = in.u32();
        List<Keys.Item> items = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            items.add(new Keys.Item(text(in), in.u64(), in.u64(), in.prefixed()));
        }
        count = in.u32();
        List<String> prefixes = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            prefixes.add(text(in));
        }
        return new Answer(new Keys.Page(items, prefixes, next.isEmpty() ? null : next), requests, throttled);
    }

    private static String text(WireReader in) {
        return new String(in.prefixed(), StandardCharsets.UTF_8);
    }

    /** Closes the client, which ends running scans. */
    @Override
    public void close() {
        close(number);
    }

    private static native long open(
            String url,
            String region,
            String userAgent,
            int connectMillis,
            int readMillis,
            int retries,
            int throttleRetries,
            int connections,
            byte[][] certificates,
            CredentialSource credentials);

    private static native byte[] page(long number, byte[] prefix, byte[] delimiter, byte[] after, byte[] next)
            throws IOException;

    private static native boolean lists(long number);

    private static native boolean reads(long number);

    private static native boolean writes(long number);

    private static native void close(long number);
}
