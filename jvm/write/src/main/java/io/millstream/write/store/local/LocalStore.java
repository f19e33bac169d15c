package io.millstream.write.store.local;

import io.millstream.write.store.Exchange;
import io.millstream.write.store.HiddenFileStore;
import io.millstream.write.store.Names;
import io.millstream.write.store.NotWrittenException;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.Pause;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.SwapDirectories;
import io.millstream.write.store.UnsuitedException;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The store for {@code file:}, including NFS mounts. A rename replaces an existing file, so journal entries are written
 * under another name and then hard-linked: the server decides which writer was first, whatever a client has cached.
 * Hadoop's local file system is not used, because it reports any file that cannot be opened as missing, does not report
 * failed deletions, and empties a directory that it should remove only if empty.
 */
public final class LocalStore extends HiddenFileStore {
    /** Types of file systems without a server: a call that fails there has changed nothing. */
    private static final Set<String> LOCAL_KINDS =
            Set.of("ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "zfs", "overlay", "f2fs");
    /** The number of links that Linux follows on one path. */
    private static final int MAX_LINKS = 40;

    private static final Logger LOG = LoggerFactory.getLogger(LocalStore.class);
    private static final int CREATE_ATTEMPTS = 5;
    private static final long DISPLACED_PAUSE_MILLIS = 10;
    /** Linux's limits, of a name and of a path with its end. A file system may have lower ones. */
    private static final int NAME_BYTES = 255;

    private static final int PATH_BYTES = 4096;
    /**
     * {@link Pause#sleep} waits at least half of this time, which is two ticks of the server's clock: changes are
     * stamped with the resolution of a tick. Linux's longest tick is 10 ms.
     */
    private static final long TICKS_MILLIS = 40;
    /**
     * The attribute of the whole mode: {@link Files#setPosixFilePermissions} omits the set-group-ID bit, by which new
     * files inherit the directory's group.
     */
    private static final String MODE = "unix:mode";

    public LocalStore(Path table, WriteOptions options) {
        super(table, options);
    }

    private static java.nio.file.Path local(Path path) throws IOException {
        try {
            return java.nio.file.Path.of(path.toUri().getPath());
        } catch (InvalidPathException e) {
            throw new IOException(path + ": this name is not valid in this JVM's character encoding", e);
        }
    }

    /**
     * Like {@code Stores.whyNoNames}. Java's older file classes, with which Spark writes, replace a character that
     * cannot be encoded by a question mark.
     */
    public static Optional<String> whyNoNames(Collection<String> names, boolean isOpen) {
        String locale = System.getProperty("sun.jnu.encoding", "UTF-8");
        Charset charset = Charset.isSupported(locale) ? Charset.forName(locale) : StandardCharsets.UTF_8;
        if (names.stream().anyMatch(name -> name.indexOf('\0') >= 0)) {
            return Optional.of("a file name cannot contain a NUL");
        }
        boolean hasAll = charset.equals(StandardCharsets.UTF_8)
                || !isOpen && names.stream().allMatch(charset.newEncoder()::canEncode);
        return hasAll
                ? Optional.empty()
                : Optional.of("this process names files in " + locale
                        + ", the character encoding of its locale, which cannot represent"
                        + " every directory name; start it with LC_ALL=C.UTF-8");
    }

    /**
     * Whether no process has a file of this name: it has a NUL or is too long. The text of the system's error depends
     * on the language.
     */
    private static boolean isImpossible(Path path) {
        String text = path.toUri().getPath();
        return text.indexOf('\0') >= 0
                || text.getBytes(StandardCharsets.UTF_8).length >= PATH_BYTES
                || Arrays.stream(text.split(Path.SEPARATOR))
                        .anyMatch(name -> name.getBytes(StandardCharsets.UTF_8).length > NAME_BYTES);
    }

    @Override
    public boolean canExist(Path path) {
        try {
            local(path);
            return !isImpossible(path);
        } catch (IOException e) {
            return false;
        }
    }

    @Override
    public List<FileStatus> entries(Path directory) throws IOException {
        List<FileStatus> entries = new ArrayList<>();
        if (isImpossible(directory)) {
            return entries;
        }
        try (DirectoryStream<java.nio.file.Path> stream = Files.newDirectoryStream(local(directory))) {
            for (java.nio.file.Path file : stream) {
                Path path = Names.path(directory, file.getFileName().toString());
                if (!local(path).equals(file)) {
                    throw new IOException(path + ": this name is not valid in this JVM's character encoding");
                }
                FileStatus status = entry(path);
                if (status != null) {
                    entries.add(status);
                }
            }
        } catch (NoSuchFileException | NotDirectoryException e) {
            return entries;
        } catch (DirectoryIteratorException e) {
            throw e.getCause();
        }
        return entries;
    }

    /**
     * The status of a directory's entry. A symbolic link that leads nowhere, or to itself, is a file: an overwrite
     * removes it.
     */
    private FileStatus entry(Path path) throws IOException {
        FileStatus found;
        try {
            found = status(path);
        } catch (FileSystemException e) {
            if (isLoop(local(path))) {
                return status(path, LinkOption.NOFOLLOW_LINKS);
            }
            throw e;
        }
        return found == null && Files.isSymbolicLink(local(path)) ? status(path, LinkOption.NOFOLLOW_LINKS) : found;
    }

    /**
     * Whether a link leads to another one more often than the kernel follows; the text of its error depends on the C
     * library's language.
     */
    private static boolean isLoop(java.nio.file.Path link) throws IOException {
        java.nio.file.Path next = link;
        for (int followed = 0; followed <= MAX_LINKS; followed++) {
            if (!Files.isSymbolicLink(next)) {
                return false;
            }
            next = next.resolveSibling(Files.readSymbolicLink(next));
        }
        return true;
    }

    @Override
    public FileStatus status(Path path) throws IOException {
        return isImpossible(path) ? null : status(path, new LinkOption[0]);
    }

    private static FileStatus status(Path path, LinkOption... options) throws IOException {
        try {
            BasicFileAttributes attributes = Files.readAttributes(local(path), BasicFileAttributes.class, options);
            return new FileStatus(
                    attributes.size(),
                    attributes.isDirectory(),
                    1,
                    0,
                    attributes.lastModifiedTime().toMillis(),
                    path);
        } catch (NoSuchFileException e) {
            return null;
        }
    }

    @Override
    protected boolean isForeign(Path directory) throws IOException {
        return !directory.getName().contains("=") && Files.isSymbolicLink(local(directory));
    }

    @Override
    public byte[] content(Path file) throws IOException {
        try {
            return Files.readAllBytes(local(file));
        } catch (NoSuchFileException e) {
            return null;
        }
    }

    /** Moves the checksums first, so that a file under its final name always has them. */
    @Override
    public boolean rename(Path from, Path to) throws IOException {
        return move(Checksums.of(local(from)), Checksums.of(local(to))) | move(local(from), local(to));
    }

    private static boolean move(java.nio.file.Path from, java.nio.file.Path to) throws IOException {
        try {
            Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
            return true;
        } catch (NoSuchFileException e) {
            return false;
        }
    }

    @Override
    public void deleteFile(Path file) throws IOException {
        if (isImpossible(file)) {
            return;
        }
        Files.deleteIfExists(Checksums.of(local(file)));
        Files.deleteIfExists(local(file));
    }

    @Override
    public void removeIfEmpty(Path directory) throws IOException {
        java.nio.file.Path removed = local(directory);
        try {
            if (Files.isDirectory(removed, LinkOption.NOFOLLOW_LINKS)) {
                Files.delete(removed);
            }
        } catch (IOException e) {
            LOG.debug("{} is not empty, or may not be removed", directory, e);
        }
    }

    @Override
    public void makeDirectories(Collection<String> directories) throws IOException {
        Parallel.map(options.threads, directories, directory -> Files.createDirectories(local(directory(directory))));
    }

    @Override
    public void removeTree(String directory) throws IOException {
        Files.walkFileTree(local(directory(directory)), new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(java.nio.file.Path file, BasicFileAttributes attributes)
                    throws IOException {
                Files.deleteIfExists(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(java.nio.file.Path file, IOException e) throws IOException {
                if (e instanceof NoSuchFileException) {
                    return FileVisitResult.CONTINUE;
                }
                throw e;
            }

            @Override
            public FileVisitResult postVisitDirectory(java.nio.file.Path emptied, IOException e) throws IOException {
                if (e != null) {
                    throw e;
                }
                Files.deleteIfExists(emptied);
                return FileVisitResult.CONTINUE;
            }
        });
    }

    @Override
    public boolean isAlso(String path) throws IOException {
        java.nio.file.Path other = local(new Path(path));
        return Files.exists(other) && Files.exists(local(table)) && Files.isSameFile(other, local(table));
    }

    @Override
    public Exchange exchange() {
        return new LocalExchange(this, () -> written("probe", new byte[0], CREATE_ATTEMPTS));
    }

    /**
     * Another job may exchange directories ({@code Exchanges}); until it is moved back, the file is then in that job's
     * directory. It was never written if it is neither there nor here, and this directory was the same before and after
     * the search.
     */
    @Override
    public FileStatus staged(String directory, String name) throws IOException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(options.leaseMillis);
        FileStatus found = super.staged(directory, name);
        while (found == null) {
            Object before = identity(directory);
            boolean isDisplaced = isDisplaced(directory, name);
            found = super.staged(directory, name);
            if (found == null && !isDisplaced && Objects.equals(before, identity(directory))) {
                return null;
            }
            if (found == null && System.nanoTime() > deadline) {
                throw new IOException(name + " is still in a directory that another job has exchanged with "
                        + directory(directory) + "; that job has died");
            }
            Pause.sleep(DISPLACED_PAUSE_MILLIS);
        }
        return found;
    }

    private Object identity(String directory) throws IOException {
        try {
            return Files.readAttributes(local(directory(directory)), BasicFileAttributes.class)
                    .fileKey();
        } catch (NoSuchFileException e) {
            return null;
        }
    }

    private boolean isDisplaced(String directory, String name) throws IOException {
        for (FileStatus status : entries(table)) {
            String job = SwapDirectories.job(status.getPath().getName());
            if (job != null
                    && super.staged(SwapDirectories.of(job, SwapDirectories.partition(directory)), name) != null) {
                return true;
            }
        }
        return false;
    }

    /**
     * Removes entries in an order that a power failure does not change: an entry removed first does not reappear while
     * later ones stay removed.
     */
    @Override
    public void remove(Collection<String> entries) throws IOException {
        super.remove(entries);
        syncDirectory(local(journal));
    }

    @Override
    public boolean begin(String entry, byte[] content) throws IOException {
        return link(entry, content, CREATE_ATTEMPTS);
    }

    @Override
    public boolean create(String entry, byte[] content) throws IOException {
        try {
            return link(entry, content, 1);
        } catch (UnsuitedException e) {
            // A full disk, for example: a link may need an inode. A server may have created the link anyway.
            if (isOfThisMachine()
                    && e.getCause() instanceof IOException cause
                    && Files.notExists(local(Names.entry(journal, entry)), LinkOption.NOFOLLOW_LINKS)) {
                throw new NotWrittenException(cause);
            }
            throw e;
        }
    }

    @Override
    public void reserve(String entry, byte[] content) throws IOException {
        write(local(reserved(entry)), content);
        hasReserved(entry, content);
    }

    /**
     * The file that becomes an entry: the reserved one if it still exists and has the expected content, otherwise a new
     * one.
     */
    private java.nio.file.Path whole(String entry, byte[] content, int attempts) throws IOException {
        return isReserved(entry, content) ? local(reserved(entry)) : written(entry, content, attempts);
    }

    private boolean link(String entry, byte[] content, int attempts) throws IOException {
        java.nio.file.Path target = local(Names.entry(journal, entry));
        java.nio.file.Path whole = whole(entry, content, attempts);
        try {
            Files.createLink(target, whole);
        } catch (FileAlreadyExistsException e) {
            // An NFS client also reports this if the first reply was lost and the call was repeated.
            return Arrays.equals(read(entry), content);
        } catch (AccessDeniedException | NoSuchFileException e) {
            throw e;
        } catch (UnsupportedOperationException | FileSystemException e) {
            // The text of an error depends on the C library's language, so it cannot be matched.
            throw new UnsuitedException(
                    "no hard link could be created in " + table
                            + "; direct writes need hard links to decide which job commits: " + e.getMessage(),
                    e);
        } finally {
            Files.deleteIfExists(whole);
        }
        syncDirectory(target.getParent());
        return true;
    }

    @Override
    public void replace(String entry, byte[] content) throws IOException {
        Files.move(whole(entry, content, 1), local(Names.entry(journal, entry)), StandardCopyOption.ATOMIC_MOVE);
    }

    /**
     * Writes a temporary file in the journal, whose name is not that of an entry. With one attempt, a missing journal
     * is not created: the table was dropped.
     */
    private java.nio.file.Path written(String entry, byte[] content, int attempts) throws IOException {
        java.nio.file.Path file = local(Names.path(journal, "." + entry + "." + UUID.randomUUID()));
        for (int attempt = 1; ; attempt++) {
            try {
                write(file, content);
                return file;
            } catch (NoSuchFileException e) {
                // This is the first job, or a job that has ended has just removed the empty journal.
                if (attempt == attempts) {
                    throw e;
                }
                makeJournal();
            }
        }
    }

    private void write(java.nio.file.Path file, byte[] content) throws IOException {
        try (FileChannel out = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            for (ByteBuffer left = ByteBuffer.wrap(content); left.hasRemaining(); ) {
                out.write(left);
            }
            force(out);
        } catch (NoSuchFileException e) {
            throw e;
        } catch (IOException e) {
            Files.deleteIfExists(file);
            throw new NotWrittenException(e);
        }
    }

    /** Creates the journal for all users who may write to the table, not only for the first job's user. */
    private void makeJournal() throws IOException {
        java.nio.file.Path root = local(table);
        Deque<java.nio.file.Path> changed = new ArrayDeque<>(List.of(root));
        while (Files.notExists(changed.peek())) {
            changed.push(changed.peek().getParent());
        }
        Files.createDirectories(root);
        try {
            java.nio.file.Path made = Files.createDirectory(local(journal));
            // With the sticky bit, no other user could remove the entries of a job that it has resolved.
            Files.setAttribute(made, MODE, (int) Files.getAttribute(root, MODE) & ~Rights.STICKY);
        } catch (FileAlreadyExistsException | NoSuchFileException e) {
            LOG.debug("Another job has created or removed {}", journal, e);
        } catch (UnsupportedOperationException e) {
            LOG.debug("{} has no permissions", root, e);
        }
        for (java.nio.file.Path directory : changed) {
            syncDirectory(directory);
        }
    }

    private void force(FileChannel file) throws IOException {
        if (options.sync) {
            file.force(true);
        }
    }

    @Override
    public void requireRights(
            String own, Collection<StagedFile> byExecutors, Collection<OldFile> removed, Collection<StagedFile> renamed)
            throws IOException {
        java.nio.file.Path ownEntry = local(Names.entry(journal, own));
        if (Files.notExists(ownEntry)) {
            return; // the job has been aborted, or its table dropped, as the next step reports
        }
        Rights rights = new Rights(ownEntry, mayBeNfs());
        for (StagedFile file : byExecutors) {
            if (!rights.isOwn(local(Names.path(directory(file.directory()), file.stagedAs())))) {
                return;
            }
        }
        Parallel.map(options.threads, changedNames(removed, renamed).entrySet(), changed -> {
            java.nio.file.Path directory = local(directory(changed.getKey()));
            rights.require(
                    directory,
                    changed.getValue().stream()
                            .map(directory::resolve)
                            .flatMap(file -> Stream.of(file, Checksums.of(file))));
            return null;
        });
    }

    @Override
    public void requireRightsOfAuthor(
            String entry, Collection<OldFile> removed, Collection<StagedFile> renamed, Collection<String> replaced)
            throws IOException {
        AuthorRights rights = AuthorRights.of(local(Names.entry(journal, entry)));
        if (rights != null) {
            Map<String, Set<String>> names = changedNames(removed, renamed);
            replaced.forEach(directory -> names.putIfAbsent(directory, Set.of()));
            Parallel.map(options.threads, names.entrySet(), changed -> {
                rights.require(local(directory(changed.getKey())), changed.getValue());
                return null;
            });
        }
    }

    /** The names that a commit removes, by their directories: a rename also removes what has the new name. */
    private static Map<String, Set<String>> changedNames(Collection<OldFile> removed, Collection<StagedFile> renamed) {
        Map<String, Set<String>> names = new HashMap<>();
        removed.forEach(file ->
                names.computeIfAbsent(file.directory(), key -> new HashSet<>()).add(file.name()));
        renamed.forEach(file -> names.computeIfAbsent(file.directory(), key -> new HashSet<>())
                .addAll(List.of(file.stagedAs(), file.name())));
        return names;
    }

    /** Syncs a directory if it exists. */
    private void syncDirectory(java.nio.file.Path directory) throws IOException {
        if (options.sync) {
            syncIfThere(directory, StandardOpenOption.READ);
        }
    }

    private static void syncIfThere(java.nio.file.Path path, StandardOpenOption option) throws IOException {
        try (FileChannel opened = FileChannel.open(path, option)) {
            opened.force(true);
        } catch (NoSuchFileException e) {
            LOG.debug("{} does not exist", path, e);
        }
    }

    @Override
    public void sync(Collection<Path> files) throws IOException {
        Parallel.map(options.threads, files, file -> {
            try (FileChannel opened = FileChannel.open(local(file), StandardOpenOption.WRITE)) {
                opened.force(true);
            }
            syncIfThere(Checksums.of(local(file)), StandardOpenOption.WRITE);
            return null;
        });
        syncDirectories(files.stream().map(Path::getParent).collect(Collectors.toSet()));
    }

    @Override
    public void persist(Collection<String> directories) throws IOException {
        syncDirectories(withParents(directories));
    }

    private Set<Path> withParents(Collection<String> directories) {
        Set<Path> changed = new HashSet<>();
        for (String directory : directories) {
            changed.add(directory(directory));
            if (!directory.startsWith(Path.SEPARATOR)) {
                for (String up = directory; !up.isEmpty(); up = Names.parent(up)) {
                    changed.add(directory(Names.parent(up)));
                }
            }
        }
        return changed;
    }

    /** NFS clients list a directory again when its change time differs from the one they cached. */
    @Override
    public void invalidateListings(Collection<String> directories) throws IOException {
        if (!directories.isEmpty() && mayBeNfs()) {
            Pause.sleep(TICKS_MILLIS);
            Parallel.map(options.threads, withParents(directories), directory -> {
                touch(local(directory));
                return null;
            });
        }
    }

    private boolean mayBeNfs() throws IOException {
        String kind = kindOfMount();
        return kind == null || kind.startsWith("nfs");
    }

    /** Whether the file system is known to be this machine's own, not a server's. */
    private boolean isOfThisMachine() throws IOException {
        String kind = kindOfMount();
        return kind != null && LOCAL_KINDS.contains(kind);
    }

    /** The kernel's name for the file system's type; null if unknown. */
    private String kindOfMount() throws IOException {
        try {
            return Files.getFileStore(local(table)).type();
        } catch (FileSystemException e) {
            LOG.debug("Cannot determine the mount of {}", table, e);
            return null;
        }
    }

    /** Updates a directory's modification time. Where only its owner may set it, creates and deletes a file. */
    private static void touch(java.nio.file.Path directory) {
        try {
            Files.setLastModifiedTime(directory, FileTime.from(Instant.now()));
        } catch (IOException e) {
            try {
                TouchedDirectory.createAndDelete(directory);
            } catch (IOException mayNot) {
                // The job may have no write permission for directories above those that it has changed.
                e.addSuppressed(mayNot);
                LOG.debug("Cannot touch {}; another client may keep an old listing", directory, e);
            }
        }
    }

    private void syncDirectories(Set<Path> directories) throws IOException {
        Parallel.map(options.threads, directories, directory -> {
            syncDirectory(local(directory));
            return null;
        });
    }
}
