package io.millstream.write.protocol;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The content of {@code JOB.published}. A process that carries out a commit writes it before it deletes any old file;
 * if two processes try, the first one decides.
 *
 * @param isRevoked whether the commit is revoked: a file could not be published, and no old file has been touched
 * @param superseded directories that another program overwrote first, so that the job published nothing there
 * @param withdrawn directories that another program has overwritten while the job published there, so that the job's
 *     files are removed again
 * @param mixed directories without old files to which another program has written at the same time
 */
record Publication(boolean isRevoked, List<String> superseded, List<String> withdrawn, List<String> mixed) {
    /** All files are published. */
    static final Publication ALL = new Publication(false, List.of(), List.of(), List.of());

    /**
     * The first byte. It differs from 0, so an entry that a power failure has emptied or filled with zeros is
     * recognised.
     */
    private static final byte VERSION = 1;

    /** Directories that must not contain files of the job. */
    Set<String> without() {
        return Stream.concat(superseded.stream(), withdrawn.stream()).collect(Collectors.toSet());
    }

    byte[] toBytes() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeByte(VERSION);
            out.writeBoolean(isRevoked);
            CommitRecord.strings(out, superseded);
            CommitRecord.strings(out, withdrawn);
            CommitRecord.strings(out, mixed);
        } catch (IOException e) {
            throw new AssertionError("an array cannot be written to", e);
        }
        return bytes.toByteArray();
    }

    static Publication of(byte[] content) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(content));
        if (in.read() != VERSION) {
            throw new IOException(
                    "the journal entry that lists the published files of a commit is damaged, or was written by another version");
        }
        return new Publication(
                in.readBoolean(), CommitRecord.strings(in), CommitRecord.strings(in), CommitRecord.strings(in));
    }
}
