package io.millstream.hadoop.reading;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Files that are read through the streams of their file system, each opened once: all parts of a file see one version,
 * if a stream of the file system does.
 */
public final class StreamFiles extends RemoteFiles {
    private static final Logger LOG = LoggerFactory.getLogger(StreamFiles.class);
    private static final int CHUNK = 1 << 20;
    private static final ThreadLocal<byte[]> CHUNKS = ThreadLocal.withInitial(() -> new byte[CHUNK]);

    private final Opener opener;

    /** Opens files like the file system itself. */
    public interface Opener {
        /** Opens a file. */
        FSDataInputStream open(Path path) throws IOException;

        /** The status of a file. */
        FileStatus status(Path path) throws IOException;
    }

    /** The files of these ranges. */
    public StreamFiles(Opener opener, FileRanges ranges) {
        super(ranges);
        this.opener = opener;
    }

    /** Files of a file system that knows nothing of Millstream. */
    static StreamFiles of(FileSystem fileSystem, FileRanges ranges) {
        return new StreamFiles(
                new Opener() {
                    @Override
                    public FSDataInputStream open(Path path) throws IOException {
                        return fileSystem.open(path);
                    }

                    @Override
                    public FileStatus status(Path path) throws IOException {
                        return fileSystem.getFileStatus(path);
                    }
                },
                ranges);
    }

    @Override
    protected File file(int range, ListedFile entry) {
        return new Stream(range, entry);
    }

    /**
     * Reads bytes of a stream at an offset.
     *
     * @return their number; -1 at the end of the file
     */
    public static int read(FSDataInputStream stream, long offset, ByteBuffer buffer) throws IOException {
        if (stream.hasCapability(StreamCapabilities.PREADBYTEBUFFER)) {
            return stream.read(offset, buffer);
        }
        // Not read(offset, …): Hadoop's seeks back even after a failed read, and an error of that seek replaces the
        // first one.
        return readFrom(stream, offset, buffer);
    }

    /** Seeks to an offset and reads from there, as Hadoop's readers do. */
    private static int readFrom(FSDataInputStream stream, long offset, ByteBuffer buffer) throws IOException {
        byte[] chunk = CHUNKS.get();
        int read;
        synchronized (stream) {
            stream.seek(offset);
            read = stream.read(chunk, 0, Math.min(chunk.length, buffer.remaining()));
        }
        if (read > 0) {
            buffer.put(chunk, 0, read);
        }
        return read;
    }

    private final class Stream extends File {
        private final ListedFile entry;
        private FSDataInputStream opened;

        Stream(int range, ListedFile entry) {
            super(range);
            this.entry = entry;
        }

        private synchronized FSDataInputStream opened() throws IOException {
            if (opened == null) {
                opened = opener.open(entry.path());
            }
            return opened;
        }

        @Override
        protected int fill(long offset, ByteBuffer buffer) throws IOException {
            FSDataInputStream stream = opened();
            int read = 0;
            try {
                read = read(stream, offset, buffer);
                return read;
            } finally {
                // Streams know the length: no request is made at the end of the file. A read that fails counts.
                if (read >= 0) {
                    countRequest();
                }
            }
        }

        /**
         * Reads at an offset. If that fails, opens another stream, seeks and reads, as Hadoop's readers do: that throws
         * other exception classes, by which Spark distinguishes damage, which it may ignore, from missing data. If no
         * copy of a block is sound, HDFS throws {@code BlockMissingException} for a read at an offset, and
         * {@code ChecksumException} for a sequential one.
         */
        private int read(FSDataInputStream stream, long offset, ByteBuffer buffer) throws IOException {
            int start = buffer.position();
            try {
                return StreamFiles.read(stream, offset, buffer);
            } catch (InterruptedIOException e) {
                throw e;
            } catch (IOException e) {
                buffer.position(start);
                try (FSDataInputStream another = opener.open(entry.path())) {
                    return readFrom(another, offset, buffer);
                }
            }
        }

        @Override
        protected ListedFile now() throws IOException {
            opened();
            ListedFile now = ListedFile.of(opener.status(entry.path()));
            if (isOnlyAsListed()) {
                requireListed(entry, now);
            }
            return now;
        }

        @Override
        protected synchronized void close() {
            if (opened != null) {
                try {
                    opened.close();
                } catch (IOException e) {
                    LOG.debug("Closing {}", entry.path(), e);
                }
            }
        }
    }
}
