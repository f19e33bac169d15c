package io.millstream.hadoop.hdfs;

import static org.apache.hadoop.fs.CommonConfigurationKeysPublic.IO_FILE_BUFFER_SIZE_DEFAULT;
import static org.apache.hadoop.fs.CommonConfigurationKeysPublic.IO_FILE_BUFFER_SIZE_KEY;

import io.millstream.hadoop.fs.FileSystemInitializers;
import io.millstream.hadoop.listing.DirectoryListing;
import io.millstream.hadoop.listing.ListingOptions;
import io.millstream.hadoop.natives.NativeLibrary;
import io.millstream.hadoop.reading.FileRanges;
import io.millstream.hadoop.reading.FileReadAhead;
import io.millstream.hadoop.reading.ListedFileSystem;
import io.millstream.hadoop.reading.RemoteFiles;
import io.millstream.hadoop.reading.StreamFiles;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hadoop's HDFS client that lists Spark's data sets in parallel and serves small files that have been read ahead.
 *
 * <p>Set {@code fs.hdfs.impl} to this class. Everything else is HDFS's own client: encryption zones, erasure coding,
 * short-circuit reads and tokens work as usual.
 */
public class MillstreamDistributedFileSystem extends DistributedFileSystem implements ListedFileSystem {
    private static final Logger LOG = LoggerFactory.getLogger(MillstreamDistributedFileSystem.class);
    private static final int DEFAULT_THREADS = 16;

    private ListingOptions options;

    private final StreamFiles.Opener itself = new StreamFiles.Opener() {
        @Override
        public FSDataInputStream open(Path path) throws IOException {
            // Not open(Path), which calls the method below.
            return MillstreamDistributedFileSystem.super.open(
                    path, getConf().getInt(IO_FILE_BUFFER_SIZE_KEY, IO_FILE_BUFFER_SIZE_DEFAULT));
        }

        @Override
        public FileStatus status(Path path) throws IOException {
            return MillstreamDistributedFileSystem.super.getFileStatus(path);
        }
    };

    @Override
    public void initialize(URI uri, Configuration conf) throws IOException {
        super.initialize(uri, conf);
        options = new ListingOptions(conf);
        FileSystemInitializers.start();
    }

    @Override
    public boolean listsNatively() {
        return options.enabled() && NativeLibrary.isLoaded();
    }

    @Override
    public List<DirectoryListing> listDataset(List<Path> roots) throws IOException {
        long start = System.nanoTime();
        try {
            HdfsListing listing = new HdfsListing(this, options.threadsOr(DEFAULT_THREADS));
            List<DirectoryListing> listings = listing.list(roots);
            LOG.info(
                    "Listed {} in {} ms: directories {}",
                    roots.size() == 1 ? roots.get(0) : roots.size() + " roots",
                    (System.nanoTime() - start) / 1_000_000,
                    listing.directories());
            return listings;
        } catch (InterruptedIOException e) {
            throw e;
        } catch (IOException e) {
            LOG.info("{} is listed by Spark itself: {}", getUri(), e.toString());
            return null;
        }
    }

    @Override
    public String transport() {
        return "HDFS's client";
    }

    @Override
    public RemoteFiles files(FileRanges ranges) {
        return new StreamFiles(itself, ranges);
    }

    @Override
    public FSDataInputStream open(Path f, int bufferSize) throws IOException {
        FSDataInputStream ahead = FileReadAhead.stream(this, f);
        return ahead == null ? super.open(f, bufferSize) : ahead;
    }

    @Override
    public FileStatus getFileStatus(Path f) throws IOException {
        FileStatus ahead = FileReadAhead.status(
                this,
                f,
                file -> new FileStatus(
                        file.size(), false, 1, getDefaultBlockSize(file.path()), file.modificationTime(), file.path()));
        return ahead == null ? super.getFileStatus(f) : ahead;
    }
}
