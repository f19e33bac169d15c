package io.millstream.write.store.hdfs;

import io.millstream.write.store.HiddenFileStore;
import io.millstream.write.store.Names;
import io.millstream.write.store.NotWrittenException;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.WriteOptions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.GlobalStorageStatistics;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageStatistics;
import org.apache.hadoop.fs.StorageStatistics.LongStatistic;
import org.apache.hadoop.fs.Trash;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.security.AccessControlException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The store for {@code hdfs:}. A rename is atomic and does not replace. A closed file is in the memory of every data node of its
 * pipeline; whether it is on their disks depends on the cluster ({@code dfs.datanode.synconclose}).
 */
public final class HdfsStore extends HiddenFileStore {
  private static final Logger LOG = LoggerFactory.getLogger(HdfsStore.class);
  /** The HDFS client's counters of requests to the name node. */
  private static final String OPERATIONS = "DFSOpsCountStatistics";

  private static final int BEGIN_ATTEMPTS = 5;

  private final FileSystem fs;

  public HdfsStore(FileSystem fs, Path table, WriteOptions options) {
    super(table, options);
    this.fs = fs;
  }

  @Override
  public List<FileStatus> entries(Path directory) throws IOException {
    try {
      return Arrays.asList(fs.listStatus(directory));
    } catch (FileNotFoundException e) {
      return List.of();
    }
  }

  @Override
  public FileStatus status(Path path) throws IOException {
    try {
      return fs.getFileStatus(path);
    } catch (FileNotFoundException e) {
      return null;
    }
  }

  @Override
  public byte[] content(Path file) throws IOException {
    try (FSDataInputStream in = fs.open(file)) {
      return in.readAllBytes();
    } catch (FileNotFoundException e) {
      return null;
    }
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    return fs.rename(from, to);
  }

  @Override
  public void deleteFile(Path file) throws IOException {
    fs.delete(file, false);
  }

  /** A file moved to the trash keeps its path there. */
  @Override
  public void delete(List<OldFile> files) throws IOException {
    if (!options.trash) {
      super.delete(files);
      return;
    }
    Parallel.map(options.threads, files, file -> {
      Path path = Names.path(directory(file.directory()), file.name());
      try {
        return Trash.moveToAppropriateTrash(fs, path, fs.getConf()) || fs.delete(path, false);
      } catch (FileNotFoundException e) {
        return false; // it is gone already
      }
    });
  }

  @Override
  public void removeIfEmpty(Path directory) throws IOException {
    if (entries(directory).isEmpty()) {
      try {
        fs.delete(directory, false);
      } catch (IOException e) {
        LOG.debug("{} is no longer empty, or may not be removed", directory, e);
      }
    }
  }

  @Override
  public void makeDirectories(Collection<String> directories) throws IOException {
    Parallel.map(options.threads, directories, directory -> fs.mkdirs(directory(directory)));
  }

  @Override
  public void removeTree(String directory) throws IOException {
    fs.delete(directory(directory), true);
  }

  @Override
  public boolean begin(String entry, byte[] content) throws IOException {
    for (int attempt = 1; ; attempt++) {
      if (!fs.exists(journal)) {
        makeJournal();
      }
      try {
        return create(entry, content);
      } catch (FileNotFoundException e) {
        // A job that has ended has just removed the empty journal.
        if (attempt == BEGIN_ATTEMPTS) {
          throw e;
        }
      }
    }
  }

  @Override
  public boolean create(String entry, byte[] content) throws IOException {
    Path whole = whole(entry, content);
    boolean renamed = false;
    try {
      renamed = fs.rename(whole, Names.entry(journal, entry));
    } finally {
      if (!renamed) {
        fs.delete(whole, false);
      }
    }
    return renamed || Arrays.equals(read(entry), content);
  }

  /** The file that becomes an entry: the reserved one, which exceeds no quota, or a new one. */
  private Path whole(String entry, byte[] content) throws IOException {
    if (isReserved(entry, content)) {
      return reserved(entry);
    }
    Path whole = Names.path(journal, "." + entry + "." + UUID.randomUUID());
    try {
      write(fs.createFile(whole).overwrite(true).build(), content);
    } catch (FileNotFoundException e) {
      throw e; // the journal is gone
    } catch (IOException e) {
      fs.delete(whole, false);
      throw new NotWrittenException(e);
    }
    return whole;
  }

  @Override
  public void reserve(String entry, byte[] content) throws IOException {
    write(fs.createFile(reserved(entry)).overwrite(true).build(), content);
    hasReserved(entry, content);
  }

  @Override
  public void replace(String entry, byte[] content) throws IOException {
    if (isReserved(entry, content) && fs.rename(reserved(entry), Names.entry(journal, entry))) {
      return;
    }
    // The builder creates no directories: the table may have been dropped.
    write(fs.createFile(Names.entry(journal, entry)).overwrite(true).build(), content);
  }

  /** Creates the journal for all users who may write to the table, not only for the first job's user. */
  private void makeJournal() throws IOException {
    fs.mkdirs(journal);
    try {
      fs.setPermission(journal, fs.getFileStatus(table).getPermission());
    } catch (AccessControlException e) {
      LOG.debug("Another user's job has created {} at the same time", journal, e);
    }
  }

  /** HDFS throws the exception of a failed write once more when the file is closed, which a try with resources would take for another one. */
  private static void write(FSDataOutputStream file, byte[] content) throws IOException {
    try {
      file.write(content);
      file.hsync();
    } catch (IOException e) {
      IOUtils.closeStream(file);
      throw e;
    }
    file.close();
  }

  @Override
  public void sync(Collection<Path> files) { }

  @Override
  public long requests() {
    StorageStatistics operations = GlobalStorageStatistics.INSTANCE.get(OPERATIONS);
    long sum = 0;
    for (Iterator<LongStatistic> each = operations == null ? Collections.emptyIterator() : operations.getLongStatistics(); each.hasNext(); ) {
      sum += each.next().getValue();
    }
    return sum;
  }
}
