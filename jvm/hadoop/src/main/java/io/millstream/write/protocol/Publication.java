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
 * What {@code JOB.published} says. Whoever carries out a commit makes it before anything old is deleted; of two, the first one decides.
 *
 * @param isRevoked whether the commit is taken back: a file could not be published, and nothing old has been touched
 * @param superseded directories in which another writer came first, so that nothing of the job was published there
 * @param withdrawn directories that another writer has overwritten while the job published there, so that its files are removed again
 * @param mixed directories to which another writer has written at the same time, where nothing was to be replaced
 */
record Publication(boolean isRevoked, List<String> superseded, List<String> withdrawn, List<String> mixed) {
  /** All is published. */
  static final Publication ALL = new Publication(false, List.of(), List.of(), List.of());

  /** The first byte; an entry that a power failure has emptied, or filled with zeros, has another. */
  private static final byte VERSION = 1;

  /** Directories in which nothing of the job is to be. */
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
      throw new AssertionError("an array cannot fail", e);
    }
    return bytes.toByteArray();
  }

  static Publication of(byte[] content) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(content));
    if (in.read() != VERSION) {
      throw new IOException("the journal's entry that says which files of a commit are published is damaged, or of another version");
    }
    return new Publication(in.readBoolean(), CommitRecord.strings(in), CommitRecord.strings(in), CommitRecord.strings(in));
  }
}
