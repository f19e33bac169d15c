package io.millstream.hadoop.reading;

import io.millstream.hadoop.listing.Versions;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * The file of a range, and the version of it that was listed.
 *
 * @param size its length in bytes when it was listed; -1 if unknown
 * @param modificationTime when it was modified then, in milliseconds since 1970
 * @param version the version that was listed, as an object store calls it; null if unknown
 */
public record ListedFile(Path path, long size, long modificationTime, String version) {
    /** The file as it is now. */
    public static ListedFile of(FileStatus status) {
        String version = status instanceof EtagSource tagged ? tagged.getEtag() : null;
        return new ListedFile(
                status.getPath(),
                status.getLen(),
                status.getModificationTime(),
                version == null ? null : Versions.plain(version));
    }

    /**
     * Whether another entry of the same path is of the same version, as far as the file system tells versions apart.
     */
    public boolean isVersionOf(ListedFile other) {
        // Times are no help then: some stores list them more exactly than they state them for an object.
        return size == other.size
                && (version != null && other.version != null
                        ? version.equals(other.version)
                        : modificationTime == other.modificationTime);
    }
}
