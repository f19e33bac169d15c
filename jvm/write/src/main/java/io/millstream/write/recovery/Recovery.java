package io.millstream.write.recovery;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.protocol.DirectJob;
import io.millstream.write.protocol.Failures;
import io.millstream.write.protocol.Finding;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.protocol.Journal;
import io.millstream.write.protocol.Lease;
import io.millstream.write.protocol.Pointer;
import io.millstream.write.protocol.ReplacedFiles;
import io.millstream.write.protocol.Resolution;
import io.millstream.write.protocol.TableAccess;
import io.millstream.write.protocol.ThisProcess;
import io.millstream.write.store.Store;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Implements {@code millstream recover}: resolves the jobs that drivers have left on a table. Committed jobs are
 * finished; the files of other dead jobs are removed.
 */
public final class Recovery {
    /** What to do with kept files for directories that another program overwrote first. */
    public enum Superseded {
        KEEP,
        APPLY,
        DROP
    }

    /**
     * The user's choices.
     *
     * @param run whether to change anything
     * @param acceptsLoss whether to end committed jobs that cannot be finished, and report the losses
     * @param superseded what to do with kept files for directories that another program overwrote first
     */
    public record Choices(Run run, boolean acceptsLoss, Superseded superseded) {
        /** Accepts no loss and keeps superseded files. */
        public static Choices of(Run run) {
            return new Choices(run, false, Superseded.KEEP);
        }
    }

    private final TableAccess table;
    private final Choices choices;
    private final Resolution resolution;
    private final ReplacedFiles replaced;

    private Recovery(TableAccess table, Choices choices) {
        this.table = table;
        this.choices = choices;
        this.resolution = new Resolution(table);
        this.replaced = new ReplacedFiles(table);
    }

    /**
     * Resolves the jobs of a table.
     *
     * @param table its root
     * @param conf of the file system, with {@code WriteOptions}
     * @param metastore for jobs that have committed; without one (null), such a job is an error
     * @param choices the user's choices
     * @return a finding for each job in the journal that is not completely over
     * @throws IOException if the table cannot be reached, or a job cannot be resolved; the others are resolved anyway
     */
    public static List<Finding> recover(Path table, Configuration conf, Metastore metastore, Choices choices)
            throws IOException {
        TableAccess access = TableAccess.of(table, conf, metastore);
        List<Finding> findings = new ArrayList<>();
        Failures failures = new Failures();
        failures.in(() -> findings.addAll(recover(access, choices)));
        for (String job : Journal.of(access.store()).jobsBelow()) {
            failures.in(() -> findings.addAll(below(access, job, conf, choices)));
        }
        failures.check();
        return findings;
    }

    /**
     * The same for the journal of a part of the table to which a job has written by its path. Live jobs are reported
     * only for the table that the user named.
     */
    private static List<Finding> below(TableAccess table, String job, Configuration conf, Choices choices)
            throws IOException {
        Path root = Pointer.root(table, job);
        if (root == null) {
            return List.of();
        }
        TableAccess part = TableAccess.of(root, conf, table.metastore());
        List<Finding> findings = recover(part, choices).stream()
                .filter(found -> found.verdict() != Verdict.ALIVE)
                .toList();
        if (choices.run() == Run.REAL) {
            Pointer.removeOutdated(table, part, job);
        }
        return findings;
    }

    /** The same for a table that is already open. */
    public static List<Finding> recover(TableAccess table, Choices choices) throws IOException {
        Recovery recovery = new Recovery(table, choices);
        if (choices.run() == Run.DRY) {
            return recovery.run(Journal.of(table.store()).at(System.currentTimeMillis()));
        }
        String own = "recovery-" + UUID.randomUUID();
        // The new entry's time is the current time by the store's clock.
        table.store()
                .begin(
                        Journal.begin(own),
                        new Journal.Begin(ThisProcess.owner(), table.options().leaseMillis, "").toBytes());
        Lease lease = new Lease(table, own);
        try {
            return recovery.run(Journal.of(table.store()).without(own));
        } finally {
            lease.end();
            table.store().remove(Journal.liveEntries(own));
        }
    }

    private List<Finding> run(Journal journal) throws IOException {
        List<Finding> findings = new ArrayList<>();
        Failures failures = new Failures();
        for (Journal.Job job : journal.jobs()) {
            failures.in(() -> {
                if (!job.isFinished()) {
                    findings.addAll(unfinished(journal, job));
                } else if (job.hasBegun() && choices.run() == Run.REAL) {
                    table.store().remove(Journal.liveEntries(job.id));
                }
                if (job.isSuperseded()) {
                    findings.add(superseded(job.id));
                } else if (job.isFinished() && replaced.isRemovable(journal, job)) {
                    findings.add(replaced.remove(job.id, choices.run()));
                }
            });
        }
        failures.in(() -> findings.addAll(orphans()));
        failures.check();
        return findings;
    }

    private List<Finding> unfinished(Journal journal, Journal.Job job) throws IOException {
        boolean isCommitted = resolution.isCommitted(job);
        if (!isCommitted && !job.hasBegun()) {
            return List.of(); // it was aborted
        } else if (!isCommitted && !resolution.isDead(journal, job)) {
            return List.of(alive(journal, job));
        }
        try {
            return List.of(
                    isCommitted && choices.run() == Run.REAL
                            ? resolution.finish(job.id)
                            : resolution.examine(job.id, choices.run()));
        } catch (IOException e) {
            if (!isCommitted
                    || !choices.acceptsLoss()
                    || choices.run() == Run.DRY
                    || !resolution.isDead(journal, job)) {
                throw e;
            }
            return List.of(resolution.giveUp(job.id, e));
        }
    }

    private Finding alive(Journal journal, Journal.Job job) throws IOException {
        byte[] content = table.store().read(Journal.begin(job.id));
        if (content == null) {
            return new Finding(job.id, "unknown", Verdict.ALIVE, List.of());
        }
        Journal.Begin begin = Journal.Begin.of(content, table.options().leaseMillis);
        long silentMillis = Math.max(0, journal.nowMillis() - job.lastRenewalMillis());
        return new Finding(
                job.id,
                begin.owner(),
                Verdict.ALIVE,
                List.of(String.format(
                        "lease renewed %d s ago; dead after %d s without renewal",
                        silentMillis / 1000, begin.leaseMillis() / 1000)));
    }

    private Finding superseded(String job) throws IOException {
        Resolution.Superseded kept = resolution.superseded(job);
        List<String> steps = new ArrayList<>();
        kept.files()
                .forEach(file ->
                        steps.add(choices.superseded() == Superseded.APPLY ? "publish " + file : "keep " + file));
        if (choices.superseded() == Superseded.APPLY && !kept.gone().isEmpty()) {
            // All are gone if they were applied before; some if another program has removed them.
            if (!kept.files().isEmpty()
                    || !table.store().unpublished(kept.gone()).isEmpty()) {
                throw new IOException(
                        kept.gone().size() + " of the kept files of job " + job + " on " + table.root() + ", such as "
                                + kept.gone().get(0)
                                + ", are gone, so they cannot replace the current files; nothing is changed; --superseded=drop removes the rest");
            }
        } else if (choices.superseded() == Superseded.APPLY && choices.run() == Run.REAL) {
            try (DirectJob again = DirectJob.begin(table, UUID.randomUUID().toString(), "")) {
                try {
                    again.commit(kept.plan());
                } catch (IOException e) {
                    again.abort();
                    throw e;
                }
            }
        }
        if (choices.superseded() != Superseded.KEEP) {
            List<String> removed = resolution.dropSuperseded(job, choices.run());
            if (choices.superseded() == Superseded.DROP) {
                steps.clear();
                steps.addAll(removed);
            }
        }
        return new Finding(job, kept.owner(), Verdict.SUPERSEDED, steps);
    }

    /** Removes staged files of jobs that are over, or no longer in the journal. */
    private List<Finding> orphans() throws IOException {
        Store store = table.store();
        Set<String> over = new HashSet<>(jobs().get(true));
        List<Store.Leftover> leftovers =
                store.leftovers("", job -> store.leftoversNameTheirJobs() || over.contains(job));
        // Listed after the files, so that a job that began meanwhile is included.
        Set<String> open = new HashSet<>(jobs().get(false));
        List<Store.Leftover> unknown =
                leftovers.stream().filter(found -> !open.contains(found.job())).toList();
        Map<String, List<Store.Leftover>> orphans = store.withoutOtherRoots(unknown).stream()
                .collect(Collectors.groupingBy(Store.Leftover::job, TreeMap::new, Collectors.toList()));
        List<Finding> findings = new ArrayList<>();
        for (Map.Entry<String, List<Store.Leftover>> orphan : orphans.entrySet()) {
            if (choices.run() == Run.REAL) {
                store.discard(orphan.getValue());
            }
            findings.add(
                    new Finding(orphan.getKey(), "unknown", Verdict.LEFTOVERS, Resolution.removals(orphan.getValue())));
        }
        return findings;
    }

    /** The jobs in the journal, by whether their staged files are no longer needed. */
    private Map<Boolean, List<String>> jobs() throws IOException {
        Map<Boolean, List<String>> jobs = Map.of(true, new ArrayList<>(), false, new ArrayList<>());
        for (Journal.Job job : Journal.of(table.store()).jobs()) {
            jobs.get(isOver(job)).add(job.id);
        }
        return jobs;
    }

    /** Whether a job's staged files are no longer needed. */
    private boolean isOver(Journal.Job job) throws IOException {
        return job.isFinished() ? !job.isSuperseded() : !job.hasBegun() && !resolution.isCommitted(job);
    }
}
