package io.millstream.hadoop.compact;

import io.millstream.hadoop.natives.UnfitFileException;
import io.millstream.hadoop.reading.FileRanges;
import io.millstream.hadoop.reading.ListedFileSystem;
import io.millstream.hadoop.reading.RemoteFiles;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;

/**
 * Text files of any file system as one sequence of bytes: native threads read many of them at once, and join them by
 * the rules of {@code millstream_scan::Joiner}. Each must still be the listed version.
 */
public final class JoinedFiles implements AutoCloseable {
    private static final int BUFFER = 1 << 20;

    private final FileRanges inputs;
    private final RemoteFiles files;
    private long handle;

    /**
     * The bytes of files; nothing is read yet.
     *
     * @param inputs the files, each as a whole
     * @param rule what the files have in common
     * @param maxReaders maximum number of native threads that read ahead
     * @param conf finds the file system
     * @throws IOException if the file system cannot be reached
     */
    public JoinedFiles(FileRanges inputs, JoinRule rule, int maxReaders, Configuration conf) throws IOException {
        NativeCompaction.requireLibrary();
        this.inputs = inputs;
        files = ListedFileSystem.filesAsListed(inputs, conf);
        handle = open(inputs.packed(), files, rule.bits(), maxReaders);
    }

    /**
     * Checks whether files can be joined, judging by their beginnings.
     *
     * @throws IOException if they cannot; the message names the file concerned
     */
    public static void check(
            FileRanges inputs, JoinRule rule, int maxReaders, Configuration conf, BooleanSupplier isCancelled)
            throws IOException {
        NativeCompaction.requireLibrary();
        RemoteFiles files = ListedFileSystem.filesAsListed(inputs, conf);
        try {
            check(inputs.packed(), files, rule.bits(), maxReaders, isCancelled);
        } catch (IOException e) {
            throw explained(e, inputs, files);
        }
    }

    /**
     * Writes the bytes to a stream.
     *
     * @param isCancelled whether to stop
     * @return their number
     * @throws UnfitFileException if a file cannot be joined, is gone, or has changed since it was listed; the message
     *     names it
     * @throws IOException if a file cannot be read, and the message names it; or if the stream fails
     */
    public synchronized long writeTo(OutputStream out, BooleanSupplier isCancelled) throws IOException {
        byte[] buffer = new byte[BUFFER];
        long written = 0;
        for (int length = fill(buffer, isCancelled); length >= 0; length = fill(buffer, isCancelled)) {
            out.write(buffer, 0, length);
            written += length;
        }
        return written;
    }

    private int fill(byte[] buffer, BooleanSupplier isCancelled) throws IOException {
        if (handle == 0) {
            throw new IOException("the files are closed");
        }
        try {
            return next(handle, buffer, isCancelled);
        } catch (IOException e) {
            throw explained(e, inputs, files);
        }
    }

    /** Native code knows neither the file system nor its exceptions. */
    private static IOException explained(IOException e, FileRanges inputs, RemoteFiles files) {
        if (files == null || e instanceof InterruptedIOException) {
            return e;
        }
        IOException failure = files.firstFailure();
        if (failure != null) {
            return failure;
        }
        String message = inputs.fileSystem() + e.getMessage();
        return e instanceof UnfitFileException ? new UnfitFileException(message, e) : new IOException(message, e);
    }

    @Override
    public synchronized void close() {
        if (handle != 0) {
            close(handle);
            handle = 0;
        }
    }

    private static native long open(byte[] inputs, RemoteFiles files, int rule, int maxReaders) throws IOException;

    private static native int next(long handle, byte[] buffer, BooleanSupplier isCancelled) throws IOException;

    private static native void close(long handle);

    private static native void check(
            byte[] inputs, RemoteFiles files, int rule, int maxReaders, BooleanSupplier isCancelled) throws IOException;
}
