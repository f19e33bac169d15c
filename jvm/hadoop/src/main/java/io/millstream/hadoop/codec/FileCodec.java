package io.millstream.hadoop.codec;

import io.millstream.hadoop.natives.NativeLibrary;
import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionInputStream;

/**
 * A Hadoop codec (the superclass) whose files native code decodes. Hadoop's own decoder supports fewer formats: for LZ4
 * frames and Snappy's framing format it returns no bytes and no error.
 *
 * <p>{@code io.compression.codecs} names the classes, so they replace Hadoop's for every reader that asks Hadoop for
 * the codec of a file name. Lookups by Hadoop's codec names, which writers use and containers such as sequence files
 * record, do not find them.
 */
public interface FileCodec extends CompressionCodec {
    /** The Hadoop class with this codec's name and files. */
    static Class<?> hadoops(CompressionCodec codec) {
        return codec instanceof FileCodec ? codec.getClass().getSuperclass() : codec.getClass();
    }

    /**
     * The native codec that decodes what one of Hadoop's does.
     *
     * @return null if there is none, as for a codec of somebody else
     */
    static TextCodec textCodec(CompressionCodec codec) {
        return TextCodec.ofHadoops(hadoops(codec));
    }

    /** What Hadoop's codec does. */
    @FunctionalInterface
    interface Hadoops {
        CompressionInputStream createInputStream(InputStream in) throws IOException;
    }

    /**
     * The decoded bytes of a file. Without the native library, Hadoop's codec decodes the formats that it supports.
     *
     * @throws IOException if the file has another format and the native library does not load
     */
    static CompressionInputStream decoded(TextCodec codec, InputStream in, Hadoops otherwise) throws IOException {
        if (NativeLibrary.isLoaded()) {
            return new DecodedInputStream(codec, in);
        }
        PushbackInputStream whole = new PushbackInputStream(in, TextCodec.MAGIC_BYTES);
        byte[] beginning = whole.readNBytes(TextCodec.MAGIC_BYTES);
        whole.unread(beginning);
        if (codec.isUnknownToHadoop(beginning)) {
            throw new IOException("This " + codec
                    + " file is in a format that Hadoop's codec reads as empty, and Millstream's native "
                    + "library, which decodes it, does not load in this JVM: " + NativeLibrary.whyNot()
                    + ". `millstream doctor` reports what it needs");
        }
        return otherwise.createInputStream(whole);
    }
}
