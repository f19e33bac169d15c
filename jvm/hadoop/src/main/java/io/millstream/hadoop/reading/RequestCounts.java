package io.millstream.hadoop.reading;

/**
 * Numbers of requests for bytes to a file system other than the local one.
 *
 * @param requests all requests
 * @param nativeRequests requests that native code sent itself
 * @param retries requests that repeated another one
 * @param throttled native requests that the server answered with 503 or 429
 */
public record RequestCounts(long requests, long nativeRequests, long retries, long throttled) {
    public static final RequestCounts NONE = new RequestCounts(0, 0, 0, 0);

    /** The sum. */
    public RequestCounts plus(RequestCounts other) {
        return new RequestCounts(
                requests + other.requests,
                nativeRequests + other.nativeRequests,
                retries + other.retries,
                throttled + other.throttled);
    }

    /** The difference. */
    public RequestCounts minus(RequestCounts others) {
        return new RequestCounts(
                requests - others.requests,
                nativeRequests - others.nativeRequests,
                retries - others.retries,
                throttled - others.throttled);
    }
}
