package io.millstream.hadoop;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.fs.Path;

/**
 * Names of local files as Java and Hadoop write them.
 *
 * <p>A {@link Path} made here has the very URI that {@code RawLocalFileSystem} gives the same file, at a tenth of its cost:
 * the directory's part is quoted once, most names need no quoting, and the URI is parsed once instead of four times.
 *
 * <p>Java converts the bytes of a name to a string and back in the locale's encoding ({@code sun.jnu.encoding}). If a name
 * does not survive this, Java cannot open the file or, worse, opens another one; for such names {@link #decode} returns
 * null.
 */
final class LocalPaths {
  private static final Charset NAMES = Charset.forName(
      System.getProperty("sun.jnu.encoding", System.getProperty("file.encoding")));
  private static final boolean[] PLAIN = plainInUri();
  private static final char[] HEX = "0123456789ABCDEF".toCharArray();

  private LocalPaths() {}

  /** The characters below 128 that java.net.URI leaves alone when it quotes a path. */
  private static boolean[] plainInUri() {
    boolean[] plain = new boolean[128];
    Arrays.fill(plain, 'a', 'z' + 1, true);
    Arrays.fill(plain, 'A', 'Z' + 1, true);
    Arrays.fill(plain, '0', '9' + 1, true);
    for (char c : "-_.!~*'():@&=+$,;/".toCharArray()) {
      plain[c] = true;
    }
    return plain;
  }

  static boolean isAscii(byte[] bytes, int start, int end) {
    int bits = 0;
    for (int i = start; i < end; i++) {
      bits |= bytes[i];
    }
    return bits >= 0;
  }

  /** A name as a string, or null if Java cannot express it. */
  static String decode(byte[] bytes, int start, int end) {
    if (isAscii(bytes, start, end)) {
      return new String(bytes, start, end - start, StandardCharsets.ISO_8859_1);
    }
    String name = new String(bytes, start, end - start, NAMES);
    byte[] back = name.getBytes(NAMES);
    return Arrays.equals(back, 0, back.length, bytes, start, end) ? name : null;
  }

  /** Name of this JVM's encoding of file names. */
  static String encoding() {
    return NAMES.name();
  }

  /** The bytes of a name that Java can express. */
  static byte[] bytes(String name) {
    return name.getBytes(NAMES);
  }

  /** The bytes of a file's path, or null if the locale's encoding cannot express it. */
  static byte[] encode(File file) {
    byte[] bytes = file.getPath().getBytes(NAMES);
    return file.getPath().equals(new String(bytes, NAMES)) ? bytes : null;
  }

  /** The bytes of a path for native code. */
  static byte[] require(String path) throws IOException {
    byte[] bytes = encode(new File(path));
    if (bytes == null) {
      throw new IOException(path + ": not a name in this JVM's encoding; use a UTF-8 locale");
    }
    return bytes;
  }

  /** The prefix of the URIs of a directory's entries. */
  static String uriPrefix(String directory) {
    StringBuilder uri = new StringBuilder(directory.length() + 16).append("file://");
    quote(directory, uri);
    if (!directory.endsWith("/")) {
      uri.append('/');
    }
    return uri.toString();
  }

  static Path directory(String uriPrefix) {
    int end = uriPrefix.length() - 1;
    boolean root = uriPrefix.equals("file:///");
    return new Path(URI.create(root ? uriPrefix : uriPrefix.substring(0, end)));
  }

  static Path child(String uriPrefix, byte[] names, int start, int end) {
    if (isPlain(names, start, end)) {
      return new Path(URI.create(
          uriPrefix.concat(new String(names, start, end - start, StandardCharsets.ISO_8859_1))));
    }
    return new Path(URI.create(childUri(uriPrefix, decode(names, start, end))));
  }

  /** The URI of a directory's entry. */
  static String childUri(String uriPrefix, String name) {
    StringBuilder uri = new StringBuilder(uriPrefix.length() + 2 * name.length()).append(uriPrefix);
    quote(name, uri);
    return uri.toString();
  }

  private static boolean isPlain(byte[] bytes, int start, int end) {
    for (int i = start; i < end; i++) {
      if (bytes[i] < 0 || !PLAIN[bytes[i]]) {
        return false;
      }
    }
    return true;
  }

  /** Quotes a path as java.net.URI's multi-argument constructors do. */
  private static void quote(String path, StringBuilder to) {
    for (int i = 0; i < path.length(); i++) {
      char c = path.charAt(i);
      if (c < 128 ? PLAIN[c] : !Character.isSpaceChar(c) && !Character.isISOControl(c)) {
        to.append(c);
      } else {
        for (byte b : String.valueOf(c).getBytes(StandardCharsets.UTF_8)) {
          to.append('%').append(HEX[(b >> 4) & 15]).append(HEX[b & 15]);
        }
      }
    }
  }
}
