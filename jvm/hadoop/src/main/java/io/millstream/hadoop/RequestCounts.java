package io.millstream.hadoop;

/**
 * Numbers of requests for bytes to another file system than the local one.
 *
 * @param made all of them
 * @param natively those that native code made by itself
 * @param repeated those that repeat another one
 * @param throttled those that the server turned away for now, as far as native code made them
 */
public record RequestCounts(long made, long natively, long repeated, long throttled) {
  public static final RequestCounts NONE = new RequestCounts(0, 0, 0, 0);

  /** The sums of both. */
  public RequestCounts plus(RequestCounts other) {
    return new RequestCounts(made + other.made, natively + other.natively, repeated + other.repeated, throttled + other.throttled);
  }
}
