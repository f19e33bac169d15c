package io.millstream.hadoop.natives;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Locale;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads {@code libmillstream_jni}, once: from {@code java.library.path}, else from the jar, which holds one library per
 * platform. The jar's copy is extracted to a folder named after its hash and renamed into place when complete, so JVMs
 * that start together share one file and a new version never loads an old one.
 */
public final class NativeLibrary {
    private static final Logger LOG = LoggerFactory.getLogger(NativeLibrary.class);
    private static final String NAME = "millstream_jni";

    private static final Throwable FAILURE = load();

    private NativeLibrary() {}

    /** Whether native calls work in this JVM. If not, the first call logs a warning with the cause. */
    public static boolean isLoaded() {
        return FAILURE == null;
    }

    /** The reason why native calls do not work in this JVM; null if they do. */
    public static String whyNot() {
        return FAILURE == null ? null : FAILURE.toString();
    }

    private static Throwable load() {
        try {
            loadFromPathOrJar();
            return null;
        } catch (IOException | LinkageError | RuntimeException e) {
            LOG.warn(
                    "Millstream's native library does not load, so directories are listed by Hadoop, at its usual speed; "
                            + "results are the same. Cause: {}",
                    e.toString());
            return e;
        }
    }

    private static void loadFromPathOrJar() throws IOException {
        try {
            System.loadLibrary(NAME);
        } catch (UnsatisfiedLinkError notOnPath) {
            String resource = "/millstream/" + platform() + "/" + System.mapLibraryName(NAME);
            try (InputStream in = NativeLibrary.class.getResourceAsStream(resource)) {
                if (in == null) {
                    throw new IOException("no " + resource + " in the jar, and " + notOnPath.getMessage(), notOnPath);
                }
                System.load(extract(in.readAllBytes()).toString());
            }
        }
    }

    private static String platform() {
        String arch = System.getProperty("os.arch");
        String normalized = switch (arch) {
            case "amd64" -> "x86_64";
            case "arm64" -> "aarch64";
            default -> arch;
        };
        return System.getProperty("os.name").toLowerCase(Locale.ROOT) + "-" + normalized;
    }

    /** The folder's name includes the user's: code is never loaded from a folder that another user may write to. */
    private static Path extract(byte[] library) throws IOException {
        // System.load accepts absolute paths only.
        Path temp = Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath();
        Path folder = temp.resolve("millstream-" + System.getProperty("user.name") + "-" + hash(library));
        Path target = folder.resolve(System.mapLibraryName(NAME));
        var ownerOnly = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
        if (!Files.isDirectory(folder)) {
            Path fresh = Files.createTempDirectory(temp, "millstream-", ownerOnly);
            try {
                Files.move(fresh, folder, StandardCopyOption.ATOMIC_MOVE);
            } catch (IOException another) {
                Files.delete(fresh);
                if (!Files.isDirectory(folder)) {
                    throw another;
                }
            }
        }
        requireOwnFolder(folder);
        if (!Files.isRegularFile(target) || Files.size(target) != library.length) {
            Path part = Files.createTempFile(folder, NAME, ".part");
            Files.write(part, library);
            Files.move(part, target, StandardCopyOption.ATOMIC_MOVE);
        }
        return target;
    }

    private static void requireOwnFolder(Path folder) throws IOException {
        boolean othersMayWrite = Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS).stream()
                .anyMatch(p -> p == PosixFilePermission.GROUP_WRITE || p == PosixFilePermission.OTHERS_WRITE);
        UserPrincipal self = Files.getOwner(Path.of("/proc/self"));
        if (othersMayWrite || !self.equals(Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS))) {
            throw new IOException(folder + " is writable by other users or owned by another user");
        }
    }

    private static String hash(byte[] library) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(library);
            return HexFormat.of().formatHex(digest, 0, 8);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
