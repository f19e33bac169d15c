package io.millstream.hadoop.codec;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import org.apache.hadoop.io.compress.BZip2Codec;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.io.compress.DeflateCodec;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.io.compress.Lz4Codec;
import org.apache.hadoop.io.compress.SnappyCodec;
import org.apache.hadoop.io.compress.ZStandardCodec;

/** The Hadoop codecs whose files native code decodes ({@code millstream_codec::Codec}). */
public enum TextCodec {
    GZIP(1),
    BZIP2(2),
    ZSTD(3),
    LZ4(4),
    SNAPPY(5),
    DEFLATE(6);

    private static final Map<Class<?>, TextCodec> BY_CLASS = Map.of(
            GzipCodec.class,
            GZIP,
            BZip2Codec.class,
            BZIP2,
            ZStandardCodec.class,
            ZSTD,
            Lz4Codec.class,
            LZ4,
            SnappyCodec.class,
            SNAPPY,
            DefaultCodec.class,
            DEFLATE,
            DeflateCodec.class,
            DEFLATE);

    /** Number of bytes at the beginning of a file that reveal its format. */
    static final int MAGIC_BYTES = 4;

    private static final int LZ4_FRAME = 0x184d2204;
    private static final int LZ4_LEGACY = 0x184c2102;
    private static final int LZ4_SKIPPABLE = 0x184d2a50;
    private static final int LZ4_SKIPPABLE_MASK = 0xfffffff0;
    private static final int SNAPPY_FRAMING = 0x000006ff;

    private final int code;

    TextCodec(int code) {
        this.code = code;
    }

    /** The codec of the files of one of Hadoop's classes; null if there is none. */
    static TextCodec ofHadoops(Class<?> codec) {
        return BY_CLASS.get(codec);
    }

    /** Its number in native code. */
    public int code() {
        return code;
    }

    /** Whether files of it can have an index ({@link io.millstream.hadoop.reading.NativeIndex}). */
    public boolean hasIndex() {
        return this == GZIP || this == ZSTD || this == LZ4 || this == SNAPPY;
    }

    /**
     * Whether Hadoop's codec would mistake the file's format for its own. Native code recognises formats itself; this
     * is for JVMs in which it does not load.
     *
     * @param beginning the file's first {@link #MAGIC_BYTES}, or all of a shorter file
     */
    boolean isUnknownToHadoop(byte[] beginning) {
        if (beginning.length < MAGIC_BYTES) {
            return false;
        }
        int magic = ByteBuffer.wrap(beginning).order(ByteOrder.LITTLE_ENDIAN).getInt();
        return switch (this) {
            case LZ4 -> magic == LZ4_FRAME || magic == LZ4_LEGACY || (magic & LZ4_SKIPPABLE_MASK) == LZ4_SKIPPABLE;
            case SNAPPY -> magic == SNAPPY_FRAMING;
            default -> false;
        };
    }
}
