package io.millstream.write.store.hdfs;

import io.millstream.write.store.HiddenFileStore;
import io.millstream.write.store.Names;
import io.millstream.write.store.NotWrittenException;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.WriteOptions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.GlobalStorageStatistics;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageStatistics;
import org.apache.hadoop.fs.StorageStatistics.LongStatistic;
import org.apache.hadoop.fs.Trash;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.AclEntryScope;
import org.apache.hadoop.fs.permission.AclUtil;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.security.AccessControlException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The store for {@code hdfs:}. A rename is atomic and does not replace. A closed file is in the memory of every data
 * node of its pipeline; whether it is on their disks depends on the cluster ({@code dfs.datanode.synconclose}).
 */
public final class HdfsStore extends HiddenFileStore {
    private static final Logger LOG = LoggerFactory.getLogger(HdfsStore.class);
    /** The HDFS client's counters of requests to the name node. */
    private static final String OPERATIONS = "DFSOpsCountStatistics";

    private static final int BEGIN_ATTEMPTS = 5;

    private final FileSystem fs;
    /** Whether directories have access control lists, as far as that has been looked up. */
    private final Map<Path, Boolean> lists = new ConcurrentHashMap<>();

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

    /**
     * Asks the name node about each directory and, in those with the sticky bit, about each file by renaming it to its
     * own name: that changes nothing, but requires the same rights as removing it.
     */
    @Override
    public void requireRights(
            String own, Collection<StagedFile> byExecutors, Collection<OldFile> removed, Collection<StagedFile> renamed)
            throws IOException {
        FileStatus ownEntry = status(Names.entry(journal, own));
        if (ownEntry == null) {
            return; // the job has been aborted, or its table dropped, as the next step reports
        }
        for (StagedFile file : byExecutors) {
            FileStatus staged = staged(file.directory(), file.stagedAs());
            if (staged == null || !staged.getOwner().equals(ownEntry.getOwner())) {
                return;
            }
        }
        Map<String, List<OldFile>> byDirectory = removed.stream().collect(Collectors.groupingBy(OldFile::directory));
        Parallel.map(options.threads, byDirectory.entrySet(), files -> {
            requireRemovable(directory(files.getKey()), files.getValue());
            return null;
        });
    }

    private void requireRemovable(Path directory, List<OldFile> files) throws IOException {
        FileStatus found = status(directory);
        if (found == null) {
            return;
        }
        Path asked = Names.path(directory, files.get(0).name());
        try {
            fs.access(directory, FsAction.WRITE_EXECUTE);
            if (found.getPermission().getStickyBit()) {
                for (OldFile file : files) {
                    asked = Names.path(directory, file.name());
                    fs.rename(asked, asked);
                }
            }
        } catch (FileNotFoundException e) {
            LOG.debug("Another program has removed {}", directory, e);
        } catch (AccessControlException e) {
            throw new IOException(
                    "the user of this process may not remove " + asked
                            + ", and nothing is written. Its directory has owner " + found.getOwner()
                            + " and mode " + found.getPermission()
                            + ". Run the statement as a user who may remove it, or change the directory's permissions",
                    e);
        }
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
                return false; // it is already gone
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
        List<Path> paths = directories.stream().map(this::directory).toList();
        // Sequentially, so that each directory can inherit from its parent.
        for (Path above : new LinkedHashSet<>(
                paths.stream().filter(this::isPart).map(Path::getParent).toList())) {
            make(above);
        }
        Parallel.map(options.threads, paths, path -> {
            make(path);
            return null;
        });
    }

    /**
     * HDFS creates the missing parents of a file with the permissions of the directory above, as Hive does. If that
     * directory has an access control list, its mask replaces the group's permissions: the group would get them, and
     * they would restrict a wider default list.
     */
    @Override
    public void prepare(String directory) throws IOException {
        Path path = directory(directory);
        if (!options.inheritsAccess && isPart(path) && hasList(path.getParent())) {
            fs.mkdirs(path);
        }
    }

    private boolean isPart(Path path) {
        return path.toUri()
                .getPath()
                .startsWith(table.isRoot() ? Path.SEPARATOR : table.toUri().getPath() + Path.SEPARATOR);
    }

    /** Whether a directory has an access control list, or will have one when it is created. */
    private boolean hasList(Path directory) throws IOException {
        Boolean known = lists.get(directory);
        if (known == null) {
            FileStatus found = status(directory);
            known = found == null ? hasList(directory.getParent()) : found.hasAcl();
            lists.put(directory, known);
        }
        return known;
    }

    /** Creates a directory and its missing parents. */
    private void make(Path directory) throws IOException {
        if (!isPart(directory) || !options.inheritsAccess) {
            fs.mkdirs(directory);
        } else if (status(directory) == null) {
            Path above = directory.getParent();
            make(above);
            fs.mkdirs(directory);
            // HDFS has given it a default list already, with permissions.
            if (list(above).stream().noneMatch(entry -> entry.getScope() == AclEntryScope.DEFAULT)) {
                setAccess(directory, above, List.of());
            }
        }
    }

    /** The entries of a directory's access control list in addition to its permissions. */
    private List<AclEntry> list(Path directory) throws IOException {
        return fs.getFileStatus(directory).hasAcl() ? fs.getAclStatus(directory).getEntries() : List.of();
    }

    /** Gives a new directory the permissions of another one, and a list's entries. */
    private void setAccess(Path directory, Path from, List<AclEntry> entries) throws IOException {
        FsPermission permissions = fs.getFileStatus(from).getPermission();
        try {
            if (entries.isEmpty()) {
                fs.setPermission(directory, permissions);
            } else {
                fs.setAcl(directory, AclUtil.getAclFromPermAndEntries(permissions, entries));
            }
        } catch (AccessControlException e) {
            LOG.debug("Another user's job has created {} at the same time", directory, e);
        }
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
        setAccess(journal, table, list(table));
    }

    /**
     * HDFS throws the exception of a failed write again when the file is closed; try-with-resources would take it for
     * another one.
     */
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
    public void sync(Collection<Path> files) {}

    @Override
    public long requests() {
        StorageStatistics operations = GlobalStorageStatistics.INSTANCE.get(OPERATIONS);
        long sum = 0;
        for (Iterator<LongStatistic> each =
                        operations == null ? Collections.emptyIterator() : operations.getLongStatistics();
                each.hasNext(); ) {
            sum += each.next().getValue();
        }
        return sum;
    }
}
