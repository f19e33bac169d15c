package io.millstream.write.store;

import java.io.Serializable;
import java.util.List;

/**
 * A file that a task attempt has written and that no reader sees yet: either a hidden file in its destination
 * directory, or an incomplete multipart upload.
 */
public final class StagedFile implements Serializable {
    private static final long serialVersionUID = 1;

    private final String directory;
    private final String name;
    private final long bytes;
    private final String stagedAs;
    private final String[] parts;

    private StagedFile(String directory, String name, long bytes, String stagedAs, String[] parts) {
        this.directory = directory;
        this.name = name;
        this.bytes = bytes;
        this.stagedAs = stagedAs;
        this.parts = parts;
    }

    public static StagedFile hidden(String directory, String name, long bytes, String hiddenName) {
        return new StagedFile(directory, name, bytes, hiddenName, null);
    }

    public static StagedFile upload(String directory, String name, long bytes, String uploadId, List<String> etags) {
        return new StagedFile(directory, name, bytes, uploadId, etags.toArray(new String[0]));
    }

    /** The same file in another directory. */
    public StagedFile in(String another) {
        return new StagedFile(another, name, bytes, stagedAs, parts);
    }

    /** The destination directory, relative to the table; empty for the table's own. */
    public String directory() {
        return directory;
    }

    /** The final name. */
    public String name() {
        return name;
    }

    /** Its size in bytes. */
    public long bytes() {
        return bytes;
    }

    public boolean isUpload() {
        return parts != null;
    }

    /** The id of the upload, or the hidden file's name. */
    public String stagedAs() {
        return stagedAs;
    }

    /** The upload's parts by their entity tags, in order. */
    public List<String> parts() {
        return List.of(parts);
    }

    /** Number of requests that made the upload: one to start it, and one for each part. */
    public int uploadRequests() {
        return isUpload() ? 1 + parts.length : 0;
    }

    @Override
    public String toString() {
        return (directory.isEmpty() ? "" : directory + "/") + name;
    }
}
