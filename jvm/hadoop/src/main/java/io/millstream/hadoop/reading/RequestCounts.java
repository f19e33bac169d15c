package io.millstream.hadoop.reading;

/**
 * Numbers of requests for bytes to a file system other than the local one.
 *
 * @param requests all of them
 * @param nativeRequests those sent by native code itself
 * @param retries those that repeated another
 * @param throttled those that the server answered with 503 or 429; only native ones
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
