package io.millstream.write.store.s3a;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.Constants;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.S3AUtils;
import org.apache.hadoop.fs.s3a.commit.CommitConstants;

/**
 * {@code direct-s3a:}, the file system for writers to S3: an S3A instance separate from that of {@code s3a:}. It is
 * configured to keep its list of incomplete uploads in the memory of this process, which costs no request; by default,
 * S3A keeps it in several objects per file. The user's own S3A is not configured in this way, because a magic committer
 * elsewhere in this process may look for these objects.
 */
public final class S3aUploadFileSystem extends S3AFileSystem {
    /** The scheme of the writers' paths. */
    public static final String SCHEME = "direct-s3a";

    /** The same path with the scheme for writers. */
    public static Path pathOf(Path s3a) {
        return new Path(SCHEME, s3a.toUri().getAuthority(), s3a.toUri().getPath());
    }

    /**
     * Initializes S3A with the scheme {@code s3a:}, so that the table's credentials, delegation tokens and bucket
     * settings apply.
     */
    @Override
    public void initialize(URI name, Configuration conf) throws IOException {
        Configuration own = new Configuration(conf);
        S3AUtils.setBucketOption(
                own, name.getHost(), CommitConstants.FS_S3A_COMMITTER_MAGIC_TRACK_COMMITS_IN_MEMORY_ENABLED, "true");
        super.initialize(URI.create(Constants.FS_S3A + "://" + name.getAuthority()), own);
    }

    @Override
    public void checkPath(Path path) {
        boolean isOurs = SCHEME.equals(path.toUri().getScheme());
        super.checkPath(
                isOurs
                        ? new Path(
                                Constants.FS_S3A,
                                path.toUri().getAuthority(),
                                path.toUri().getPath())
                        : path);
    }
}
