package io.millstream.hadoop.listing;

import java.io.Serializable;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;

/**
 * A version of a file whose path is known, as a listing or a status says it: what {@code millstream_version::Version}
 * is in native code, without the file id, which Hadoop does not report. Tests of both read
 * {@code testdata/versions.tsv}.
 *
 * @param size length in bytes; -1 if unknown
 * @param modificationTime last change, in milliseconds since 1970
 * @param tag the object store's name of the version, without quotes; null if unknown
 */
public record Version(long size, long modificationTime, String tag) implements Serializable {
    /** The version that a status is of. */
    public static Version of(FileStatus status) {
        return new Version(status.getLen(), status.getModificationTime(), tagOf(status));
    }

    /** The object store's name of the version that a status is of; null if it has none. */
    public static String tagOf(FileStatus status) {
        String etag = status instanceof EtagSource tagged ? tagged.getEtag() : null;
        return etag == null || etag.isEmpty() ? null : Versions.plain(etag);
    }

    /** The same version with another tag. */
    public Version withTag(String other) {
        return new Version(size, modificationTime, other);
    }

    /**
     * Whether another version of the same path has the same contents, as far as the file system tells versions apart.
     */
    public boolean isSame(Version other) {
        // Times do not help where there are tags: some stores list them more exactly than they state them for an
        // object.
        return size == other.size
                && (tag != null && other.tag != null
                        ? tag.equals(other.tag)
                        : modificationTime == other.modificationTime);
    }
}
