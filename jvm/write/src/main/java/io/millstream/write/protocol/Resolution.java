package io.millstream.write.protocol;

import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.store.Causes;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Resolves the jobs of other drivers. A job without a commit record is aborted once its driver is dead; the first
 * {@code commit} entry, written by the job or by recovery, decides whether it has one. A job with a commit record is
 * finished by any process, whether its driver is alive or not, because every step may be repeated.
 */
public final class Resolution {
    private static final Logger LOG = LoggerFactory.getLogger(Resolution.class);
    /**
     * How long the {@code commit} entry of an ended job is kept, because its attempts may still run and its driver may
     * wake up.
     */
    private static final long KEPT_MILLIS = TimeUnit.DAYS.toMillis(1);

    private static final long FIRST_PAUSE_MILLIS = 20;
    private static final long LONGEST_PAUSE_MILLIS = 1000;

    private final TableAccess table;
    private final ReplacedFiles replaced;
    private boolean hasClock;

    public Resolution(TableAccess table) {
        this.table = table;
        this.replaced = new ReplacedFiles(table);
    }

    static IOException lost(TableAccess table, String job) {
        return new IOException("job " + job + " on " + table.root()
                + " did not renew its lease and was aborted by another process; nothing is written");
    }

    /**
     * Removes the entries of jobs that ended long ago, and resolves every job whose driver is dead.
     *
     * @throws IOException if a job cannot be resolved; the others are resolved anyway
     */
    public void resolveDead(Journal journal) throws IOException {
        forget(journal);
        Failures failures = new Failures();
        for (Journal.Job job : journal.jobs()) {
            failures.in(() -> {
                if (!job.isFinished() && isDead(journal, job)) {
                    resolve(job.id);
                }
            });
        }
        failures.check();
    }

    private void forget(Journal journal) throws IOException {
        List<String> forgotten = new ArrayList<>(journal.forgettable(null));
        for (Journal.Job job : journal.jobs()) {
            if (replaced.isRemovable(journal, job)) {
                replaced.tryRemove(job.id);
            }
            if (job.isFinished() && job.hasBegun()) {
                forgotten.addAll(Journal.liveEntries(job.id));
            }
            // Most finished jobs have no entry but the done mark.
            boolean isKept =
                    job.replacedMillis() != 0 || job.isSuperseded() || job.lastMillis() == 0 && !job.isAbandoned();
            if (!isKept
                    && isOld(journal, job.lastMillis())
                    && (job.isFinished() || !job.hasBegun() && !isCommitted(job))) {
                forgotten.addAll(Journal.liveEntries(job.id));
                forgotten.addAll(List.of(Journal.commit(job.id), Journal.published(job.id)));
            }
        }
        journal.drafts().forEach((draft, millis) -> {
            if (isOld(journal, millis)) {
                forgotten.add(draft);
            }
        });
        if (!forgotten.isEmpty()) {
            table.store().remove(forgotten);
        }
    }

    /** Whether a job has a commit record. */
    boolean hasRecord(String job) throws IOException {
        byte[] commit = table.store().read(Journal.commit(job));
        return commit != null && !CommitRecord.isAborted(commit);
    }

    /** Whether a job is committed and replaces files. */
    boolean isOverwrite(Journal.Job job) throws IOException {
        CommitRecord record = job.isDecided() ? record(job.id) : null;
        return record != null && record.kind() == Journal.Kind.OVER;
    }

    /** Like {@link #hasRecord}, but does not read the store if the journal shows no {@code commit} entry. */
    public boolean isCommitted(Journal.Job job) throws IOException {
        return job.isDecided() && hasRecord(job.id);
    }

    private static boolean isOld(Journal journal, long millis) {
        return journal.nowMillis() - millis > KEPT_MILLIS;
    }

    /** Whether a job's lease has expired by the store's clock, or the job has a commit record and no begin entry. */
    public boolean isDead(Journal journal, Journal.Job job) throws IOException {
        if (job.isAbandoned()) {
            return true;
        }
        byte[] begin = table.store().read(Journal.begin(job.id));
        if (begin == null) {
            // A driver removes the begin entry after it has written the done mark, which the listing may be too old to
            // show.
            return isCommitted(job) && !Journal.of(table.store()).job(job.id).isFinished();
        }
        long leaseMillis = Journal.Begin.of(begin, table.options().leaseMillis).leaseMillis();
        if (!isSilent(journal.nowMillis(), job, leaseMillis)) {
            return false;
        }
        // An NFS client may show an old time; opening the file refreshes it.
        table.store().read(Journal.lease(job.id));
        Journal again = Journal.of(table.store()).at(journal.nowMillis());
        Journal.Job still = again.job(job.id);
        return !still.isFinished() && still.hasBegun() && isSilent(again.nowMillis(), still, leaseMillis);
    }

    private static boolean isSilent(long nowMillis, Journal.Job job, long leaseMillis) {
        return nowMillis - job.lastRenewalMillis() > leaseMillis;
    }

    /**
     * Finishes every committed job, whether its lease has expired or not, so that a later listing of the table shows
     * all files of each job or none.
     *
     * @return whether there was a committed job
     * @throws IOException if a job cannot be finished
     */
    boolean finishCommitted(Journal journal) throws IOException {
        boolean isAny = false;
        for (Journal.Job job : journal.jobs()) {
            if (!job.isFinished() && isCommitted(job)) {
                isAny = true;
                finish(job.id);
            }
        }
        return isAny;
    }

    /**
     * Finishes a committed job. A live driver gets a short time to finish it itself, or its whole lease if readers see
     * the job as a whole anyway.
     *
     * @return what was done by this call
     * @throws IOException if the job cannot be finished, or its live driver takes longer than
     *     {@code fs.millstream.write.lock.wait.ms}
     */
    public Finding finish(String job) throws IOException {
        CommitRecord record = record(job);
        // Leases expire by the store's clock; the entry that was written last shows its time.
        String clock = "clock-" + UUID.randomUUID();
        try {
            return finish(job, record, clock);
        } finally {
            if (hasClock) {
                table.store().remove(List.of(Journal.lease(clock)));
                hasClock = false;
            }
        }
    }

    /** The journal with the current time; by this machine's clock if nothing may be written. */
    private Journal journalWithTime(String clock) throws IOException {
        try {
            table.store().replace(Journal.lease(clock), Journal.NOTHING);
            hasClock = true;
            return Journal.of(table.store()).without(clock);
        } catch (IOException e) {
            return Journal.of(table.store()).at(System.currentTimeMillis());
        }
    }

    private Finding finish(String job, CommitRecord record, String clock) throws IOException {
        LongWait wait = new LongWait(table);
        for (long pauseMillis = FIRST_PAUSE_MILLIS;
                record != null;
                pauseMillis = Math.min(2 * pauseMillis, LONGEST_PAUSE_MILLIS)) {
            // The first round costs only a listing: most drivers finish soon, and the current time matters only for
            // those that do not.
            boolean needsTime =
                    pauseMillis > FIRST_PAUSE_MILLIS && (record.isSwap() || pauseMillis == LONGEST_PAUSE_MILLIS);
            Journal journal = needsTime ? journalWithTime(clock) : Journal.of(table.store());
            Journal.Job now = journal.job(job);
            if (now.isFinished() || !now.hasBegun() && !now.isDecided()) {
                break; // no entry is left: it is cleaned up, and its done mark has been removed
            }
            boolean isDead = isDead(journal, now);
            if (isDead || !record.isSwap() && wait.millis() >= table.options().helpAfterMillis) {
                try {
                    return resolve(job);
                } catch (IOException e) {
                    // Without a record it is cleaned up, and its done mark may have been removed, as it is no longer
                    // needed.
                    if (isDead && hasRecord(job)) {
                        throw e;
                    }
                    LOG.debug("Job {} on {} is left to its driver, which is alive", job, table.root(), e);
                }
            }
            if (wait.isOver()) {
                throw new IOException("job " + job + " of " + record.owner() + " on " + table.root()
                        + " is committed, and its driver has been finishing it for " + wait.millis() + " ms");
            }
            wait.pause(
                    pauseMillis,
                    () -> "job " + job + " of " + record.owner() + " on " + table.root()
                            + " is committed, and its driver has not finished it");
        }
        return leftAlone(job);
    }

    /** A job's commit record; null if there is none, or no longer. */
    private CommitRecord record(String job) throws IOException {
        byte[] commit = table.store().read(Journal.commit(job));
        if (commit == null || CommitRecord.isAborted(commit)) {
            return null;
        }
        try {
            CommitRecord record = CommitRecord.of(commit);
            return isMoved(job, record)
                    ? record.moved(table.store()
                            .list(
                                    record.deleted().stream()
                                            .map(OldFile::directory)
                                            .collect(Collectors.toSet()),
                                    false))
                    : record;
        } catch (IOException e) {
            throw stuck(table, job, "unknown", e);
        }
    }

    /**
     * Whether the old files may have other paths or times than in the record, because the table was renamed, and
     * perhaps back again.
     */
    private boolean isMoved(String job, CommitRecord record) throws IOException {
        if (record.deleted().isEmpty()) {
            return false;
        }
        if (!record.root().equals(table.root().toString())) {
            return !table.store().isAlso(record.root());
        }
        long begunMillis = table.store().copiesInRenames()
                ? Journal.of(table.store()).job(job).begunMillis()
                : 0;
        return begunMillis != 0 && begunMillis != record.begunMillis();
    }

    /** Resolves a job. */
    Finding resolve(String job) throws IOException {
        Finding finding = examine(job, Run.REAL);
        if (finding.verdict() != Verdict.ALIVE) {
            LOG.warn(
                    "Job {} of {} on {} was abandoned by its driver or not finished in time: {}, {} steps",
                    job,
                    finding.owner(),
                    table.root(),
                    finding.verdict(),
                    finding.steps().size());
        }
        return finding;
    }

    /** Resolves a job, or reports how it would be resolved. */
    public Finding examine(String job, Run run) throws IOException {
        byte[] commit = table.store().read(Journal.commit(job));
        if (commit == null && run == Run.REAL && table.store().read(Journal.begin(job)) != null) {
            commit = abort(job);
        }
        if (commit != null && !CommitRecord.isAborted(commit)) {
            CommitRecord record = record(job);
            return record == null
                    ? leftAlone(job)
                    : new Finding(job, record.owner(), Verdict.ROLL_FORWARD, rollForward(job, record, run));
        }
        byte[] begin = table.store().read(Journal.begin(job));
        if (begin == null || Journal.of(table.store()).job(job).isFinished()) {
            // It woke up and finished before it could be aborted: the files in its directories are in use.
            return leftAlone(job);
        }
        Journal.Begin begun = Journal.Begin.of(begin, table.options().leaseMillis);
        return new Finding(job, begun.owner(), Verdict.ROLL_BACK, rollBack(job, begun.below(), run));
    }

    /** Nothing to do: the job is alive, or another process has finished it. */
    private static Finding leftAlone(String job) {
        return new Finding(job, "unknown", Verdict.ALIVE, List.of());
    }

    /** Decides that a job is aborted, unless it is decided already. Returns the content of its {@code commit} entry. */
    byte[] abort(String job) throws IOException {
        String entry = Journal.commit(job);
        return table.store().create(entry, CommitRecord.ABORTED)
                ? CommitRecord.ABORTED
                : table.store().read(entry);
    }

    /**
     * Removes the staged files of an aborted job below a directory, but never a file that readers may see: a begin
     * entry may arrive late.
     */
    List<String> rollBack(String job, String below, Run run) throws IOException {
        List<Store.Leftover> leftovers = table.store().leftovers(below, job::equals);
        if (run == Run.REAL) {
            table.store().discard(leftovers);
            table.store().removeEmptyTree(SwapDirectories.root(job));
            table.store().release(job);
            table.store().remove(Journal.liveEntries(job));
            // Attempts that have found the begin entry leave their directories; those that do not find it remove them
            // (JobAttempt).
            table.store().removeEmptyTree(SwapDirectories.root(job));
        }
        return removals(leftovers);
    }

    public static List<String> removals(List<Store.Leftover> leftovers) {
        return leftovers.stream()
                .map(l -> "remove " + l.path() + (l.uploadId() == null ? "" : " (upload " + l.uploadId() + ")"))
                .collect(Collectors.toCollection(ArrayList::new));
    }

    private Apply helper(String job, CommitRecord record) {
        return new Apply(table, job, record, null, new Phases((phase, done, total) -> {}), Apply.Role.HELPER);
    }

    private void requireRightsOfAuthor(String job, CommitRecord record) throws IOException {
        // The files that a swap replaces stay for a time.
        table.store()
                .requireRightsOfAuthor(
                        Journal.commit(job),
                        record.isSwap() ? List.of() : record.deleted(),
                        record.added(),
                        record.exchanges().values());
    }

    private List<String> rollForward(String job, CommitRecord record, Run run) throws IOException {
        Apply apply = helper(job, record);
        List<String> steps = new ArrayList<>();
        if (run == Run.REAL) {
            Ending ending;
            try {
                requireRightsOfAuthor(job, record);
                ending = apply.run();
            } catch (IOException e) {
                throw stuck(table, job, record.owner(), e);
            }
            if (ending.outcome() != Ending.Outcome.COMPLETE) {
                LOG.warn("Job {} of {} on {}: {}", job, record.owner(), table.root(), ending.detail());
                steps.add(ending.detail());
            }
            cleanUp(job, record.below(), ending);
        } else {
            Set<String> superseded = apply.superseded();
            if (!superseded.isEmpty()) {
                steps.add("keep the files for " + String.join(", ", superseded) + ": another writer got there first");
            }
        }
        steps.addAll(steps(record));
        return steps;
    }

    /**
     * Ends a committed job that cannot be finished, and accepts losses.
     *
     * @param cause why it cannot
     * @return the losses
     * @throws IOException if even that cannot be done
     */
    public Finding giveUp(String job, IOException cause) throws IOException {
        CommitRecord record = null;
        try {
            record = record(job);
            if (record != null) {
                requireRightsOfAuthor(job, record);
            }
        } catch (IOException unusable) {
            LOG.warn("The commit record of job {} on {} cannot be read or applied", job, table.root(), unusable);
            record = null;
        }
        List<String> steps;
        if (record != null) {
            steps = helper(job, record).giveUp(cause);
        } else {
            steps = List.of(
                    "lost the contents of the commit record, which cannot be read or applied",
                    "cause: " + Causes.text(cause));
            Ending ending = new Ending(Ending.Outcome.LOST, String.join("; ", steps));
            table.store()
                    .create(
                            Journal.done(Journal.of(table.store()).lastNumber() + 1, Journal.Kind.OVER, job),
                            ending.toBytes());
        }
        table.store().release(job);
        table.store().remove(Journal.liveEntries(job));
        table.store().remove(List.of(Journal.commit(job), Journal.published(job)));
        return new Finding(job, record == null ? "unknown" : record.owner(), Verdict.LOST, steps);
    }

    /** Removes the files kept of a job for directories that another program overwrote first. */
    public List<String> dropSuperseded(String job, Run run) throws IOException {
        CommitRecord record = record(job);
        List<Store.Leftover> leftovers = table.store().leftovers(record == null ? "" : record.below(), job::equals);
        if (run == Run.REAL) {
            table.store().discard(leftovers);
            table.store().removeEmptyTree(SwapDirectories.root(job));
            table.store().remove(List.of(Journal.superseded(job), Journal.published(job), Journal.commit(job)));
        }
        return removals(leftovers);
    }

    /** The files kept of a job for directories that another program overwrote first. */
    public Superseded superseded(String job) throws IOException {
        CommitRecord record = record(job);
        byte[] made = table.store().read(Journal.published(job));
        if (record == null || made == null) {
            throw new IOException("the commit record of job " + job + " on " + table.root()
                    + " is gone: the destinations of its files are unknown");
        }
        Set<String> directories = new HashSet<>(Publication.of(made).superseded());
        Apply apply = helper(job, record);
        Set<String> others = record.added().stream()
                .map(record::destination)
                .map(SwapDirectories::partition)
                .collect(Collectors.toCollection(HashSet::new));
        record.deleted().forEach(file -> others.add(SwapDirectories.partition(file.directory())));
        directories.forEach(directory -> others.remove(SwapDirectories.partition(directory)));
        CommitRecord rest = record.without(others);
        List<StagedFile> kept = apply.kept(record, directories);
        List<StagedFile> gone = rest.added().stream()
                .filter(file -> !kept.contains(file))
                .map(file -> file.in(rest.destination(file)))
                .toList();
        return new Superseded(record.owner(), kept, gone, List.copyOf(directories), rest);
    }

    /**
     * The kept files of a job.
     *
     * @param owner the process that ran it
     * @param files the files that are still staged
     * @param gone the files that are not, with the directories where they would have been published
     * @param directories their destination directories
     * @param rest the part of the commit record about these directories
     */
    public record Superseded(
            String owner, List<StagedFile> files, List<StagedFile> gone, List<String> directories, CommitRecord rest) {
        /** A commit that replaces the directories' current files with the kept ones. */
        public CommitPlan plan() {
            CommitPlan plan = new CommitPlan(files, Overwrite.below(directories)).metastore(draft -> rest.change());
            return rest.isExchange() ? plan.exchange(rest.exchanges()::get) : plan;
        }
    }

    /**
     * Removes the leftovers of failed attempts before the job's journal entries, without which they could not be
     * recognised.
     */
    void cleanUp(String job, String below, Ending ending) throws IOException {
        if (ending.outcome() != Ending.Outcome.SUPERSEDED) {
            table.store().discard(table.store().leftovers(below, job::equals));
        }
        table.store().release(job);
        table.store().remove(Journal.liveEntries(job));
    }

    static IOException stuck(TableAccess table, String job, String owner, IOException cause) {
        return new IOException(
                "job " + job + " of " + owner + " on " + table.root() + " is committed and cannot be finished: "
                        + Causes.text(cause)
                        + ". Once the cause is removed, the next statement finishes it, and so does `millstream recover`,"
                        + " run by a user with the necessary permissions; `millstream recover --accept-loss` with"
                        + " the table's name or path gives it up and lists the lost files",
                cause);
    }

    private static List<String> steps(CommitRecord record) {
        List<String> steps = new ArrayList<>();
        record.added().forEach(f -> steps.add("publish " + f));
        record.exchanges().forEach((made, destination) -> steps.add("exchange " + made + " and " + destination));
        record.deleted().forEach(f -> steps.add((record.isSwap() ? "replace " : "delete ") + f));
        if (record.change() != null) {
            String name = record.change().database() + "." + record.change().table();
            record.change().partitions().forEach(p -> steps.add("change " + name + " partition " + p.name()));
            record.change().droppedPartitions().forEach(p -> steps.add("drop " + name + " partition " + p));
            steps.add("change " + name);
        }
        return steps;
    }
}
