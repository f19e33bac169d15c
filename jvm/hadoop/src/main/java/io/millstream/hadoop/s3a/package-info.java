/**
 * Listing and reading on S3 through the live S3A file system: its client knows endpoint, region, credentials,
 * encryption and proxies, so none of them is translated. Only this package and {@code io.millstream.write.store.s3a}
 * use S3A; it is loaded for {@code s3a:} only.
 *
 * <pre>
 * MillstreamS3AFileSystem ── data sets ──► S3aListing ──► KeyCuts (where the key space is cut), DirectoryListing (columns)
 *                         └─ ranges ─────► S3aFiles (requests of native threads)
 * </pre>
 */
package io.millstream.hadoop.s3a;
