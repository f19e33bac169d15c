package io.millstream.write.protocol;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * The table's commit lock. A job holds it once it has created {@code lock-N} and then found that the jobs of all other
 * locks are over. If two jobs create theirs at the same time, the one that lists later sees the other's; if each sees
 * the other's, both back off. Creation is atomic in the store, so an outdated listing costs time, not safety. N is at
 * least the time by the store's clock and is never reused, because a late job removes its own lock by name, and because
 * statements compare numbers to learn that a table has changed since they began. A job whose creation arrives after
 * another has taken N, or a higher number, and is over, finds that job's done mark and begins again.
 *
 * <p>If the holder is committed, a waiting job finishes it.
 */
final class CommitLock {
    private static final long FIRST_PAUSE_MILLIS = 10;
    private static final long LONGEST_PAUSE_MILLIS = 1000;

    /**
     * The lock of a job.
     *
     * @param entry its journal entry
     * @param number the lock's number
     * @param journal a listing in which the jobs of all other locks are over
     */
    record Held(String entry, long number, Journal journal) {}

    private final TableAccess table;
    private final Resolution resolution;
    private final String job;
    private String holder;
    /** USER@HOST and process of {@link #holder}. */
    private String owner;
    /** Whether this job has finished or resolved the holder, so that the next attempt need not wait. */
    private boolean hasHelped;

    CommitLock(TableAccess table, Resolution resolution, String job) {
        this.table = table;
        this.resolution = resolution;
        this.job = job;
    }

    /**
     * Waits for the lock and takes it.
     *
     * @throws IOException if the lock is not free in time, another process has aborted this job, or the journal is gone
     */
    Held take() throws IOException {
        LongWait wait = new LongWait(table);
        for (long pauseMillis = FIRST_PAUSE_MILLIS; ; pauseMillis = Math.min(2 * pauseMillis, LONGEST_PAUSE_MILLIS)) {
            Held taken = tryTake();
            if (taken != null) {
                return taken;
            }
            if (wait.isOver()) {
                throw new IOException("job " + job + " has waited to commit to " + table.root() + " for "
                        + table.options().lockWaitMillis + " ms; job " + holder + " holds the commit lock");
            }
            wait.pause(hasHelped ? 0 : pauseMillis, this::reason);
        }
    }

    private String reason() {
        return "job " + holder + " of " + owner + " holds the commit lock of " + table.root() + ", which job " + job
                + " needs";
    }

    private Held tryTake() throws IOException {
        hasHelped = false;
        Journal before = Journal.of(table.store());
        checkUndecided(before);
        if (isHeldByAnother(before, null)) {
            return null;
        }
        long number = newNumber(before);
        String mine = Journal.lock(number);
        if (!table.store().create(mine, job.getBytes(StandardCharsets.UTF_8))) {
            return null;
        }
        Journal after = Journal.of(table.store());
        checkUndecided(after);
        if (isHeldByAnother(after, mine)) {
            table.store().remove(List.of(mine));
            return null;
        }
        List<String> others = after.locks().values().stream()
                .filter(lock -> !lock.equals(mine))
                .toList();
        if (!others.isEmpty()) {
            // Their jobs may have written their done marks since the listing.
            after = Journal.of(table.store());
            table.store().remove(others);
        }
        if (after.hasReached(number)) {
            table.store().remove(List.of(mine));
            return null;
        }
        return new Held(mine, number, after);
    }

    private static long newNumber(Journal journal) {
        return Math.max(journal.nowMillis(), journal.lastNumber() + 1);
    }

    private void checkUndecided(Journal journal) throws IOException {
        Journal.Job own = journal.job(job);
        if (own.isDecided()) {
            throw Resolution.lost(table, job);
        }
        if (!own.hasBegun()) {
            throw new IOException("the journal entry of job " + job + " is gone from " + table.root()
                    + ": a program that does not support direct writes has"
                    + " dropped, renamed or overwritten the table since this statement began; nothing is written");
        }
    }

    /** Whether another job has a lock and is not over. Finishes or resolves that job if possible. */
    private boolean isHeldByAnother(Journal journal, String mine) throws IOException {
        for (String lock : journal.locks().values()) {
            byte[] content = lock.equals(mine) ? null : table.store().read(lock);
            String id = content == null ? job : new String(content, StandardCharsets.UTF_8);
            byte[] begin = id.equals(job) ? null : table.store().read(Journal.begin(id));
            if (!id.equals(job) && !isOver(journal.job(id), begin != null)) {
                holder = id;
                owner = begin == null
                        ? "an unknown process"
                        : Journal.Begin.of(begin, table.options().leaseMillis).owner();
                if (mine == null) {
                    help(journal, journal.job(id));
                }
                return true;
            }
        }
        return false;
    }

    /**
     * Whether a job is over. A job that another process has finished may still be running; it checks for its begin
     * entry before each step, so that entry is removed first.
     *
     * @param hasBegun whether it has a begin entry, which is read and not looked up in the listing: that may have
     *     passed its position before the job created it, and then its lock
     */
    private boolean isOver(Journal.Job other, boolean hasBegun) throws IOException {
        if (other.isFinished() && hasBegun) {
            table.store().remove(Journal.liveEntries(other.id));
        }
        return other.isFinished() || !hasBegun && !resolution.hasRecord(other.id);
    }

    private void help(Journal journal, Journal.Job other) throws IOException {
        if (resolution.hasRecord(other.id)) {
            resolution.finish(other.id);
            hasHelped = true;
        } else if (resolution.isDead(journal, other)) {
            resolution.resolve(other.id);
            hasHelped = true;
        }
    }
}
