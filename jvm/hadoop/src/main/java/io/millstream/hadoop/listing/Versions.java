package io.millstream.hadoop.listing;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * Compact encoding of an object store's ETags. A file index holds millions of them, and most are the hexadecimal digits
 * of an MD5 sum. A byte for the form is followed by the sum and the rest of the text, or by the whole text.
 */
public final class Versions {
    private static final byte TEXT = 0;
    private static final byte SUM = 1;
    private static final int SUM_BYTES = 16;
    private static final HexFormat HEX = HexFormat.of();

    private Versions() {}

    /** An ETag without its HTTP quotes. */
    public static String plain(String etag) {
        return etag.length() > 1 && etag.startsWith("\"") && etag.endsWith("\"")
                ? etag.substring(1, etag.length() - 1)
                : etag;
    }

    /** An ETag with its HTTP quotes; null stays null. */
    public static String quoted(String version) {
        return version == null ? null : '"' + version + '"';
    }

    /** Packs a version, with quotes or without; empty if there is none. */
    public static byte[] pack(String etag) {
        if (etag == null || etag.isEmpty()) {
            return new byte[0];
        }
        String version = plain(etag);
        int digits = 2 * SUM_BYTES;
        boolean isSum = version.length() >= digits;
        for (int i = 0; i < digits && isSum; i++) {
            char c = version.charAt(i);
            isSum = c >= '0' && c <= '9' || c >= 'a' && c <= 'f';
        }
        byte[] sum = isSum ? HEX.parseHex(version, 0, digits) : new byte[0];
        byte[] text = version.substring(isSum ? digits : 0).getBytes(StandardCharsets.UTF_8);
        byte[] packed = new byte[1 + sum.length + text.length];
        packed[0] = isSum ? SUM : TEXT;
        System.arraycopy(sum, 0, packed, 1, sum.length);
        System.arraycopy(text, 0, packed, 1 + sum.length, text.length);
        return packed;
    }

    /** The version; null if there is none. */
    public static String unpack(byte[] packed) {
        if (packed.length == 0) {
            return null;
        }
        int sum = packed[0] == SUM ? SUM_BYTES : 0;
        String text = new String(Arrays.copyOfRange(packed, 1 + sum, packed.length), StandardCharsets.UTF_8);
        return sum == 0 ? text : HEX.formatHex(packed, 1, 1 + sum) + text;
    }
}
