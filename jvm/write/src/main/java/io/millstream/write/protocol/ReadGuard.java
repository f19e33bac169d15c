package io.millstream.write.protocol;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.store.Stores;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.AccessDeniedException;
import java.util.Optional;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.AccessControlException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Guards a statement that reads a table. Before the table's files are listed, every committed job on it is finished, so
 * that the statement sees all files of each job or none. When the statement commits, the guard checks whether a job has
 * changed the table since. See "Isolation" in docs/direct-writes-protocol.md.
 *
 * @param root the table's directory
 * @param version the table's version before its files were listed
 * @param hasHelped whether a job had to be finished, so that earlier listings are outdated
 */
public record ReadGuard(Path root, TableVersion version, boolean hasHelped) implements Serializable {
    private static final Logger LOG = LoggerFactory.getLogger(ReadGuard.class);

    /**
     * Finishes the committed jobs of a table or directory before it is read.
     *
     * @param table its root
     * @param conf of the file system
     * @param metastore for jobs that change it; without one (null), such a job is an error
     * @return the guard, to be checked when the statement commits; empty if direct writes do not support the file
     *     system
     * @throws IOException if it cannot be reached, or a job cannot be finished
     */
    public static Optional<ReadGuard> of(Path table, Configuration conf, Metastore metastore) throws IOException {
        if (Stores.whyNot(table.getFileSystem(conf)).isPresent()) {
            return Optional.empty();
        }
        TableAccess access = TableAccess.of(table, conf, metastore);
        return Optional.of(withParts(access, Journal.of(access.store()), part -> true, conf));
    }

    /**
     * The same for a directory above one that is read or written. It may be unrelated, and a user who reads below it
     * may lack the right to list it.
     *
     * @param concerns whether a directory below this one, in which a job has its own journal, contains what is read or
     *     written, or is below that. Other jobs are left alone: they may belong to another user, and this process
     *     cannot finish those
     * @return the guard; empty also if there is no journal, or if it may not be listed
     * @throws IOException as {@link #of(Path, Configuration, Metastore)}
     */
    public static Optional<ReadGuard> above(
            Path directory, Predicate<Path> concerns, Configuration conf, Metastore metastore) throws IOException {
        if (Stores.whyNot(directory.getFileSystem(conf)).isPresent()) {
            return Optional.empty();
        }
        TableAccess access = TableAccess.of(directory, conf, metastore);
        Journal journal;
        try {
            journal = Journal.of(access.store());
        } catch (AccessDeniedException | AccessControlException e) {
            LOG.debug("It is not known whether {} has a journal, because it may not be listed", directory, e);
            return Optional.empty();
        }
        return journal.isEmpty() ? Optional.empty() : Optional.of(withParts(access, journal, concerns, conf));
    }

    /** Also finishes the jobs of parts of the table that have their own journals. */
    private static ReadGuard withParts(TableAccess table, Journal journal, Predicate<Path> concerns, Configuration conf)
            throws IOException {
        ReadGuard guard = of(table, journal);
        boolean hasHelped = guard.hasHelped;
        for (String job : journal.jobsBelow()) {
            Path root = Pointer.root(table, job);
            if (root != null && concerns.test(root)) {
                TableAccess part = TableAccess.of(root, conf, table.metastore());
                hasHelped |= of(part).hasHelped;
                Pointer.removeOutdated(table, part, job);
            }
        }
        return new ReadGuard(guard.root, guard.version, hasHelped);
    }

    static ReadGuard of(TableAccess table) throws IOException {
        return of(table, Journal.of(table.store()));
    }

    private static ReadGuard of(TableAccess table, Journal listed) throws IOException {
        Resolution resolution = new Resolution(table);
        Journal journal = listed;
        boolean hasHelped = false;
        while (resolution.finishCommitted(journal)) {
            hasHelped = true;
            journal = Journal.of(table.store());
        }
        return new ReadGuard(table.root(), journal.version(), hasHelped);
    }

    /**
     * Refuses the statement if another one has overwritten a table that it only reads. Rows added meanwhile are no
     * reason to refuse: the statement may have seen all, some or none of them, as with any other writer.
     *
     * @param conf of the file system
     * @throws ConflictException if files that the statement listed may have been deleted before it read them
     * @throws IOException if the table cannot be reached
     */
    public void check(Configuration conf) throws IOException {
        check(TableAccess.of(root, conf, null));
    }

    void check(TableAccess table) throws IOException {
        Resolution resolution = new Resolution(table);
        Journal journal = Journal.of(table.store());
        boolean isOverwritten = journal.version().overwritten() != version.overwritten();
        for (Journal.Job job : journal.jobs()) {
            isOverwritten |= !job.isFinished() && resolution.isOverwrite(job);
        }
        if (isOverwritten) {
            throw new ConflictException("another statement has overwritten " + root
                    + " since this one began to read it: nothing is written, and this statement can be run again");
        }
    }
}
