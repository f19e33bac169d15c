package io.millstream.hadoop.compact;

/**
 * Properties shared by the text files that are joined.
 *
 * @param header whether the first lines are equal headers, kept only once in the result
 * @param json whether lines are JSON values
 */
public record JoinRule(boolean header, boolean json) {
    /** No shared properties, or files that are not changed. */
    public static final JoinRule NONE = new JoinRule(false, false);

    /** The encoding for native code. */
    int bits() {
        return (header ? 1 : 0) | (json ? 2 : 0);
    }
}
