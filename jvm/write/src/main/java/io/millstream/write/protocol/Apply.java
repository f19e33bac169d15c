package io.millstream.write.protocol;

import io.millstream.write.protocol.CommitPlan.Phase;
import io.millstream.write.protocol.Ending.Outcome;
import io.millstream.write.store.Causes;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries out a commit record: publishes, deletes, updates the metastore, and marks the job as done. Any process may
 * repeat any step at any time, so no process needs to know how far another one got. Two journal entries are written
 * once, by the first process to do so ({@link JobEntries}): that all files are published, before any old file is
 * deleted, and how the job ended.
 *
 * <p>Programs that do not know the journal may interfere. Before it publishes files, Apply checks whether another
 * program has replaced the old files; at the end, it checks whether one has removed the published files.
 */
final class Apply {
    private static final Logger LOG = LoggerFactory.getLogger(Apply.class);

    /** Who carries out the commit. */
    enum Role {
        /** The job itself, which has just listed the old files and reports the result to its user. */
        OWNER,
        /** Another process, at any later time, concurrently with the owner or after its death. */
        HELPER
    }

    private final TableAccess table;
    private final String job;
    private final CommitRecord record;
    private final Phases phases;
    private final Role role;
    private final JobEntries entries;
    private final OtherWriters others;
    private final FileChanges changes;
    private final CatalogUpdate catalog;

    Apply(
            TableAccess table,
            String job,
            CommitRecord record,
            CommitPlan.Distribution distribution,
            Phases phases,
            Role role) {
        this.table = table;
        this.job = job;
        this.record = record;
        this.phases = phases;
        this.role = role;
        entries = new JobEntries(table, job, record);
        others = new OtherWriters(table, record);
        changes = new FileChanges(table, job, record, entries, distribution, phases);
        catalog = new CatalogUpdate(table, job, record, entries, phases);
    }

    /**
     * Carries out all steps that are not done yet.
     *
     * @return how the job ended, whichever process ended it
     * @throws IOException if something is left to do
     */
    Ending run() throws IOException {
        try {
            Publication publication = publication();
            entries.check();
            if (publication.isRevoked()) {
                takeBack();
                return entries.end(new Ending(Outcome.REVOKED, whyRevoked()));
            }
            CommitRecord rest = record.without(publication.without());
            withdraw(publication.withdrawn());
            if (record.isSwap()) {
                catalog.update(rest);
                if (rest.hasReplaced() && catalog.untold().isEmpty()) {
                    table.store().replace(Journal.replaced(job), Journal.NOTHING);
                }
            } else {
                if (rest.isExchange()) {
                    exchange(rest);
                } else {
                    changeInPlace(rest);
                }
                table.store().removeHollow(emptied(rest), record.overwritten(), Journal::isDone);
            }
            catalog.makeEmptyDirectories(rest);
            persistAndInvalidate(rest);
            return entries.end(ending(publication, rest));
        } catch (JobEntries.FinishedByAnother e) {
            LOG.warn("Job {} on {} has been finished by another process", job, table.root());
            removeLateDecision(e.ending);
            return e.ending;
        } catch (JournalGoneException e) {
            removeLateDecision(null);
            throw e;
        }
    }

    /**
     * Ends a job that cannot be finished. An overwrite that has not deleted any old file is revoked; the files of an
     * INSERT INTO are published as far as possible.
     *
     * @param cause why it cannot be finished
     * @return one line for each loss and each step left undone
     * @throws IOException if even that cannot be done
     */
    List<String> giveUp(IOException cause) throws IOException {
        List<String> lines = new ArrayList<>();
        byte[] made = table.store().read(Journal.published(job));
        Publication publication = made != null
                ? readable(made)
                : entries.decide(new Publication(record.kind() == Journal.Kind.OVER, List.of(), List.of(), List.of()));
        if (publication.isRevoked()) {
            record.added().forEach(file -> lines.add("lost " + file + ", " + file.bytes() + " bytes"));
            takeBack();
        } else {
            for (StagedFile file : record.without(publication.without()).added()) {
                boolean isFound = publishIfPossible(file) && !record.isSwap();
                if (isFound && record.isExchange() && !isInPlace(file)) {
                    lines.add("lost " + file.in(record.destination(file)) + ", " + file.bytes()
                            + " bytes, which no reader finds at its current location: " + file);
                } else if (!isFound) {
                    lines.add((record.isSwap() ? "possibly lost, because the catalog may not point to it: " : "lost ")
                            + file + ", " + file.bytes() + " bytes");
                }
            }
            if (made != null && !record.isSwap()) {
                table.unchanged(record.deleted()).forEach(file -> lines.add("not deleted " + file));
            }
            if (record.change() != null) {
                lines.add("possibly not recorded in the metastore: "
                        + record.change().database() + "." + record.change().table());
            }
            table.store().discard(table.store().leftovers(record.below(), job::equals));
        }
        lines.add("cause: " + Causes.text(cause));
        entries.end(new Ending(
                Outcome.LOST, "job " + job + " of " + record.owner() + " was given up: " + String.join("; ", lines)));
        return lines;
    }

    /**
     * The decision in the entry. If it cannot be read, the safe assumption is that all files are published, because old
     * files may then have been deleted.
     */
    private static Publication readable(byte[] made) {
        try {
            return Publication.of(made);
        } catch (IOException e) {
            return Publication.ALL;
        }
    }

    /** Whether readers find the file; false also if this cannot be determined. */
    private boolean isInPlace(StagedFile file) {
        try {
            return table.store()
                    .unpublished(List.of(file.in(record.destination(file))))
                    .isEmpty();
        } catch (IOException e) {
            LOG.warn("Cannot check whether readers find {} of job {}", file, job, e);
            return false;
        }
    }

    private boolean publishIfPossible(StagedFile file) {
        try {
            return StagedFiles.publish(table.store(), file, record.exchanges());
        } catch (IOException e) {
            LOG.warn("Cannot publish {} of job {}", file, job, e);
            return false;
        }
    }

    /** As {@link OtherWriters#superseded}. */
    Set<String> superseded() throws IOException {
        return others.superseded();
    }

    /** Publishes the files and records this decision, or finds that another process has decided. */
    private Publication publication() throws IOException {
        byte[] made = role == Role.HELPER ? table.store().read(Journal.published(job)) : null;
        if (made != null) {
            return publishedAgain(Publication.of(made));
        }
        if (entries.isEmptied()) {
            return entries.decide(new Publication(true, List.of(), List.of(), List.of()));
        }
        Set<String> superseded = phases.time(Phase.LIST, others::superseded);
        List<StagedFile> files = record.without(superseded).added();
        // A helper that cannot publish all files publishes none: readers keep seeing the old ones.
        List<StagedFile> missing = role == Role.HELPER ? changes.missing(files) : List.of();
        if (missing.isEmpty()) {
            missing = phases.time(Phase.PUBLISH, () -> changes.publish(files));
        }
        if (!missing.isEmpty()) {
            made = table.store().read(Journal.published(job));
            if (made != null) {
                return Publication.of(made);
            }
            entries.check();
            if (role == Role.HELPER) {
                throw new IOException(StagedFiles.missing(table.root(), missing) + hintOfRename());
            }
            LOG.error("Job {} revokes its commit: {}", job, StagedFiles.missing(table.root(), missing));
        }
        Set<String> withdrawn =
                missing.isEmpty() ? phases.time(Phase.LIST, () -> others.overwrittenMeanwhile(superseded)) : Set.of();
        Publication mine = new Publication(
                !missing.isEmpty(), List.copyOf(superseded), List.copyOf(withdrawn), List.copyOf(others.mixed()));
        Publication decided = phases.time(Phase.RECORD, () -> entries.decide(mine));
        // The other process found directories overwritten to which this one has published since.
        withdraw(decided.superseded().stream()
                .filter(directory -> !superseded.contains(directory))
                .toList());
        return decided;
    }

    /**
     * Publishes what is staged although the entry says that all is published: after a power failure, a file system may
     * have kept the entry and lost the renames that came before it.
     */
    private Publication publishedAgain(Publication publication) throws IOException {
        if (!publication.isRevoked() && !record.isSwap() && !record.isExchange()) {
            changes.publish(record.without(publication.without()).added());
        }
        return publication;
    }

    /** Removes the job's published files from directories that another program has overwritten meanwhile. */
    private void withdraw(List<String> directories) throws IOException {
        if (!directories.isEmpty()) {
            table.store()
                    .delete(visible(record.added().stream()
                            .filter(file -> directories.contains(record.destination(file)))
                            .toList()));
        }
    }

    private static List<OldFile> visible(List<StagedFile> files) {
        return files.stream()
                .map(file -> new OldFile(file.directory(), file.name(), file.bytes(), 0))
                .toList();
    }

    /**
     * Removes the decision of a late helper, which read the commit record just before the job's own driver removed the
     * record and the decision.
     *
     * @param ending of the job; null if it is no longer known
     */
    private void removeLateDecision(Ending ending) throws IOException {
        boolean isNeeded = ending != null && ending.outcome() == Outcome.SUPERSEDED;
        if (entries.hasDecided() && role == Role.HELPER && !isNeeded) {
            table.store().remove(List.of(Journal.published(job)));
        }
    }

    /**
     * Revokes a commit that cannot be carried out and has deleted no old file: removes the files that have become
     * visible.
     */
    private void takeBack() throws IOException {
        table.store().delete(visible(record.added()));
        table.store().discard(table.store().leftovers(record.below(), job::equals));
        table.store().removeEmptyTree(SwapDirectories.root(job));
    }

    private void exchange(CommitRecord rest) throws IOException {
        List<OldFile> old = table.unchanged(rest.deleted());
        Exchanges exchanges = new Exchanges(table, job, rest, entries::isFinished);
        if (!phases.time(Phase.PUBLISH, exchanges::run)) {
            entries.check();
            throw new IOException("directories of job " + job + " on " + table.root()
                    + " could not be exchanged, because the job's begin entry is gone");
        }
        others.addMixed(exchanges.mixed());
        catalog.update(rest);
        List<OldFile> elsewhere =
                old.stream().filter(file -> !exchanges.concerns(file)).toList();
        phases.time(
                Phase.DELETE,
                () -> changes.delete(Stream.concat(exchanges.replaced().stream(), elsewhere.stream())
                        .toList()));
        exchanges.dissolve();
    }

    private void changeInPlace(CommitRecord rest) throws IOException {
        // Old files that another program has rewritten stay. Directories that are not replaced as a whole were not
        // listed into `seen`.
        List<OldFile> old = others.seen().isEmpty()
                ? table.unchanged(rest.deleted())
                : rest.deleted().stream()
                        .filter(file -> others.seen().contains(file) || !isInTarget(file.directory()))
                        .toList();
        phases.time(Phase.DELETE, () -> changes.delete(old));
        catalog.update(rest);
    }

    private boolean isInTarget(String directory) {
        return record.targets().stream().anyMatch(target -> CommitRecord.isIn(directory, target));
    }

    /**
     * Makes the changed directories durable and visible to other clients before the job's journal entries are removed.
     */
    private void persistAndInvalidate(CommitRecord rest) throws IOException {
        Set<String> changed = new HashSet<>();
        rest.added().forEach(f -> changed.add(rest.destination(f)));
        if (!record.isSwap()) {
            rest.deleted().forEach(f -> changed.add(f.directory()));
        }
        table.store().persist(changed);
        table.store().invalidateListings(changed);
    }

    /** How the job ends, after a check that the table is in the state that the job has produced. */
    private Ending ending(Publication publication, CommitRecord rest) throws IOException {
        List<StagedFile> gone = table.store()
                .unpublished(rest.added().stream()
                        .map(file -> file.in(rest.destination(file)))
                        .toList());
        if (!gone.isEmpty()) {
            entries.check();
            return new Ending(
                    Outcome.LOST,
                    gone.size() + " of the " + rest.added().size() + " files of job " + job + " on " + table.root()
                            + ", " + StagedFiles.examples(gone)
                            + ", were removed by another program after they were published: the statement is committed, but their rows"
                            + " are missing");
        }
        if (!publication.without().isEmpty()) {
            String what = "job " + job + " of " + record.owner() + " on " + table.root()
                    + " is committed, but another program has written to "
                    + String.join(", ", new TreeSet<>(publication.without()))
                    + " after the job had listed the files that it replaces: the rows there are that program's, and ";
            return kept(record, new HashSet<>(publication.superseded())).isEmpty()
                    ? new Ending(Outcome.LOST, what + "the job's are gone")
                    : new Ending(
                            Outcome.SUPERSEDED,
                            what
                                    + "the job's are kept hidden: `millstream recover --superseded=apply` puts them in place,"
                                    + " --superseded=drop removes them");
        }
        others.addMixed(publication.mixed());
        if (!others.mixed().isEmpty()) {
            return new Ending(
                    Outcome.MIXED,
                    "job " + job + " of " + record.owner() + " on " + table.root()
                            + " is committed, but another program has written"
                            + " to " + String.join(", ", others.mixed())
                            + " at the same time: the rows of both remain, and it is unknown whether either should replace"
                            + " the other's");
        }
        return catalog.untold().isEmpty() ? Ending.DONE : new Ending(Outcome.LOST, catalog.untold());
    }

    /** The job's files for directories that another program overwrote first, as far as they are still staged. */
    List<StagedFile> kept(CommitRecord whole, Set<String> superseded) throws IOException {
        Set<String> partitions =
                superseded.stream().map(SwapDirectories::partition).collect(Collectors.toSet());
        List<StagedFile> files = whole.added().stream()
                .filter(file -> partitions.contains(SwapDirectories.partition(whole.destination(file))))
                .toList();
        Set<StagedFile> gone =
                files.isEmpty() ? Set.of() : new HashSet<>(table.store().missing(files));
        return files.stream().filter(file -> !gone.contains(file)).toList();
    }

    private String whyRevoked() throws IOException {
        String what = entries.isEmptied()
                ? "another program has truncated, dropped or overwritten " + table.root() + " just before job " + job
                        + " of " + record.owner() + " committed to it; nothing is written"
                : "files that job " + job + " of " + record.owner() + " had written to " + table.root()
                        + " were removed by another program before they were published; nothing is written, and the table is unchanged";
        return what + ". The statement can be run again";
    }

    /** An incomplete upload is bound to the table's name at the time of writing. */
    private String hintOfRename() throws IOException {
        return record.root().equals(table.rootAs(record.root()))
                ? ""
                : ", or the table has since been renamed from " + record.root()
                        + ": incomplete uploads can only be published under that name; rename the table back, recover it, and rename it again";
    }

    /** Directories that have lost their files, or had none, and get no new ones. */
    private static Set<String> emptied(CommitRecord rest) {
        Set<String> directories = new HashSet<>();
        rest.deleted().forEach(f -> directories.add(f.directory()));
        directories.addAll(rest.hollow());
        rest.added().forEach(f -> directories.remove(rest.destination(f)));
        return directories;
    }
}
