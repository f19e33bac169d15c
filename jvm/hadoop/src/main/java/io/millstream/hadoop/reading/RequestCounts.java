package io.millstream.hadoop.reading;

/**
 * Numbers of requests for bytes to another file system than the local one.
 *
 * @param requests all of them
 * @param nativeRequests those that native code made by itself
 * @param retries those that repeat another one
 * @param throttled those that the server answered with 503 or 429; only native ones
 */
public record RequestCounts(long requests, long nativeRequests, long retries, long throttled) {
    public static final RequestCounts NONE = new RequestCounts(0, 0, 0, 0);

    /** The sums of both. */
    public RequestCounts plus(RequestCounts other) {
        return new RequestCounts(
                requests + other.requests,
                nativeRequests + other.nativeRequests,
                retries + other.retries,
                throttled + other.throttled);
    }

    /** What these have more than others. */
    public RequestCounts minus(RequestCounts others) {
        return new RequestCounts(
                requests - others.requests,
                nativeRequests - others.nativeRequests,
                retries - others.retries,
                throttled - others.throttled);
    }
}
