package io.millstream.hadoop;

import io.millstream.hadoop.codec.FileCodec;
import io.millstream.hadoop.codec.TextCodec;
import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.Decompressor;
import org.apache.hadoop.io.compress.SnappyCodec;

/** Reads {@code .snappy} files of Hadoop, and those in the framing format, and writes like Hadoop's codec. */
public class SnappyFileCodec extends SnappyCodec implements FileCodec {
    @Override
    public CompressionInputStream createInputStream(InputStream in) throws IOException {
        return FileCodec.decoded(TextCodec.SNAPPY, in, super::createInputStream);
    }

    @Override
    public CompressionInputStream createInputStream(InputStream in, Decompressor decompressor) throws IOException {
        return FileCodec.decoded(TextCodec.SNAPPY, in, whole -> super.createInputStream(whole, decompressor));
    }
}
