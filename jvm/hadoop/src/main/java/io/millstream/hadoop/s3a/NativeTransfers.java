package io.millstream.hadoop.s3a;

import io.millstream.hadoop.listing.Versions;
import io.millstream.hadoop.tree.NativeTree;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.Statistic;

/**
 * Native copies between local trees and a bucket. No data passes through the JVM.
 *
 * <p>Native code sends the requests if it may ({@link NativeTransport}), with the credentials of the live S3A file
 * system. In doubtful cases, the caller has to use that file system, whose answer is the contract.
 */
public final class NativeTransfers {
    private static final String METADATA = "x-amz-meta-";
    private static final String[] TYPE = {"content-type", "application/octet-stream"};

    private final MillstreamS3AFileSystem fileSystem;

    private NativeTransfers(MillstreamS3AFileSystem fileSystem) {
        this.fileSystem = fileSystem;
    }

    /** The native transfers of a file system; null if none are possible. */
    public static NativeTransfers of(FileSystem fileSystem) {
        return fileSystem instanceof MillstreamS3AFileSystem ours && ours.listsNatively()
                ? new NativeTransfers(ours)
                : null;
    }

    /**
     * An object that has been read.
     *
     * @param metadata its user metadata; names do not depend on case
     * @param checksum the CRC-32C of its contents
     */
    public record Fetched(Map<String, String> metadata, int checksum) {}

    /** The outcome of writing an object. */
    public enum Sent {
        /** It is written. */
        DONE,
        /** The file has changed. Nothing is written. */
        CHANGED,
        /** S3A has to write it. */
        REFUSED
    }

    /** Whether native code reads objects of this size: an empty object has no bytes that would reveal its version. */
    public boolean fetches(long size) {
        return size > 0 && fileSystem.nativeReader() != null;
    }

    /**
     * Reads an object into a new file.
     *
     * @param version its required ETag
     * @param tree the file's tree; closing it ends the copy
     * @return null if S3A has to read it; then the file may contain a part of it
     * @throws IOException if the file cannot be written
     */
    public Fetched fetch(Path path, String version, long size, NativeTree tree, NativeTree.Staged file)
            throws IOException {
        NativeBucket bucket = fileSystem.nativeReader();
        if (bucket == null || size == 0) {
            return null;
        }
        long[] out = new long[3];
        byte[] tag = Versions.quoted(version).getBytes(StandardCharsets.UTF_8);
        String[] answer =
                tree.using(number -> fetch(bucket.number(), key(path), tag, size, number, file.handle(), out));
        fileSystem.countNative(Statistic.ACTION_HTTP_GET_REQUEST, out[0], out[1]);
        if (!answer[0].isEmpty()) {
            fileSystem.nativeRefused(answer[0]);
            return null;
        }
        fileSystem.countNativeBytes(size, 0);
        Map<String, String> metadata = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (int i = 1; i < answer.length; i += 2) {
            metadata.put(answer[i], answer[i + 1]);
        }
        return new Fetched(metadata, (int) out[2]);
    }

    /**
     * Writes a small file as an object, replacing any object of that name.
     *
     * @param size the known size of the file
     * @param time the known time of the file, in nanoseconds since 1970
     * @param metadata user metadata of the object
     * @param checksumName name of the metadata entry for the checksum
     * @param checksum receives the CRC-32C of the contents as its only element
     * @throws IOException if the file cannot be read
     */
    public Sent send(
            NativeTree tree,
            byte[] file,
            long size,
            long time,
            Path path,
            Map<String, String> metadata,
            String checksumName,
            int[] checksum)
            throws IOException {
        NativeBucket bucket = fileSystem.nativeWriter();
        if (bucket == null) {
            return Sent.REFUSED;
        }
        List<String> headers = new ArrayList<>(List.of(TYPE));
        metadata.forEach((name, value) -> headers.addAll(List.of(METADATA + name, value)));
        long[] out = new long[3];
        String answer = tree.using(number -> send(
                bucket.number(),
                key(path),
                number,
                file,
                size,
                time,
                headers.toArray(new String[0]),
                METADATA + checksumName,
                out));
        fileSystem.countNative(Statistic.OBJECT_PUT_REQUESTS, out[0], out[1]);
        if (answer == null) {
            fileSystem.countNativeBytes(0, size);
            checksum[0] = (int) out[2];
            return Sent.DONE;
        } else if (answer.isEmpty()) {
            return Sent.CHANGED;
        }
        fileSystem.nativeRefused(answer);
        return Sent.REFUSED;
    }

    private byte[] key(Path path) {
        return fileSystem.pathToKey(path).getBytes(StandardCharsets.UTF_8);
    }

    private static native String[] fetch(
            long bucket, byte[] key, byte[] version, long size, long tree, long staged, long[] out) throws IOException;

    private static native String send(
            long bucket,
            byte[] key,
            long tree,
            byte[] path,
            long size,
            long time,
            String[] headers,
            String checksumHeader,
            long[] out)
            throws IOException;
}
