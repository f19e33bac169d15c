package io.millstream.hadoop.listing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Status of a listed entry. Length and modification time come from the listing. Permission, owner, group and access
 * time are read on first use, as in Hadoop's local file system, but without starting a process.
 */
public final class ListedFileStatus extends LocatedFileStatus {
    private static final long serialVersionUID = 1L;
    private static final BlockLocation[] NO_BLOCKS = {};
    private static final String[] NAMES = {"localhost:9866"};
    private static final String[] HOSTS = {"localhost"};
    private static final int PERMISSION_BITS = 01777;

    private transient Map<String, Object> attributes;

    public ListedFileStatus(long length, boolean directory, long blockSize, long modificationTime, Path path) {
        super(
                length,
                directory,
                1,
                blockSize,
                modificationTime,
                0L,
                null,
                null,
                null,
                null,
                path,
                FileStatus.NONE,
                null);
    }

    /** As FileSystem.getFileBlockLocations answers for a local file; null for a directory, as in listLocatedStatus. */
    @Override
    public BlockLocation[] getBlockLocations() {
        if (isDirectory()) {
            return null;
        }
        return getLen() == 0 ? NO_BLOCKS : new BlockLocation[] {new BlockLocation(NAMES, HOSTS, 0, getLen())};
    }

    @Override
    public FsPermission getPermission() {
        return new FsPermission((short) ((Integer) attribute("mode") & PERMISSION_BITS));
    }

    @Override
    public String getOwner() {
        return attribute("owner").toString();
    }

    @Override
    public String getGroup() {
        return attribute("group").toString();
    }

    @Override
    public long getAccessTime() {
        return ((FileTime) attribute("lastAccessTime")).toMillis();
    }

    private synchronized Object attribute(String name) {
        if (attributes == null) {
            try {
                attributes = Files.readAttributes(
                        java.nio.file.Path.of(getPath().toUri().getPath()), "unix:mode,owner,group,lastAccessTime");
            } catch (IOException e) {
                throw new UncheckedIOException("Error while reading attributes of " + getPath(), e);
            }
        }
        return attributes.get(name);
    }
}
