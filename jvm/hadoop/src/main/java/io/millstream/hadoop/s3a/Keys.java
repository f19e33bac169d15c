package io.millstream.hadoop.s3a;

import java.io.IOException;
import java.util.List;

/** The keys of a bucket, a page at a time. */
@FunctionalInterface
interface Keys {
    /** S3's limit of keys in a page. */
    int PAGE = 1000;

    /**
     * An object.
     *
     * @param version as {@link io.millstream.hadoop.listing.Versions} packs it
     */
    record Item(String key, long size, long modificationTime, byte[] version) {}

    /**
     * A page of a listing.
     *
     * @param items objects, in the order of the listing
     * @param prefixes common prefixes of keys up to the next delimiter, if one was requested
     * @param next continues the listing; null at its end
     */
    record Page(List<Item> items, List<String> prefixes, String next) {}

    /**
     * Lists a page.
     *
     * @param prefix prefix of the keys
     * @param delimiter the end of a common prefix, or null
     * @param after null, or a key that precedes the first one wanted
     * @param next null, or the {@link Page#next} of the page before
     * @throws IOException if the server does not respond
     */
    Page list(String prefix, String delimiter, String after, String next) throws IOException;

    /** Compares keys in S3's order: by UTF-8 bytes, which is by code points. */
    static int compare(String a, String b) {
        int length = Math.min(a.length(), b.length());
        for (int i = 0; i < length; i++) {
            char x = a.charAt(i);
            char y = b.charAt(i);
            if (x != y) {
                boolean surrogates = Character.isSurrogate(x) && !Character.isSurrogate(y)
                        || Character.isSurrogate(y) && !Character.isSurrogate(x);
                return surrogates ? (Character.isSurrogate(x) ? 1 : -1) : Character.compare(x, y);
            }
        }
        return Integer.compare(a.length(), b.length());
    }
}
