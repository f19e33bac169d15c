package io.millstream.write.protocol;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.protocol.CommitPlan.Phase;
import io.millstream.write.protocol.Ending.Outcome;
import io.millstream.write.store.Causes;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries out a commit record: publishes, deletes, updates the metastore, and marks the job as done. Any process may
 * repeat any step at any time, so no process needs to know how far another one got. Two journal entries are written
 * once, by the first process to do so: that all files are published, before any old file is deleted
 * ({@link Publication}), and how the job ended ({@link Ending}).
 *
 * <p>Programs that do not know the journal may interfere. Before it publishes files, Apply checks whether another
 * program has replaced the old files; at the end, it checks whether one has removed the published files.
 */
final class Apply {
    private static final Logger LOG = LoggerFactory.getLogger(Apply.class);
    private static final int BATCH_FILES = 1000;
    /** Enough for 64 requests of S3's bulk deletion at once. */
    private static final int DELETED_AT_ONCE = 16_000;

    /** Who carries out the commit. */
    enum Role {
        /** The job itself, which has just listed the old files and reports the result to its user. */
        OWNER,
        /** Another process, at any later time, concurrently with the owner or after its death. */
        HELPER
    }

    /** Another process has finished the job. */
    private static final class FinishedByAnother extends IOException {
        private static final long serialVersionUID = 1;

        private final transient Ending ending;

        FinishedByAnother(Ending ending) {
            this.ending = ending;
        }
    }

    private final TableAccess table;
    private final String job;
    private final CommitRecord record;
    private final CommitPlan.Distribution distribution;
    private final Phases phases;
    private final Role role;
    /** Why the catalog was not changed; empty if it was, or needs no change. */
    private String untold = "";
    /**
     * Directories that hold another program's files as well as the job's; that program may have meant to replace the
     * job's.
     */
    private final Set<String> mixed = new TreeSet<>();
    /** Whether the decision in the journal is that of this process. */
    private boolean hasDecided;
    /** The files found by the last listing of the directories whose files are replaced. */
    private Set<OldFile> seen = Set.of();

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
        this.distribution = distribution;
        this.phases = phases;
        this.role = role;
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
            check();
            if (publication.isRevoked()) {
                takeBack();
                return end(new Ending(Outcome.REVOKED, whyRevoked()));
            }
            CommitRecord rest = record.without(publication.without());
            withdraw(publication.withdrawn());
            if (record.isSwap()) {
                updateMetastore(rest);
                if (rest.hasReplaced() && untold.isEmpty()) {
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
            makeEmptyDirectories(rest);
            persistAndInvalidate(rest);
            return end(ending(publication, rest));
        } catch (FinishedByAnother e) {
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
                : decide(new Publication(record.kind() == Journal.Kind.OVER, List.of(), List.of(), List.of()));
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
        end(new Ending(
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

    /**
     * The files of a directory that the job writes to or empties.
     *
     * @param found the files that a reader sees
     * @param old the files that the job replaces
     * @param own names of the files that the job puts there
     */
    private record Contents(Set<OldFile> found, Set<OldFile> old, Set<String> own) {
        private boolean hasForeign() {
            return !(old.isEmpty() && own.isEmpty())
                    && found.stream().anyMatch(file -> !old.contains(file) && !own.contains(file.name()));
        }

        /**
         * The job deletes nothing until all its files are published, so if an old file is missing before that, another
         * program has replaced or removed it.
         */
        private boolean hasLost() {
            return !found.containsAll(old);
        }

        /** In a directory without old files, an INSERT INTO and an overwrite by another program look the same. */
        private boolean isMixed() {
            return hasForeign() && old.isEmpty();
        }

        private boolean hasOwn() {
            return found.stream().anyMatch(file -> own.contains(file.name()));
        }
    }

    private Map<String, Contents> contents() throws IOException {
        if (record.targets().isEmpty()) {
            return Map.of();
        }
        seen = new HashSet<>(table.store().list(new LinkedHashSet<>(record.targets()), true));
        Map<String, Set<OldFile>> found = byDirectory(seen);
        Map<String, Set<OldFile>> old = byDirectory(record.deleted());
        Map<String, Set<String>> own = new HashMap<>();
        // A swap's new files are in other directories; map each to the old directory that the catalog replaces with it.
        Map<String, String> replaced = new HashMap<>();
        old.keySet().forEach(directory -> replaced.put(SwapDirectories.partition(directory), directory));
        record.added().forEach(file -> {
            String directory = record.isSwap()
                    ? replaced.getOrDefault(SwapDirectories.partition(file.directory()), "")
                    : record.destination(file);
            own.computeIfAbsent(directory, key -> new HashSet<>()).add(file.name());
        });
        Map<String, Contents> contents = new HashMap<>();
        Stream.concat(found.keySet().stream(), old.keySet().stream())
                .distinct()
                .forEach(directory -> contents.put(
                        directory,
                        new Contents(
                                found.getOrDefault(directory, Set.of()),
                                old.getOrDefault(directory, Set.of()),
                                own.getOrDefault(directory, Set.of()))));
        return contents;
    }

    private static Map<String, Set<OldFile>> byDirectory(Collection<OldFile> files) {
        return files.stream().collect(Collectors.groupingBy(OldFile::directory, Collectors.toSet()));
    }

    /**
     * Directories that another program has overwritten before the job published anything there; the job's files must
     * not appear there. Foreign files next to all of the old ones come from an INSERT INTO, and stay next to the job's.
     */
    Set<String> superseded() throws IOException {
        Set<String> superseded = new TreeSet<>();
        contents().forEach((directory, contents) -> {
            if (!contents.hasOwn() && (contents.hasLost() || contents.isMixed())) {
                superseded.add(directory);
            }
        });
        return superseded;
    }

    /** Publishes the files and records this decision, or finds that another process has decided. */
    private Publication publication() throws IOException {
        byte[] made = role == Role.HELPER ? table.store().read(Journal.published(job)) : null;
        if (made != null) {
            return publishedAgain(Publication.of(made));
        }
        if (isEmptied()) {
            return decide(new Publication(true, List.of(), List.of(), List.of()));
        }
        Set<String> superseded = phases.time(Phase.LIST, this::superseded);
        List<StagedFile> files = record.without(superseded).added();
        // A helper that cannot publish all files publishes none: readers keep seeing the old ones.
        List<StagedFile> missing = role == Role.HELPER ? missing(files) : List.of();
        if (missing.isEmpty()) {
            missing = phases.time(Phase.PUBLISH, () -> publish(files));
        }
        if (!missing.isEmpty()) {
            made = table.store().read(Journal.published(job));
            if (made != null) {
                return Publication.of(made);
            }
            check();
            if (role == Role.HELPER) {
                throw new IOException(StagedFiles.missing(table.root(), missing) + hintOfRename());
            }
            LOG.error("Job {} revokes its commit: {}", job, StagedFiles.missing(table.root(), missing));
        }
        Set<String> withdrawn =
                missing.isEmpty() ? phases.time(Phase.LIST, () -> overwrittenMeanwhile(superseded)) : Set.of();
        Publication mine = new Publication(
                !missing.isEmpty(), List.copyOf(superseded), List.copyOf(withdrawn), List.copyOf(mixed));
        Publication decided = phases.time(Phase.RECORD, () -> decide(mine));
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
            publish(record.without(publication.without()).added());
        }
        return publication;
    }

    /**
     * Directories that another program has overwritten while the job published. That program's rows must stay alone
     * there, because each of the two replaces the other's. The result is valid only until the decision is recorded,
     * since old files may be deleted after that; it becomes part of the decision.
     */
    private Set<String> overwrittenMeanwhile(Set<String> superseded) throws IOException {
        Set<String> overwritten = new TreeSet<>();
        contents().forEach((directory, contents) -> {
            if (!superseded.contains(directory) && contents.hasForeign() && contents.hasLost()) {
                overwritten.add(directory);
            } else if (!superseded.contains(directory) && contents.isMixed()) {
                mixed.add(directory);
            }
        });
        return overwritten;
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

    private Publication decide(Publication mine) throws IOException {
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

    /**
     * Removes the decision of a late helper, which read the commit record just before the job's own driver removed the
     * record and the decision.
     *
     * @param ending of the job; null if it is no longer known
     */
    private void removeLateDecision(Ending ending) throws IOException {
        boolean isNeeded = ending != null && ending.outcome() == Outcome.SUPERSEDED;
        if (hasDecided && role == Role.HELPER && !isNeeded) {
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
        Exchanges exchanges = new Exchanges(table, job, rest, this::isFinished);
        if (!phases.time(Phase.PUBLISH, exchanges::run)) {
            check();
            throw new IOException("directories of job " + job + " on " + table.root()
                    + " could not be exchanged, because the job's begin entry is gone");
        }
        mixed.addAll(exchanges.mixed());
        updateMetastore(rest);
        List<OldFile> elsewhere =
                old.stream().filter(file -> !exchanges.concerns(file)).toList();
        phases.time(
                Phase.DELETE,
                () -> delete(Stream.concat(exchanges.replaced().stream(), elsewhere.stream())
                        .toList()));
        exchanges.dissolve();
    }

    private void changeInPlace(CommitRecord rest) throws IOException {
        // Old files that another program has rewritten stay. Directories that are not replaced as a whole were not
        // listed into `seen`.
        List<OldFile> old = seen.isEmpty()
                ? table.unchanged(rest.deleted())
                : rest.deleted().stream()
                        .filter(file -> seen.contains(file) || !isInTarget(file.directory()))
                        .toList();
        phases.time(Phase.DELETE, () -> delete(old));
        updateMetastore(rest);
    }

    private boolean isInTarget(String directory) {
        return record.targets().stream().anyMatch(target -> CommitRecord.isIn(directory, target));
    }

    private void makeEmptyDirectories(CommitRecord rest) throws IOException {
        Set<String> empty = withoutFiles(rest, untold.isEmpty(), root());
        if (!empty.isEmpty()) {
            table.store().makeDirectories(empty);
        }
    }

    /**
     * Directories that readers expect even if nothing was written: the table's, and those of partitions without rows.
     *
     * @param isRegistered whether the catalog has the partitions
     * @param now the table's directory now, which may not be that of the record
     */
    private static Set<String> withoutFiles(CommitRecord rest, boolean isRegistered, String now) {
        Set<String> filled = rest.added().stream().map(rest::destination).collect(Collectors.toSet());
        Set<String> empty = new HashSet<>();
        if (filled.isEmpty()) {
            empty.add("");
        }
        if (rest.change() != null && isRegistered) {
            String root = new Path(now).toUri().getPath();
            for (MetastoreChange.Partition partition :
                    rest.change().moved(rest.root(), now).partitions()) {
                String path = partition.location() == null
                        ? root + "/" + partition.name()
                        : new Path(partition.location()).toUri().getPath();
                String directory = path.startsWith(root + "/") ? path.substring(root.length() + 1) : path;
                if (!filled.contains(directory)) {
                    empty.add(directory);
                }
            }
        }
        return empty;
    }

    /** The directories below the table's that this class creates, apart from those of new files. */
    static Set<String> madeLater(CommitRecord record) {
        Set<String> made = withoutFiles(record, true, record.root());
        if (record.isSwap()) {
            made.addAll(directories(record.change()));
        }
        made.remove("");
        return made;
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

    /** The table's directory now, which may not be that of the record. */
    private String root() throws IOException {
        return table.store().isAlso(record.root())
                ? record.root()
                : table.root().toString();
    }

    private void updateMetastore(CommitRecord rest) throws IOException {
        if (rest.change() == null) {
            return;
        }
        check();
        phases.time(Phase.METASTORE, () -> {
            MetastoreChange change = record.isSwap() || record.isExchange()
                    ? rest.change()
                    : rest.change().without(occupied(rest));
            MetastoreChange current = metastore().current(change.moved(record.root(), root()), table.root());
            if (current == null) {
                untold = record.change().database() + "." + record.change().table()
                        + " is gone, or its name belongs to another table: job " + job + " of "
                        + record.owner() + " is committed, and its files are in "
                        + new Path(table.root(), record.isSwap() ? SwapDirectories.root(job) : ".")
                        + (record.isSwap()
                                ? ", but no table points to them, and the files that they were to replace remain"
                                : ", but no catalog lists its partitions")
                        + "; to register them, run ALTER TABLE … ADD PARTITION or MSCK REPAIR TABLE on the table that owns them now";
                return null;
            }
            if (record.isSwap()) {
                table.store().makeDirectories(directories(current));
            }
            metastore().apply(current, this::isFinished);
            return null;
        });
    }

    /** Partitions to drop that must stay, because another program has put files there since they were listed. */
    private Set<String> occupied(CommitRecord rest) throws IOException {
        Set<String> dropped = new HashSet<>(rest.change().droppedPartitions());
        if (dropped.isEmpty()) {
            return Set.of();
        }
        Set<String> directories = new HashSet<>(dropped);
        rest.deleted().stream()
                .map(OldFile::directory)
                .filter(directory -> dropped.contains(SwapDirectories.partition(directory)))
                .forEach(directories::add);
        return table.store().list(directories, false).stream()
                .map(file -> SwapDirectories.partition(file.directory()))
                .collect(Collectors.toSet());
    }

    /** The directories of a swap: Hive's readers expect one even for a partition without files. */
    private static List<String> directories(MetastoreChange change) {
        Stream<String> ofPartitions = change.partitions().stream().map(MetastoreChange.Partition::location);
        return Stream.concat(
                        ofPartitions,
                        Stream.of(change.emptyDirectory(), change.tableLocation())
                                .filter(Objects::nonNull))
                .filter(Objects::nonNull)
                .map(location -> new Path(location).toUri().getPath())
                .toList();
    }

    private Metastore metastore() throws IOException {
        if (table.metastore() == null) {
            throw new IOException("job " + job + " on " + table.root() + " is committed, and changes "
                    + record.change().database() + "." + record.change().table()
                    + " in the metastore, which is not available here; recover the table by name");
        }
        return table.metastore();
    }

    /** How the job ends, after a check that the table is in the state that the job has produced. */
    private Ending ending(Publication publication, CommitRecord rest) throws IOException {
        List<StagedFile> gone = table.store()
                .unpublished(rest.added().stream()
                        .map(file -> file.in(rest.destination(file)))
                        .toList());
        if (!gone.isEmpty()) {
            check();
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
        mixed.addAll(publication.mixed());
        if (!mixed.isEmpty()) {
            return new Ending(
                    Outcome.MIXED,
                    "job " + job + " of " + record.owner() + " on " + table.root()
                            + " is committed, but another program has written"
                            + " to " + String.join(", ", mixed)
                            + " at the same time: the rows of both remain, and it is unknown whether either should replace"
                            + " the other's");
        }
        return untold.isEmpty() ? Ending.DONE : new Ending(Outcome.LOST, untold);
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

    /** Marks the job as over. If another process has done so, returns its result. */
    private Ending end(Ending mine) throws IOException {
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
    private boolean isFinished() throws IOException {
        return endingByAnother() != null;
    }

    private String whyRevoked() throws IOException {
        String what = isEmptied()
                ? "another program has truncated, dropped or overwritten " + table.root() + " just before job " + job
                        + " of " + record.owner() + " committed to it; nothing is written"
                : "files that job " + job + " of " + record.owner() + " had written to " + table.root()
                        + " were removed by another program before they were published; nothing is written, and the table is unchanged";
        return what + ". The statement can be run again";
    }

    /**
     * Whether another program has emptied the table between the job's begin entry and its commit record, or a rename
     * has separated the two. A job that is over has no record left without a begin entry, unless there is a done mark.
     */
    private boolean isEmptied() throws IOException {
        return table.store().read(Journal.begin(job)) == null
                && mark() == null
                && table.store().read(Journal.commit(job)) != null;
    }

    /** How another process has ended the job; null if none has. Throws as {@link #isFinished}. */
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

    private void check() throws IOException {
        Ending ending = endingByAnother();
        if (ending != null) {
            throw new FinishedByAnother(ending);
        }
    }

    /** Publishes files; returns those that are neither staged nor published. */
    private List<StagedFile> publish(List<StagedFile> files) throws IOException {
        if (isDistributed(distribution, table, files.size())) {
            List<ApplyBatch> batches = slices(files, BATCH_FILES).stream()
                    .map(slice -> new ApplyBatch(table.root(), slice, List.of(), record.exchanges()))
                    .toList();
            try {
                distribute(batches);
                return List.of();
            } catch (IOException e) {
                List<StagedFile> missing = missing(files);
                if (missing.isEmpty()) {
                    throw e;
                }
                return missing;
            }
        }
        List<StagedFile> missing = Collections.synchronizedList(new ArrayList<>());
        AtomicInteger done = new AtomicInteger();
        Parallel.map(table.options().threads, files, file -> {
            if (!StagedFiles.publish(table.store(), file, record.exchanges())) {
                missing.add(file);
            }
            phases.progress(Phase.PUBLISH, done.incrementAndGet(), files.size());
            return null;
        });
        return missing;
    }

    /** Files that are neither staged nor published, and that no other process has published meanwhile. */
    private List<StagedFile> missing(List<StagedFile> files) throws IOException {
        List<StagedFile> unpublished = unpublished(files);
        List<StagedFile> unstaged =
                unpublished.isEmpty() ? List.of() : table.store().missing(unpublished);
        return unstaged.isEmpty() ? List.of() : unpublished(unstaged);
    }

    /**
     * Files that are published neither in the directory where they were staged nor in the one that an exchange moves
     * them to.
     */
    private List<StagedFile> unpublished(List<StagedFile> files) throws IOException {
        List<StagedFile> unpublished = table.store().unpublished(files);
        if (unpublished.isEmpty() || !record.isExchange()) {
            return unpublished;
        }
        Set<String> elsewhere = table
                .store()
                .unpublished(unpublished.stream()
                        .map(file -> file.in(record.destination(file)))
                        .toList())
                .stream()
                .map(StagedFile::toString)
                .collect(Collectors.toSet());
        return unpublished.stream()
                .filter(file ->
                        elsewhere.contains(file.in(record.destination(file)).toString()))
                .toList();
    }

    /** An incomplete upload is bound to the table's name at the time of writing. */
    private String hintOfRename() throws IOException {
        return record.root().equals(root())
                ? ""
                : ", or the table has since been renamed from " + record.root()
                        + ": incomplete uploads can only be published under that name; rename the table back, recover it, and rename it again";
    }

    private void distribute(List<ApplyBatch> batches) throws IOException {
        try {
            distribution.run(batches);
        } catch (Exception e) { // Scala code may throw undeclared exceptions
            check();
            throw new IOException(
                    "the distributed apply of job " + job + " on " + table.root() + " failed: " + Causes.text(e), e);
        }
    }

    private Void delete(List<OldFile> deleted) throws IOException {
        if (isDistributed(distribution, table, deleted.size())) {
            distribute(slices(deleted, BATCH_FILES).stream()
                    .map(files -> new ApplyBatch(table.root(), List.of(), files, Map.of()))
                    .toList());
            return null;
        }
        int done = 0;
        for (List<OldFile> slice : slices(deleted, DELETED_AT_ONCE)) {
            table.store().delete(slice);
            done += slice.size();
            phases.progress(Phase.DELETE, done, deleted.size());
        }
        return null;
    }

    /** Whether other processes publish or delete this number of files. */
    static boolean isDistributed(CommitPlan.Distribution distribution, TableAccess table, int files) {
        return distribution != null && files >= table.options().distributeFiles;
    }

    private static <T> List<List<T>> slices(List<T> all, int size) {
        List<List<T>> slices = new ArrayList<>();
        for (int start = 0; start < all.size(); start += size) {
            slices.add(all.subList(start, Math.min(all.size(), start + size)));
        }
        return slices;
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
