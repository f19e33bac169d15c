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
 * {@code direct-s3a:}, what writers see of S3: an S3A of our own, beside that of {@code s3a:}. S3A keeps what it knows of unfinished
 * uploads in the memory of this process if it is configured so, which costs no request, and else in several objects a file. The user's
 * own S3A must not be: a magic committer elsewhere in this process may look for these objects.
 */
public final class S3aUploadFileSystem extends S3AFileSystem {
  /** The scheme of the paths that writers get. */
  public static final String SCHEME = "direct-s3a";

  /** The same place, for a writer. */
  public static Path pathOf(Path s3a) {
    return new Path(SCHEME, s3a.toUri().getAuthority(), s3a.toUri().getPath());
  }

  /** To S3A it is {@code s3a:}, so that credentials, delegation tokens and settings of the bucket are those of the table. */
  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    Configuration own = new Configuration(conf);
    S3AUtils.setBucketOption(own, name.getHost(), CommitConstants.FS_S3A_COMMITTER_MAGIC_TRACK_COMMITS_IN_MEMORY_ENABLED, "true");
    super.initialize(URI.create(Constants.FS_S3A + "://" + name.getAuthority()), own);
  }

  @Override
  public void checkPath(Path path) {
    boolean isOurs = SCHEME.equals(path.toUri().getScheme());
    super.checkPath(isOurs ? new Path(Constants.FS_S3A, path.toUri().getAuthority(), path.toUri().getPath()) : path);
  }
}
