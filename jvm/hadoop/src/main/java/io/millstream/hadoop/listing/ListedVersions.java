package io.millstream.hadoop.listing;

import java.io.IOException;
import java.util.Map;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.util.functional.CallableRaisingIOE;
import org.apache.hadoop.util.functional.RemoteIterators;

/**
 * The versions of files that a thread lists, for callers that get statuses without them: Hadoop's
 * {@code FileInputFormat} copies the statuses of a directory, and copies have no ETag.
 */
public final class ListedVersions {
    private static final ThreadLocal<Map<Path, String>> COLLECTED = new ThreadLocal<>();

    private ListedVersions() {}

    /** Runs a call, and collects the versions of the files that this thread lists meanwhile. */
    public static <T> T collect(Map<Path, String> into, CallableRaisingIOE<T> call) throws IOException {
        COLLECTED.set(into);
        try {
            return call.apply();
        } finally {
            COLLECTED.remove();
        }
    }

    /** A listing whose versions are collected if this thread collects any; for file systems. */
    public static RemoteIterator<LocatedFileStatus> collecting(RemoteIterator<LocatedFileStatus> listing) {
        Map<Path, String> into = COLLECTED.get();
        return into == null
                ? listing
                : RemoteIterators.mappingRemoteIterator(listing, status -> {
                    String tag = Version.tagOf(status);
                    if (tag != null) {
                        into.put(status.getPath(), tag);
                    }
                    return status;
                });
    }
}
