package io.millstream.hadoop.reading;

import java.io.EOFException;
import java.io.IOException;
import org.apache.hadoop.fs.FSExceptionMessages;
import org.apache.hadoop.fs.FSInputStream;

/** A file whose bytes are in memory. */
final class BytesInputStream extends FSInputStream {
    private final byte[] bytes;
    private final ReadCounter counter;
    private int position;

    BytesInputStream(byte[] bytes, ReadCounter counter) {
        this.bytes = bytes;
        this.counter = counter;
    }

    @Override
    public synchronized int read() {
        if (position == bytes.length) {
            return -1;
        }
        counter.count(1);
        return bytes[position++] & 0xff;
    }

    @Override
    public synchronized int read(byte[] buffer, int offset, int length) {
        if (length == 0) {
            return 0;
        }
        int count = Math.min(length, bytes.length - position);
        if (count == 0) {
            return -1;
        }
        System.arraycopy(bytes, position, buffer, offset, count);
        position += count;
        counter.count(count);
        return count;
    }

    @Override
    public synchronized long skip(long count) {
        int skipped = (int) Math.max(0, Math.min(count, bytes.length - position));
        position += skipped;
        return skipped;
    }

    @Override
    public synchronized int available() {
        return bytes.length - position;
    }

    @Override
    public synchronized void seek(long target) throws IOException {
        if (target < 0) {
            throw new EOFException(FSExceptionMessages.NEGATIVE_SEEK);
        }
        if (target > bytes.length) {
            throw new EOFException(FSExceptionMessages.CANNOT_SEEK_PAST_EOF);
        }
        position = (int) target;
    }

    @Override
    public synchronized long getPos() {
        return position;
    }

    @Override
    public boolean seekToNewSource(long target) {
        return false;
    }
}
