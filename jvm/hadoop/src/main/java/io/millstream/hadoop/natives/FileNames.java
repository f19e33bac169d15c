package io.millstream.hadoop.natives;

import java.net.URI;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.fs.Path;

/**
 * Names of a file system's files as bytes, as strings and as Hadoop's paths.
 *
 * <p>A {@link Path} created here has exactly the URI that the file system gives the same file, at a tenth of the cost:
 * the directory's part is quoted once, most names need no quoting, and the URI is parsed once instead of four times.
 *
 * <p>Java converts the bytes of a local name to a string and back in the locale's encoding ({@code sun.jnu.encoding}).
 * If a name does not survive this, Java cannot open the file or, worse, opens another one; for such names
 * {@link #decode} returns null. Names of other file systems are UTF-8.
 */
public final class FileNames {
    private static final String LOCAL_URI = "file://";
    private static final boolean[] PLAIN = plainInUri();
    private static final char[] HEX = "0123456789ABCDEF".toCharArray();

    /** Names of local files. */
    public static final FileNames LOCAL = new FileNames(
            LOCAL_URI, Charset.forName(System.getProperty("sun.jnu.encoding", System.getProperty("file.encoding"))));

    private final String fileSystem;
    private final Charset charset;

    /**
     * Names of a file system's files.
     *
     * @param fileSystem scheme and authority, as in {@code s3a://bucket}; {@code file://} for local files
     * @param charset the encoding of names
     */
    public FileNames(String fileSystem, Charset charset) {
        this.fileSystem = fileSystem;
        this.charset = charset;
    }

    /** Names of the files of a file system other than the local one. */
    public static FileNames of(URI fileSystem) {
        return new FileNames(fileSystem.getScheme() + "://" + fileSystem.getAuthority(), StandardCharsets.UTF_8);
    }

    /** Scheme and authority of the file system. */
    public String fileSystem() {
        return fileSystem;
    }

    /** The encoding of names. */
    public Charset charset() {
        return charset;
    }

    /** Whether they are names of local files. */
    public boolean isLocal() {
        return fileSystem.equals(LOCAL_URI);
    }

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

    public static boolean isAscii(byte[] bytes, int start, int end) {
        int bits = 0;
        for (int i = start; i < end; i++) {
            bits |= bytes[i];
        }
        return bits >= 0;
    }

    /** A name as a string, or null if Java cannot express it. */
    public String decode(byte[] bytes, int start, int end) {
        if (isAscii(bytes, start, end)) {
            return new String(bytes, start, end - start, StandardCharsets.ISO_8859_1);
        }
        String name = new String(bytes, start, end - start, charset);
        byte[] back = name.getBytes(charset);
        return Arrays.equals(back, 0, back.length, bytes, start, end) ? name : null;
    }

    /** The bytes of a name that Java can express. */
    public byte[] bytes(String name) {
        return name.getBytes(charset);
    }

    /** The prefix of the URIs of a directory's entries. */
    public String uriPrefix(String directory) {
        StringBuilder uri = new StringBuilder(fileSystem.length() + directory.length() + 16).append(fileSystem);
        quote(directory, uri);
        if (!directory.endsWith("/")) {
            uri.append('/');
        }
        return uri.toString();
    }

    /** The path of a directory. */
    public Path directory(String uriPrefix) {
        boolean root = uriPrefix.length() == fileSystem.length() + 1;
        return new Path(URI.create(root ? uriPrefix : uriPrefix.substring(0, uriPrefix.length() - 1)));
    }

    /** The path of a directory's entry. */
    public Path child(String uriPrefix, byte[] names, int start, int end) {
        if (isPlain(names, start, end)) {
            return new Path(
                    URI.create(uriPrefix.concat(new String(names, start, end - start, StandardCharsets.ISO_8859_1))));
        }
        return new Path(URI.create(childUri(uriPrefix, decode(names, start, end))));
    }

    /** The URI of a directory's entry. */
    public static String childUri(String uriPrefix, String name) {
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
