package io.millstream.hadoop.fs;

import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;

/**
 * A file without checksums, read without the verifying reader. As in that reader, a seek beyond the end fails: a split
 * of a file that has shrunk since it was listed is not an empty split.
 */
public final class PlainInputStream extends FSDataInputStream {
    /** The length as far as it is known. */
    private long length;

    public PlainInputStream(FSDataInputStream raw) {
        super(raw.getWrappedStream());
    }

    @Override
    @SuppressWarnings("resource") // closing the channel would close the file
    public void seek(long desired) throws IOException {
        FileDescriptor file = desired > length ? getFileDescriptor() : null;
        if (file != null) {
            length = new FileInputStream(file).getChannel().size();
            if (desired > length) {
                throw new EOFException("Cannot seek after EOF");
            }
        }
        super.seek(desired);
    }
}
