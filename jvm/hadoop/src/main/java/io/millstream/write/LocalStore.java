package io.millstream.write;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Collection;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * {@code file:}, and NFS below it. Hadoop's rename replaces what is there, so the journal's files are made under another name and
 * linked: the server answers who was first, whatever a client has cached.
 */
final class LocalStore extends HiddenFileStore {
  private static final Logger LOG = LoggerFactory.getLogger(LocalStore.class);
  private static final int CREATE_ATTEMPTS = 5;

  LocalStore(FileSystem fs, Path table, WriteOptions options) {
    super(fs, table, options);
  }

  private static java.nio.file.Path local(Path path) {
    return new File(path.toUri().getPath()).toPath();
  }

  /** Where Hadoop keeps the checksums of a file. */
  private static java.nio.file.Path checksums(Path file) {
    return local(new Path(file.getParent(), "." + file.getName() + ".crc"));
  }

  @Override
  void finishRename(Path hidden, Path published) throws IOException {
    try {
      Files.move(checksums(hidden), checksums(published), StandardCopyOption.ATOMIC_MOVE);
    } catch (NoSuchFileException e) {
      return; // it has been moved, or never was
    }
  }

  @Override
  public boolean create(String entry, byte[] content) throws IOException {
    java.nio.file.Path target = local(new Path(journal, entry));
    java.nio.file.Path whole = written(entry, content);
    try {
      Files.createLink(target, whole);
      syncDirectory(target.getParent());
      return true;
    } catch (FileAlreadyExistsException e) {
      // NFS answers so, too, when the first answer was lost and the call was repeated.
      return Arrays.equals(read(entry), content);
    } finally {
      Files.deleteIfExists(whole);
    }
  }

  @Override
  public void replace(String entry, byte[] content) throws IOException {
    Files.move(written(entry, content), local(new Path(journal, entry)), StandardCopyOption.ATOMIC_MOVE);
  }

  /** A new file in the journal, with a name that is of no entry. */
  private java.nio.file.Path written(String entry, byte[] content) throws IOException {
    java.nio.file.Path file = local(new Path(journal, "." + entry + "." + UUID.randomUUID()));
    for (int attempt = 1; ; attempt++) {
      try (FileChannel out = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
        for (ByteBuffer left = ByteBuffer.wrap(content); left.hasRemaining(); ) {
          out.write(left);
        }
        force(out);
        return file;
      } catch (NoSuchFileException e) {
        // It is the first job, or one that has ended has just removed the journal, as nothing was in it.
        if (attempt == CREATE_ATTEMPTS) {
          throw e;
        }
        makeJournal();
      } catch (IOException e) {
        Files.deleteIfExists(file);
        throw e;
      }
    }
  }

  /** For whoever may write into the table, though the first job is another user's. */
  private void makeJournal() throws IOException {
    java.nio.file.Path root = Files.createDirectories(local(table));
    try {
      java.nio.file.Path made = Files.createDirectory(local(journal));
      Files.setPosixFilePermissions(made, Files.getPosixFilePermissions(root));
    } catch (FileAlreadyExistsException | NoSuchFileException e) {
      LOG.debug("Another job has made {}, or removed it", journal, e);
    }
  }

  private void force(FileChannel file) throws IOException {
    if (options.sync) {
      file.force(true);
    }
  }

  private void syncDirectory(java.nio.file.Path directory) throws IOException {
    if (options.sync) {
      try (FileChannel opened = FileChannel.open(directory, StandardOpenOption.READ)) {
        opened.force(true);
      }
    }
  }

  @Override
  void sync(Collection<Path> files) throws IOException {
    Parallel.map(options.threads, files, file -> {
      syncFile(local(file));
      java.nio.file.Path checksums = checksums(file);
      if (Files.exists(checksums)) {
        syncFile(checksums);
      }
      return null;
    });
    Set<Path> directories = files.stream().map(Path::getParent).collect(Collectors.toSet());
    Parallel.map(options.threads, directories, directory -> {
      syncDirectory(local(directory));
      return null;
    });
  }

  private void syncFile(java.nio.file.Path file) throws IOException {
    try (FileChannel opened = FileChannel.open(file, StandardOpenOption.WRITE)) {
      opened.force(true);
    }
  }
}
