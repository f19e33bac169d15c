package io.millstream.hadoop.compact;

/**
 * What files of lines that are joined have in common.
 *
 * @param header whether the first lines are equal headers, of which the result has one
 * @param json whether lines are JSON values
 */
public record JoinRule(boolean header, boolean json) {
    /** Files that stay as they are, or have nothing in common. */
    public static final JoinRule NONE = new JoinRule(false, false);

    /** As native code takes it. */
    int bits() {
        return (header ? 1 : 0) | (json ? 2 : 0);
    }
}
