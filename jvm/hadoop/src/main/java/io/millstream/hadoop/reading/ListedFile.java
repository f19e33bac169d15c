package io.millstream.hadoop.reading;

import io.millstream.hadoop.listing.Version;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** The file of a range, and the version of it that was listed. */
public record ListedFile(Path path, Version version) {
    /** The file as it is now. */
    public static ListedFile of(FileStatus status) {
        return new ListedFile(status.getPath(), Version.of(status));
    }
}
