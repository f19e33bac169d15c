package io.millstream.hadoop;

import java.util.Map;
import org.apache.hadoop.io.compress.BZip2Codec;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.io.compress.DeflateCodec;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.io.compress.Lz4Codec;
import org.apache.hadoop.io.compress.SnappyCodec;
import org.apache.hadoop.io.compress.ZStandardCodec;

/** The codecs of Hadoop whose files native code decodes ({@code millstream_codec::Codec}). */
public enum TextCodec {
  GZIP(1),
  BZIP2(2),
  ZSTD(3),
  LZ4(4),
  SNAPPY(5),
  DEFLATE(6);

  private static final Map<Class<?>, TextCodec> BY_CLASS = Map.of(GzipCodec.class, GZIP, BZip2Codec.class, BZIP2,
      ZStandardCodec.class, ZSTD, Lz4Codec.class, LZ4, SnappyCodec.class, SNAPPY, DefaultCodec.class, DEFLATE, DeflateCodec.class,
      DEFLATE);

  private final int code;

  TextCodec(int code) {
    this.code = code;
  }

  /** Its number in native code. */
  public int code() {
    return code;
  }

  /** Whether files of it can have an index ({@link NativeIndex}). */
  public boolean hasIndex() {
    return this == GZIP || this == ZSTD || this == LZ4 || this == SNAPPY;
  }

  /**
   * The native codec that decodes what one of Hadoop's does.
   *
   * @return null if there is none, as for a codec of somebody else
   */
  public static TextCodec of(CompressionCodec codec) {
    return BY_CLASS.get(codec.getClass());
  }
}
