package io.millstream.hadoop.reading;

import io.millstream.hadoop.natives.NativeLibrary;

/** Decodes flat columns of small Parquet files natively. */
public final class NativeParquet {
    private NativeParquet() {}

    /**
     * Decodes columns of a file. The result has the number of rows, and for each requested column: whether it has nulls
     * (a byte, 0 or 1); if so, a byte for each row, 1 where it is null; for fixed-width types, a value for each row;
     * for others, the offset of each row's first byte and of the end of the last row, then the bytes. Numbers are
     * little-endian; row numbers and offsets have four bytes.
     *
     * @param file all bytes of the file
     * @param request the columns, encoded as {@code millstream_parquet::Request::decode} documents
     * @return null if Spark must read the file, because it is unusual or damaged or the native library does not load
     * @throws IllegalArgumentException if the request is malformed
     */
    public static byte[] decode(byte[] file, byte[] request) {
        return NativeLibrary.isLoaded() ? decoded(file, request) : null;
    }

    private static native byte[] decoded(byte[] file, byte[] request);
}
