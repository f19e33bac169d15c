package io.millstream.write.store;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * File systems with directories and a rename: a staged file is {@code .direct-JOB-ATTEMPT.NAME} in the destination
 * directory of {@code NAME}. It is not in a directory of the job, because a rename within one directory locks only that
 * directory, whereas Linux runs renames between directories one at a time in the whole file system, over NFS as well.
 */
public abstract class HiddenFileStore implements Store, HiddenFiles.Directories {
    private static final Logger LOG = LoggerFactory.getLogger(HiddenFileStore.class);
    /** With what the names of staged files begin. */
    public static final String PREFIX = ".direct-";

    private static final String SUCCESS = "_SUCCESS";
    private static final String RESERVED = ".reserved";

    /** The contents for which this job has reserved space, by entry. */
    private final Map<String, byte[]> reservedContents = new ConcurrentHashMap<>();

    public final Path table;
    public final WriteOptions options;
    public final Path journal;

    public HiddenFileStore(Path table, WriteOptions options) {
        this.table = table;
        this.options = options;
        this.journal = new Path(table, JOURNAL);
    }

    /** Whether this process can create a file or directory of this name. */
    public boolean canExist(Path path) {
        return true;
    }

    @Override
    public void prepare(String directory) throws IOException {}

    /** The entries of a directory; none if it does not exist. */
    public abstract List<FileStatus> entries(Path directory) throws IOException;

    /** The status of a file or directory; null if it does not exist. */
    public abstract FileStatus status(Path path) throws IOException;

    /** The content of a file; null if it does not exist. */
    public abstract byte[] content(Path file) throws IOException;

    /** Renames a file. False if it does not exist or, where a rename does not replace, if the new name exists. */
    public abstract boolean rename(Path from, Path to) throws IOException;

    /** Removes a directory if it is empty and may be removed. */
    public abstract void removeIfEmpty(Path directory) throws IOException;

    @Override
    public List<Entry> journal() throws IOException {
        List<Entry> entries = new ArrayList<>();
        for (FileStatus status : entries(journal)) {
            String entry = Names.entryOf(status.getPath());
            if (entry != null) {
                entries.add(new Entry(entry, status.getModificationTime()));
            }
        }
        return entries;
    }

    @Override
    public byte[] read(String entry) throws IOException {
        return content(Names.entry(journal, entry));
    }

    @Override
    public void remove(Collection<String> entries) throws IOException {
        for (String entry : entries) {
            deleteFile(Names.entry(journal, entry));
        }
        removeIfEmpty(journal);
    }

    @Override
    public Set<String> missingDirectories(Collection<String> directories) throws IOException {
        Set<String> missing = ConcurrentHashMap.newKeySet();
        Parallel.map(
                options.threads,
                withParents(Set.copyOf(directories), List.of()),
                directory -> status(directory(directory)) == null && missing.add(directory));
        return missing;
    }

    /** The file that holds the space for an entry until that is created. */
    protected Path reserved(String entry) {
        return Names.path(journal, "." + entry + RESERVED);
    }

    protected void hasReserved(String entry, byte[] content) {
        reservedContents.put(entry, content);
    }

    /**
     * Whether the file reserved for an entry exists and has this content. A reserved file with another content is
     * deleted.
     */
    protected boolean isReserved(String entry, byte[] content) throws IOException {
        byte[] expected = reservedContents.remove(entry);
        if (expected == null || Arrays.equals(expected, content) && status(reserved(entry)) != null) {
            return expected != null;
        }
        deleteFile(reserved(entry));
        return false;
    }

    @Override
    public void release(String job) throws IOException {
        for (FileStatus status : entries(journal)) {
            String name = status.getPath().getName();
            if (name.endsWith(RESERVED) && name.contains(job)) {
                deleteFile(status.getPath());
            }
        }
    }

    @Override
    public TaskAttempt attempt(String job, String attempt) {
        return new HiddenFiles(this, table, options, job, PREFIX + job + "-" + attempt + ".");
    }

    @Override
    public FileStatus staged(String directory, String name) throws IOException {
        return status(Names.path(directory(directory), name));
    }

    @Override
    public List<StagedFile> missing(List<StagedFile> files) throws IOException {
        return Parallel.map(options.threads, files, this::ifMissing).stream()
                .filter(Objects::nonNull)
                .toList();
    }

    private StagedFile ifMissing(StagedFile file) throws IOException {
        return status(Names.path(directory(file.directory()), file.stagedAs())) == null ? file : null;
    }

    @Override
    public boolean publish(StagedFile file) throws IOException {
        Path directory = directory(file.directory());
        Path hidden = Names.path(directory, file.stagedAs());
        Path published = Names.path(directory, file.name());
        if (rename(hidden, published)) {
            return true;
        }
        if (status(hidden) != null) {
            throw new IOException("cannot rename " + hidden + " to " + published);
        }
        return status(published) != null;
    }

    @Override
    public List<StagedFile> unpublished(List<StagedFile> files) throws IOException {
        return Parallel.map(
                        options.threads,
                        files,
                        file -> status(Names.path(directory(file.directory()), file.name())) == null ? file : null)
                .stream()
                .filter(Objects::nonNull)
                .toList();
    }

    @Override
    public List<OldFile> list(Collection<String> directories, boolean recursive) throws IOException {
        return walk(directories, name -> recursive && !Names.isHidden(name), HiddenFileStore::visible).picked;
    }

    private static OldFile visible(String directory, FileStatus status) {
        String name = status.getPath().getName();
        return Names.isHidden(name)
                ? null
                : new OldFile(directory, name, status.getLen(), status.getModificationTime());
    }

    @Override
    public Holdings holdings(Collection<String> directories) throws IOException {
        Level<OldFile> found = walk(directories, name -> !Names.isHidden(name), HiddenFileStore::visible);
        Set<String> filled =
                withParents(found.picked.stream().map(OldFile::directory).collect(Collectors.toSet()), List.of());
        return new Holdings(
                found.picked,
                found.below.stream()
                        .filter(directory -> !filled.contains(directory))
                        .toList());
    }

    /** Maps a file to the value to collect; null for none. */
    private interface Picker<T> {
        T of(String directory, FileStatus file);
    }

    /** The values collected from the files of directories, and the subdirectories to descend into. */
    private record Level<T>(List<T> picked, List<String> below) {}

    /**
     * Lists directories level by level, those of a level in parallel. Only the collected values are kept, since levels
     * may be long.
     */
    private <T> Level<T> walk(Collection<String> directories, Predicate<String> descendsInto, Picker<T> picker)
            throws IOException {
        Level<T> all = new Level<>(new ArrayList<>(), new ArrayList<>());
        Collection<String> level = directories;
        while (!level.isEmpty()) {
            List<String> below = new ArrayList<>();
            for (Level<T> found :
                    Parallel.map(options.threads, level, directory -> look(directory, descendsInto, picker))) {
                all.picked.addAll(found.picked);
                below.addAll(found.below);
            }
            all.below.addAll(below);
            level = below;
        }
        return all;
    }

    /**
     * Whether a directory is behind a symbolic link that does not replace a partition's directory. Such a link is data
     * like a file: an overwrite removes it, and nothing behind it.
     */
    protected boolean isForeign(Path directory) throws IOException {
        return false;
    }

    private <T> Level<T> look(String directory, Predicate<String> descendsInto, Picker<T> picker) throws IOException {
        Level<T> found = new Level<>(new ArrayList<>(), new ArrayList<>());
        for (FileStatus status : entries(directory(directory))) {
            String name = status.getPath().getName();
            if (status.isDirectory() && !isForeign(status.getPath())) {
                if (descendsInto.test(name)) {
                    found.below.add(directory.isEmpty() ? name : directory + "/" + name);
                }
            } else {
                T pick = picker.of(directory, status);
                if (pick != null) {
                    found.picked.add(pick);
                }
            }
        }
        return found;
    }

    @Override
    public void delete(List<OldFile> files) throws IOException {
        Parallel.map(options.threads, files, file -> {
            deleteFile(Names.path(directory(file.directory()), file.name()));
            return null;
        });
    }

    @Override
    public void prune(Set<String> directories, Collection<String> stay) throws IOException {
        for (String directory : deepestFirst(directories, stay)) {
            removeIfEmpty(directory(directory));
        }
    }

    private static List<String> deepestFirst(Set<String> directories, Collection<String> stay) {
        List<String> deepestFirst = new ArrayList<>(withParents(directories, stay));
        deepestFirst.sort(Comparator.comparingInt(String::length).reversed());
        return deepestFirst;
    }

    @Override
    public void removeHollow(Set<String> directories, Collection<String> stay, Predicate<String> isOver)
            throws IOException {
        for (String directory : deepestFirst(directories, stay)) {
            Path path = directory(directory);
            List<FileStatus> found = entries(path);
            Set<String> names =
                    found.stream().map(status -> status.getPath().getName()).collect(Collectors.toSet());
            boolean isHollow = true;
            for (FileStatus status : found) {
                isHollow &= status.isDirectory()
                        ? isIdleJournal(status.getPath(), isOver)
                        : isMark(status.getPath().getName(), names);
            }
            if (isHollow) {
                removeIfAllowed(path, found);
            }
        }
    }

    /**
     * Whether a file is meaningless without data files: a success mark, or the checksums of a success mark or of a file
     * that is gone.
     */
    private static boolean isMark(String name, Set<String> beside) {
        String of = name.startsWith(".") && name.endsWith(".crc")
                ? name.substring(1, name.length() - ".crc".length())
                : null;
        return name.equals(SUCCESS) || of != null && (of.equals(SUCCESS) || !beside.contains(of));
    }

    /** Whether a directory is a journal whose jobs are all over: that of a former table inside this one. */
    private boolean isIdleJournal(Path directory, Predicate<String> isOver) throws IOException {
        if (!directory.getName().equals(JOURNAL)) {
            return false;
        }
        for (FileStatus status : entries(directory)) {
            String entry = Names.entryOf(status.getPath());
            if (status.isDirectory() || entry == null || !isOver.test(entry)) {
                return false;
            }
        }
        return true;
    }

    /** As in {@link #removeIfEmpty}, a failure is ignored: nothing depends on the removal. */
    private void removeIfAllowed(Path directory, List<FileStatus> found) {
        try {
            removeAll(found);
            removeIfEmpty(directory);
        } catch (IOException e) {
            LOG.debug("{} may not be removed", directory, e);
        }
    }

    private void removeAll(List<FileStatus> found) throws IOException {
        for (FileStatus status : found) {
            if (status.isDirectory()) {
                removeAll(entries(status.getPath()));
                removeIfEmpty(status.getPath());
            } else {
                deleteFile(status.getPath());
            }
        }
    }

    private static Set<String> withParents(Set<String> directories, Collection<String> stay) {
        Set<String> all = new HashSet<>();
        for (String directory : directories) {
            String up = directory;
            while (!up.isEmpty() && !stay.contains(up) && all.add(up)) {
                up = Names.parent(up);
            }
        }
        return all;
    }

    @Override
    public boolean isMissing() throws IOException {
        return status(table) == null;
    }

    @Override
    public void removeEmptyTree(String top) throws IOException {
        List<String> directories = new ArrayList<>(List.of(top));
        for (int next = 0; next < directories.size(); next++) {
            directories.addAll(look(directories.get(next), name -> true, (directory, file) -> null).below);
        }
        Collections.reverse(directories);
        for (String found : directories) {
            removeIfEmpty(directory(found));
        }
    }

    @Override
    public List<Leftover> leftovers(String below, Predicate<String> ofJob) throws IOException {
        return walk(
                        withSwapped(below),
                        name -> !Names.isHidden(name) || SwapDirectories.isOne(name),
                        (directory, status) -> {
                            String name = status.getPath().getName();
                            String job = jobOf(name);
                            boolean isLeft = job != null && ofJob.test(job);
                            return isLeft
                                    ? new Leftover(job, directory.isEmpty() ? name : directory + "/" + name, null)
                                    : null;
                        })
                .picked;
    }

    /**
     * Directories that may contain files written below a directory: other jobs may exchange directories
     * ({@code Exchanges}).
     */
    private List<String> withSwapped(String below) throws IOException {
        if (below.isEmpty()) {
            return List.of("");
        }
        Set<String> directories = new HashSet<>(look("", SwapDirectories::isOne, (directory, file) -> null).below);
        // A job may have failed because it could not create its directory.
        if (canExist(directory(below))) {
            directories.add(below);
        }
        return List.copyOf(directories);
    }

    /** The job in a hidden file's name; null if there is none. An attempt's id has no hyphen. */
    public static String jobOf(String name) {
        int dot = name.indexOf('.', PREFIX.length());
        int hyphen = dot < 0 ? -1 : name.lastIndexOf('-', dot);
        return name.startsWith(PREFIX) && hyphen > PREFIX.length() ? name.substring(PREFIX.length(), hyphen) : null;
    }

    @Override
    public boolean leftoversNameTheirJobs() {
        return true;
    }

    @Override
    public List<Leftover> withoutOtherRoots(List<Leftover> leftovers) throws IOException {
        Set<Path> entries = new HashSet<>();
        leftovers.forEach(leftover -> entries.addAll(entriesElsewhere(leftover)));
        Set<Path> found = ConcurrentHashMap.newKeySet();
        Parallel.map(options.threads, entries, entry -> status(entry) != null && found.add(entry));
        return leftovers.stream()
                .filter(leftover -> Collections.disjoint(entriesElsewhere(leftover), found))
                .toList();
    }

    /** The entries of other journals that claim a file: its job has begun, is committed, or keeps files. */
    private List<Path> entriesElsewhere(Leftover leftover) {
        String job = leftover.job();
        return otherRoots(leftover).stream()
                .flatMap(root -> Stream.of(Names.begin(job), Names.commit(job), Names.superseded(job))
                        .map(entry -> Names.entry(new Path(root, JOURNAL), entry)))
                .toList();
    }

    /** Directories that may be the roots of jobs that write to a leftover's directory. */
    private List<Path> otherRoots(Leftover leftover) {
        List<Path> roots = new ArrayList<>();
        for (Path above = table.getParent(); above != null; above = above.getParent()) {
            roots.add(above);
        }
        for (String below = Names.parent(leftover.path()); !below.isEmpty(); below = Names.parent(below)) {
            roots.add(directory(below));
        }
        return roots;
    }

    @Override
    public void discard(List<Leftover> leftovers) throws IOException {
        Parallel.map(options.threads, leftovers, leftover -> {
            deleteFile(Names.path(table, leftover.path()));
            return null;
        });
    }

    @Override
    public Path directory(String relative) {
        return Names.path(table, relative);
    }
}
