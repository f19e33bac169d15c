package io.millstream.hadoop;

import io.millstream.hadoop.codec.FileCodec;
import io.millstream.hadoop.codec.TextCodec;
import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.Decompressor;
import org.apache.hadoop.io.compress.Lz4Codec;

/** Reads {@code .lz4} files of Hadoop and of the {@code lz4} command, and writes like Hadoop's codec. */
public class Lz4FileCodec extends Lz4Codec implements FileCodec {
    @Override
    public CompressionInputStream createInputStream(InputStream in) throws IOException {
        return FileCodec.decoded(TextCodec.LZ4, in, super::createInputStream);
    }

    @Override
    public CompressionInputStream createInputStream(InputStream in, Decompressor decompressor) throws IOException {
        return FileCodec.decoded(TextCodec.LZ4, in, whole -> super.createInputStream(whole, decompressor));
    }
}
