package io.millstream.write.protocol;

import io.millstream.write.protocol.Ending.Outcome;
import java.io.IOException;
import java.util.EnumSet;
import java.util.Objects;

/**
 * The two journal entries that are written once for a commit, by the first of the processes that carry it out: that all
 * its files are published ({@link Publication}), and how the job ended ({@link Ending}).
 */
final class JobEntries {
    /** Another process has finished the job. */
    static final class FinishedByAnother extends IOException {
        private static final long serialVersionUID = 1;

        final transient Ending ending;

        private FinishedByAnother(Ending ending) {
            this.ending = ending;
        }
    }

    private final TableAccess table;
    private final String job;
    private final CommitRecord record;
    private boolean hasDecided;

    JobEntries(TableAccess table, String job, CommitRecord record) {
        this.table = table;
        this.job = job;
        this.record = record;
    }

    /** Whether the decision in the journal is that of this process. */
    boolean hasDecided() {
        return hasDecided;
    }

    /** Records which files are published. If another process has decided before, returns its decision. */
    Publication decide(Publication mine) throws IOException {
        if (table.store().create(Journal.published(job), mine.toBytes())) {
            hasDecided = true;
            return mine;
        }
        byte[] theirs = table.store().read(Journal.published(job));
        if (theirs == null) {
            check();
            throw new IOException("journal entries of job " + job + " in " + table.root()
                    + " disappeared while they were being read");
        }
        return Publication.of(theirs);
    }

    /** Marks the job as over. If another process has done so, returns its result. */
    Ending end(Ending mine) throws IOException {
        if (mine.outcome() == Outcome.SUPERSEDED) {
            table.store().create(Journal.superseded(job), Journal.NOTHING);
        }
        String entry = Journal.done(record.number(), record.kindOf(mine), job);
        try {
            if (table.store().create(entry, mine.toBytes())) {
                return mine;
            }
        } catch (IOException e) {
            check();
            throw e;
        }
        Ending theirs = mark();
        if (theirs == null) {
            check();
        }
        return Objects.requireNonNull(theirs, "nobody removes a done mark beside a begin entry");
    }

    /** The content of the done mark; null if there is none. */
    private Ending mark() throws IOException {
        for (Journal.Kind kind : EnumSet.range(record.kind(), Journal.Kind.OVER)) {
            byte[] content = table.store().read(Journal.done(record.number(), kind, job));
            if (content != null) {
                return Ending.of(content);
            }
        }
        return null;
    }

    /**
     * Whether another process has finished the job. While its begin entry exists no other job commits to the table: the
     * process that finishes the job writes the done mark before it removes the begin entry, as does a process that
     * waits for the commit lock.
     *
     * @throws JournalGoneException if neither entry exists: the job is not finished
     */
    boolean isFinished() throws IOException {
        return endingByAnother() != null;
    }

    /**
     * Whether another program has emptied the table between the job's begin entry and its commit record, or a rename
     * has separated the two. A job that is over has no record left without a begin entry, unless there is a done mark.
     */
    boolean isEmptied() throws IOException {
        return table.store().read(Journal.begin(job)) == null
                && mark() == null
                && table.store().read(Journal.commit(job)) != null;
    }

    /** The result that another process recorded for the job, or null. Throws what {@link #isFinished} throws. */
    private Ending endingByAnother() throws IOException {
        if (table.store().read(Journal.begin(job)) != null) {
            return null;
        }
        Ending ending = mark();
        if (ending != null) {
            return ending;
        }
        if (table.store().read(Journal.commit(job)) != null) {
            return null; // isEmptied
        }
        throw new JournalGoneException("the journal entries of job " + job + " of " + record.owner() + " are gone from "
                + table.root() + ": the table was renamed,"
                + " dropped or overwritten by a program that does not support direct writes while the"
                + " commit of "
                + record.added().size()
                + " files was in progress. Files not yet published are hidden in their destination"
                + " directories, wherever these are now, or are incomplete uploads. After a rename, run"
                + " `millstream recover` with the table's new name: it finishes the commit if its record"
                + " has moved along, and otherwise removes the leftovers");
    }

    /**
     * Ends this process's work if another process has finished the job.
     *
     * @throws FinishedByAnother if it has
     * @throws JournalGoneException as {@link #isFinished}
     */
    void check() throws IOException {
        Ending ending = endingByAnother();
        if (ending != null) {
            throw new FinishedByAnother(ending);
        }
    }
}
