package io.millstream.write.protocol;

import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.protocol.CommitPlan.Phase;
import io.millstream.write.store.Causes;
import io.millstream.write.store.Names;
import io.millstream.write.store.NotWrittenException;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The steps of a job up to its commit point, steps 4 to 7 of the protocol: the commit lock, the table's version, the
 * list of replaced files, and the commit record. Until then, readers see no change.
 */
final class Commit {
    private final TableAccess table;
    private final Resolution resolution;
    private final Lease lease;
    private final String job;
    private final String below;
    private CommitLock.Held lock;
    private boolean hasTried;
    /** Directories that were created for the commit. */
    private Set<String> reserved = Set.of();

    Commit(TableAccess table, Resolution resolution, Lease lease, String job, String below) {
        this.table = table;
        this.resolution = resolution;
        this.lease = lease;
        this.job = job;
        this.below = below;
    }

    /** The commit lock; null until it is taken. */
    CommitLock.Held lock() {
        return lock;
    }

    /** Whether the commit record may have been written. */
    boolean hasTried() {
        return hasTried;
    }

    /** Removes those directories created for the commit that are empty. */
    void releaseDirectories() throws IOException {
        table.store()
                .prune(
                        reserved,
                        reserved.stream()
                                .map(Names::parent)
                                .filter(above -> !reserved.contains(above))
                                .toList());
    }

    /**
     * Takes the commit lock, lists the files to replace and writes the commit record.
     *
     * @return the record that was written
     * @throws ConflictException if another job has changed the table since the statement read it
     * @throws IOException if the job is not committed, or if it is not known whether it is ({@link #hasTried} is then
     *     true)
     */
    CommitRecord run(CommitPlan plan, Phases phases) throws IOException {
        lock = phases.time(Phase.LOCK, this::takeLock);
        if (plan.readVersion != null
                && plan.readVersion.changed()
                        != Journal.of(table.store()).version().changed()) {
            throw new ConflictException("another statement has changed " + table.root()
                    + " since this one began to read it: nothing is written, and this statement can be run again");
        }
        CommitRecord record = phases.time(Phase.LIST, () -> record(plan));
        return phases.time(Phase.RECORD, () -> {
            // A task's directories may be new; their names are stored in the directories above.
            table.store()
                    .persist(touched(plan.files).stream()
                            .filter(d -> !d.isEmpty())
                            .map(Names::parent)
                            .collect(Collectors.toSet()));
            if (record.isExchange()) {
                Exchanges.rehearse(table, plan.files, record.exchanges());
            }
            checkStaged(plan.files);
            requireRights(plan, record);
            // What a successful commit creates, except for the files themselves: once the record is written, a full
            // disk or a quota must not stop it.
            reserved = table.store().missingDirectories(CatalogUpdate.madeLater(record));
            if (!reserved.isEmpty()) {
                table.store().makeDirectories(reserved);
            }
            if (record.hasReplaced()) {
                table.store().reserve(Journal.replaced(job), Journal.NOTHING);
            }
            table.store().reserve(Journal.published(job), Publication.ALL.toBytes());
            table.store().reserve(Journal.done(record.number(), record.kind(), job), Ending.DONE.toBytes());
            decide(record.toBytes());
            return record;
        });
    }

    private CommitLock.Held takeLock() throws IOException {
        try {
            return new CommitLock(table, resolution, job).take();
        } catch (NotWrittenException e) {
            throw notWritten("could not take the commit lock, and nothing is written: ", e);
        }
    }

    private IOException notWritten(String what, NotWrittenException e) {
        return new IOException("job " + job + " on " + table.root() + " " + what + Causes.text(e), e);
    }

    private CommitRecord record(CommitPlan plan) throws IOException {
        Set<String> touched = touched(plan.files);
        Map<String, String> exchanges = new HashMap<>();
        if (plan.destinations != null) {
            touched.forEach(made -> exchanges.put(made, plan.destinations.apply(made)));
        }
        CommitPlan.Found found = plan.survey.find(touched);
        Set<String> targets = new LinkedHashSet<>(targets(plan, touched, found, exchanges));
        Store.Holdings held = holdings(targets);
        if (plan.neighbours.finish(used(touched, targets, held))) {
            held = holdings(targets);
        }
        List<OldFile> old = held.files();
        List<OldFile> forgotten =
                new ArrayList<>(found == null ? List.of() : new ReplacedFiles(table).in(found.unclaimed()));
        forgotten.removeAll(old);
        MetastoreChange change = plan.metastorePlanner.plan(new Draft(table.store(), plan.files, old, forgotten));
        List<OldFile> deleted = new ArrayList<>(old);
        deleted.addAll(forgotten);
        List<String> emptied =
                plan.overwrite.isOfTouched() || plan.overwrite.isNothing() ? List.of() : List.copyOf(targets);
        boolean replaces = !plan.overwrite.isNothing() || !deleted.isEmpty();
        return new CommitRecord(
                lock.number(),
                lock.journal().job(job).begunMillis(),
                table.root().toString(),
                ThisProcess.owner(),
                below,
                replaces ? Journal.Kind.OVER : Journal.Kind.INTO,
                List.copyOf(targets),
                plan.files,
                deleted,
                emptied,
                held.hollow(),
                change,
                exchanges);
    }

    private Store.Holdings holdings(Set<String> targets) throws IOException {
        return targets.isEmpty()
                ? new Store.Holdings(List.of(), List.of())
                : table.store().holdings(targets);
    }

    /** The directories that get or lose files. */
    private static Set<String> used(Set<String> touched, Set<String> targets, Store.Holdings held) {
        Set<String> used = new LinkedHashSet<>(touched);
        used.addAll(targets);
        held.files().forEach(file -> used.add(file.directory()));
        used.addAll(held.hollow());
        return used;
    }

    /** The directories whose files are replaced. */
    private static Collection<String> targets(
            CommitPlan plan, Set<String> touched, CommitPlan.Found found, Map<String, String> exchanges) {
        if (plan.overwrite.isNothing()) {
            return found != null && found.replacesUnclaimed() ? found.unclaimed() : List.of();
        } else if (found != null) {
            return found.old();
        } else if (!plan.overwrite.isOfTouched()) {
            return plan.overwrite.directories();
        }
        return exchanges.isEmpty() ? touched : exchanges.values();
    }

    /** The directories that get files. */
    static Set<String> touched(List<StagedFile> files) {
        Set<String> directories = new LinkedHashSet<>();
        files.forEach(f -> directories.add(f.directory()));
        return directories;
    }

    /**
     * Refuses a commit that this process, or the executors that apply parts of a large commit, lack the rights to
     * apply.
     */
    private void requireRights(CommitPlan plan, CommitRecord record) throws IOException {
        List<OldFile> removed = record.isSwap() ? List.of() : record.deleted();
        boolean isDistributed =
                FileChanges.isDistributed(plan.distribution, table, Math.max(removed.size(), plan.files.size()));
        table.store()
                .requireRights(
                        Journal.begin(job),
                        isDistributed ? plan.files.stream().limit(1).toList() : List.of(),
                        removed,
                        plan.files);
    }

    /**
     * Refuses to commit if another program has removed staged files, because a committed job could not publish them.
     */
    private void checkStaged(List<StagedFile> files) throws IOException {
        List<StagedFile> missing = files.isEmpty() ? List.of() : table.store().missing(files);
        if (!missing.isEmpty()) {
            if (table.store().read(Journal.commit(job)) != null) {
                throw Resolution.lost(table, job);
            }
            throw new IOException(missing.size() + " files that job " + job + " on " + table.root()
                    + " had written are gone before its commit, " + StagedFiles.examples(missing)
                    + ": another program has removed them; nothing is committed");
        }
    }

    /** The commit point: writes the record. Throws unless this job is committed. */
    private void decide(byte[] record) throws IOException {
        lease.check();
        hasTried = true;
        boolean written;
        try {
            written = table.store().create(Journal.commit(job), record);
        } catch (NotWrittenException e) {
            hasTried = false;
            throw notWritten("could not write its commit record, and nothing is written: ", e);
        } catch (IOException e) {
            // The record may exist or may still arrive. Try to write "aborted" in its place; the first entry counts.
            try {
                written = Arrays.equals(resolution.abort(job), record);
            } catch (IOException unknown) {
                Failures.add(e, unknown);
                throw new IOException(
                        "it is not known whether job " + job + " on " + table.root()
                                + " is committed; recovery decides",
                        e);
            }
            if (!written) {
                throw e;
            }
        }
        if (!written) {
            throw Resolution.lost(table, job);
        }
    }

    /** The files of a commit, grouped by directory on request. */
    private record Draft(Store store, List<StagedFile> files, List<OldFile> old, List<OldFile> forgotten)
            implements CommitDraft {
        @Override
        public Map<String, Totals> added() {
            Map<String, Totals> totals = new HashMap<>();
            files.forEach(f -> totals.merge(f.directory(), new Totals(1, f.bytes()), Totals::plus));
            return totals;
        }

        @Override
        public Map<String, Totals> deleted() {
            return totals(old);
        }

        @Override
        public Map<String, Totals> present(Collection<String> directories) throws IOException {
            Set<OldFile> files = new HashSet<>(store.list(directories, false));
            forgotten.forEach(files::remove);
            old.forEach(files::remove);
            return totals(files);
        }

        private static Map<String, Totals> totals(Collection<OldFile> files) {
            Map<String, Totals> totals = new HashMap<>();
            files.forEach(f -> totals.merge(f.directory(), new Totals(1, f.bytes()), Totals::plus));
            return totals;
        }
    }
}
