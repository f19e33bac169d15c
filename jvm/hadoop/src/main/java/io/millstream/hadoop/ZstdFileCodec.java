package io.millstream.hadoop;

import io.millstream.hadoop.codec.DecodedInputStream;
import io.millstream.hadoop.codec.FileCodec;
import io.millstream.hadoop.codec.TextCodec;
import io.millstream.hadoop.natives.NativeLibrary;
import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.Decompressor;
import org.apache.hadoop.io.compress.ZStandardCodec;

/**
 * Reads {@code .zst} files, for which Hadoop's codec needs Hadoop's own native library, and writes like Hadoop's codec.
 * If neither library is loaded, Hadoop's codec throws its exception before anything is read: Spark 4.3 then decodes in
 * Java.
 */
public class ZstdFileCodec extends ZStandardCodec implements FileCodec {
    @Override
    public CompressionInputStream createInputStream(InputStream in) throws IOException {
        return NativeLibrary.isLoaded() ? new DecodedInputStream(TextCodec.ZSTD, in) : super.createInputStream(in);
    }

    @Override
    public CompressionInputStream createInputStream(InputStream in, Decompressor decompressor) throws IOException {
        return NativeLibrary.isLoaded()
                ? new DecodedInputStream(TextCodec.ZSTD, in)
                : super.createInputStream(in, decompressor);
    }

    @Override
    public Class<? extends Decompressor> getDecompressorType() {
        return needsNoDecompressor() ? null : super.getDecompressorType();
    }

    /**
     * Null if only Millstream's native library can decode; {@link #createInputStream(InputStream, Decompressor)}
     * accepts that.
     */
    @Override
    public Decompressor createDecompressor() {
        return needsNoDecompressor() ? null : super.createDecompressor();
    }

    private static boolean needsNoDecompressor() {
        return NativeLibrary.isLoaded() && !isNativeCodeLoaded();
    }
}
