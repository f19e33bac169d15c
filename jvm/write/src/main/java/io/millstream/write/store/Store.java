package io.millstream.write.store;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;

/**
 * The protocol's interface to a table's file system. Paths are relative to the table's directory; those of old files
 * may be absolute paths on the same file system. A driver that dies leaves the table as some prefix of these calls did,
 * so the tests kill drivers at these calls.
 */
public interface Store {
    /** The journal's directory. */
    String JOURNAL = ".direct-writes";

    /** The name of a journal entry, and when it was written by the store's clock. */
    record Entry(String name, long modifiedMillis) {}

    /** An unpublished file of an attempt: a hidden file, or an upload by its id. */
    record Leftover(String job, String path, String uploadId) {}

    /** The journal's entries; none if there is no journal. */
    List<Entry> journal() throws IOException;

    /** The content of a journal entry; null if it does not exist. */
    byte[] read(String entry) throws IOException;

    /**
     * Creates a journal entry atomically, unless it exists. On a file system with directories, it fails if the journal
     * is gone: the table has been dropped or renamed and must not reappear.
     *
     * @return whether it now holds this content
     */
    boolean create(String entry, byte[] content) throws IOException;

    /** The same for a job's first entry; it also creates the directories of the table and of the journal. */
    boolean begin(String entry, byte[] content) throws IOException;

    /**
     * Writes a journal entry, whether it exists or not; a concurrent reader may find it empty. On a file system with
     * directories, it fails if the journal is gone: the table has been dropped and must not reappear.
     */
    void replace(String entry, byte[] content) throws IOException;

    /** Removes journal entries in this order; missing ones are not an error. */
    void remove(Collection<String> entries) throws IOException;

    /** Begins a task attempt. */
    TaskAttempt attempt(String job, String attempt) throws IOException;

    /** Those of these staged files that no longer exist. */
    List<StagedFile> missing(List<StagedFile> files) throws IOException;

    /**
     * Gives a staged file its final name.
     *
     * @return false if it is neither staged nor published
     */
    boolean publish(StagedFile file) throws IOException;

    /** Whether renaming a directory copies its files, which gives them new modification times. */
    default boolean copiesInRenames() {
        return false;
    }

    /** Those of these files that readers do not find in their directories. */
    List<StagedFile> unpublished(List<StagedFile> files) throws IOException;

    /**
     * The files of directories, except those that readers ignore.
     *
     * @param recursive whether to include files in directories below
     */
    List<OldFile> list(Collection<String> directories, boolean recursive) throws IOException;

    /**
     * The contents of directories and all below them.
     *
     * @param files files that readers see
     * @param hollow directories below the given ones that contain no such file at any depth
     */
    record Holdings(List<OldFile> files, List<String> hollow) {}

    /**
     * The contents of directories. Directories without files are only reported by file systems that have real
     * directories.
     */
    default Holdings holdings(Collection<String> directories) throws IOException {
        return new Holdings(list(directories, true), List.of());
    }

    /**
     * Checks that this process may remove and rename files, as far as this is certain without trying.
     *
     * @param own a journal entry that this process has created
     * @param byExecutors files that executors have staged, if they apply the commit; if another user owns them, nothing
     *     is checked
     * @throws IOException if it may not; the message names the path and says that nothing is written
     */
    default void requireRights(
            String own, Collection<StagedFile> byExecutors, Collection<OldFile> removed, Collection<StagedFile> renamed)
            throws IOException {}

    /**
     * Checks that the author of a journal entry has the rights to carry it out, so that no user makes others do it with
     * theirs.
     *
     * @param entry a journal entry of another process
     * @param replaced directories that are replaced whole
     * @throws IOException if the user could not; the message names the path
     */
    default void requireRightsOfAuthor(
            String entry, Collection<OldFile> removed, Collection<StagedFile> renamed, Collection<String> replaced)
            throws IOException {}

    /** Deletes files; missing ones are not an error. */
    void delete(List<OldFile> files) throws IOException;

    /**
     * Reserves space for an entry, so that a full disk does not make {@link #create} with this content fail. Only local
     * file systems need this.
     */
    default void reserve(String entry, byte[] content) throws IOException {}

    /** The directories, and their parents, that do not exist. None on a store without directories. */
    default Set<String> missingDirectories(Collection<String> directories) throws IOException {
        return Set.of();
    }

    /** Frees a job's unused reservations. */
    default void release(String job) throws IOException {}

    /** Creates directories, relative to the table's or absolute, and their parents; existing ones are not an error. */
    void makeDirectories(Collection<String> directories) throws IOException;

    /** Removes a directory with its contents, if it exists. */
    void removeTree(String directory) throws IOException;

    /** Makes changes of the names in these directories, and in those above them, durable against a power failure. */
    default void persist(Collection<String> directories) throws IOException {}

    /**
     * Makes clients discard their cached listings of these directories and of those above them. Called after the last
     * change of a commit, because on NFS, changes within one tick of the server's clock look like one.
     */
    default void invalidateListings(Collection<String> directories) throws IOException {}

    /**
     * Removes those of the directories that are empty, and those above them that become empty, up to a directory in
     * {@code stay}.
     */
    void prune(Set<String> directories, Collection<String> stay) throws IOException;

    /**
     * Like {@link #prune}, but also removes directories that contain only files that are useless without data: success
     * marks, checksums, journals without running jobs.
     *
     * @param isOver whether a journal entry means that a job is over
     */
    default void removeHollow(Set<String> directories, Collection<String> stay, Predicate<String> isOver)
            throws IOException {}

    /**
     * The unpublished files of jobs.
     *
     * @param below the only directory that they write to or below; "" if unknown. A store that lists unpublished files
     *     separately looks everywhere
     * @param ofJob which jobs; "" stands for an upload whose name does not tell its job
     */
    List<Leftover> leftovers(String below, Predicate<String> ofJob) throws IOException;

    /**
     * Whether the names of leftovers identify them as files of a job, so that leftovers of unknown jobs can be
     * distinguished from other programs' files.
     */
    boolean leftoversNameTheirJobs();

    /**
     * Those of these leftovers whose jobs have no begin entry in the journal of a directory above the table's, or
     * between the table's and the file.
     */
    default List<Leftover> withoutOtherRoots(List<Leftover> leftovers) throws IOException {
        return leftovers;
    }

    /** Whether another path is that of the table's directory, too, because one of them is a symbolic link. */
    default boolean isAlso(String path) throws IOException {
        return false;
    }

    /** Whether the table's directory is missing; false on stores without directories. */
    default boolean isMissing() throws IOException {
        return false;
    }

    /** Removes a directory, relative to the table's, and those below it, as far as they contain only directories. */
    default void removeEmptyTree(String directory) throws IOException {}

    /** Removes leftovers; missing ones are not an error. */
    void discard(List<Leftover> leftovers) throws IOException;

    /** Exchanges directories; null if the store cannot. */
    default Exchange exchange() {
        return null;
    }

    /**
     * Number of requests that this process has sent to the file system so far, for any purpose; 0 if they are not
     * counted.
     */
    default long requests() {
        return 0;
    }
}
