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
 * Reads {@code .zst} files, which Hadoop's codec does only with Hadoop's own native library, and writes what Hadoop's
 * codec does. Where neither library is loaded, the exception is that of Hadoop's codec, before anything is read: Spark
 * 4.3 then decodes in Java.
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
     * Null where only Millstream's native library decodes; {@link #createInputStream(InputStream, Decompressor)} takes
     * that.
     */
    @Override
    public Decompressor createDecompressor() {
        return needsNoDecompressor() ? null : super.createDecompressor();
    }

    private static boolean needsNoDecompressor() {
        return NativeLibrary.isLoaded() && !isNativeCodeLoaded();
    }
}
