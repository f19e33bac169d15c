package io.millstream.hadoop.codec;

import io.millstream.hadoop.natives.NativeLibrary;
import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionInputStream;

/**
 * A codec of Hadoop's, its superclass, whose files native code decodes. Hadoop's own reads fewer forms of them: of LZ4
 * frames and of Snappy's framing format it returns no bytes, without an error.
 *
 * <p>{@code io.compression.codecs} names the classes, so they replace Hadoop's where a codec is found by the name of a
 * file, for all readers that ask Hadoop for one. They are not found by Hadoop's names of codecs, with which writers
 * ask, and which containers such as sequence files record.
 */
public interface FileCodec extends CompressionCodec {
    /** The class of Hadoop's that has the codec's name, and its files. */
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
     * The decoded bytes of a file. Without the native library, Hadoop's codec decodes the forms that it knows.
     *
     * @throws IOException if the file has another form and the native library does not load
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
