package io.millstream.write.protocol;

import io.millstream.hadoop.natives.NativeExchange.Outcome;
import io.millstream.write.metastore.Metastore;
import io.millstream.write.store.Exchange;
import io.millstream.write.store.Names;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The part of a commit that exchanges each directory created by the job ({@link SwapDirectories}) with its destination
 * directory, which readers list. The old files are then in the job's directory and are deleted there. Files that other
 * programs have added there since the listing are moved back to the destination directory.
 *
 * <p>Like all of {@link Apply}, any process may repeat this at any time: the job's files in a destination directory
 * show that its exchange is done. Where an exchange is not possible, files are moved one by one.
 */
public final class Exchanges {
    private static final Logger LOG = LoggerFactory.getLogger(Exchanges.class);
    private static final long FIRST_PAUSE_MILLIS = 1;
    private static final long LONGEST_PAUSE_MILLIS = 1000;
    /** Every further sweep means that a program has put another file into a directory that is no longer listed. */
    private static final int MAX_SWEEPS = 100;

    private final TableAccess table;
    private final String job;
    private final Metastore.JobState jobState;
    private final Exchange exchange;
    private final Map<String, String> destinations;
    /** New files, by directory of the job. */
    private final Map<String, List<StagedFile>> added;
    /** Old files, by the same key, with their paths after the exchange. */
    private final Map<String, Set<OldFile>> displaced = new HashMap<>();

    private final List<OldFile> inDestinations = new ArrayList<>();
    private final Map<String, String> madeByDestination = new HashMap<>();
    private final List<String> mixed = new ArrayList<>();

    public Exchanges(TableAccess table, String job, CommitRecord record, Metastore.JobState jobState)
            throws IOException {
        this.table = table;
        this.job = job;
        this.jobState = jobState;
        this.exchange = of(table);
        this.destinations = record.exchanges();
        this.added = byDirectory(record.added());
        destinations.forEach((made, destination) -> madeByDestination.put(destination, made));
        for (OldFile file : record.deleted()) {
            String destination = destination(file.directory());
            if (destination != null) {
                String made = madeByDestination.get(destination);
                String directory = made + file.directory().substring(destination.length());
                displaced
                        .computeIfAbsent(made, key -> new HashSet<>())
                        .add(new OldFile(directory, file.name(), file.bytes(), file.modifiedMillis()));
                inDestinations.add(file);
            }
        }
    }

    private static Exchange of(TableAccess table) throws IOException {
        Exchange exchange = table.store().exchange();
        if (exchange == null) {
            throw new IOException("directories of " + table.root() + " cannot be exchanged");
        }
        return exchange;
    }

    private static Map<String, List<StagedFile>> byDirectory(List<StagedFile> files) {
        Map<String, List<StagedFile>> directories = new LinkedHashMap<>();
        files.forEach(file -> directories
                .computeIfAbsent(file.directory(), key -> new ArrayList<>())
                .add(file));
        return directories;
    }

    /**
     * Checks, before the commit is decided, that it can be carried out.
     *
     * @throws IOException if it cannot
     */
    public static void rehearse(TableAccess table, List<StagedFile> files, Map<String, String> destinations)
            throws IOException {
        Exchange exchange = of(table);
        Parallel.map(table.options().threads, byDirectory(files).entrySet(), made -> {
            exchange.rehearse(made.getValue().get(0), destinations.get(made.getKey()));
            return null;
        });
    }

    /** The destination directory that a directory is or is below; null if there is none. */
    private String destination(String directory) {
        String up = directory;
        while (!up.isEmpty() && !madeByDestination.containsKey(up)) {
            up = Names.parent(up);
        }
        return madeByDestination.containsKey(up) ? up : null;
    }

    /** Whether an old file is in a destination directory, and not in a directory that gets no new files. */
    public boolean concerns(OldFile file) {
        return destination(file.directory()) != null;
    }

    /**
     * Exchanges all directories.
     *
     * @return false if another process has finished the job
     * @throws IOException if something is left to do
     */
    public boolean run() throws IOException {
        table.store().persist(added.keySet());
        for (Map.Entry<String, List<StagedFile>> made : added.entrySet()) {
            if (!run(made.getKey(), destinations.get(made.getKey()), made.getValue())) {
                return false;
            }
        }
        // The exchanges must survive a power failure before anything is deleted.
        Set<String> parents = new HashSet<>();
        destinations.forEach(
                (made, destination) -> parents.addAll(List.of(Names.parent(made), Names.parent(destination))));
        table.store().persist(parents);
        return true;
    }

    private boolean run(String made, String destination, List<StagedFile> files) throws IOException {
        table.store().makeDirectories(List.of(destination));
        Outcome outcome = exchange(made, destination, files.get(0).name());
        if (outcome == Outcome.OVER || outcome != Outcome.EXCHANGED && !moveAll(files, destination)) {
            return false;
        }
        exchange.carryOver(job, made, destination, displaced.getOrDefault(made, Set.of()));
        if (outcome != Outcome.DONE_BEFORE && isMixed(made, destination)) {
            mixed.add(destination);
        }
        return true;
    }

    /**
     * Whether another program has overwritten a destination directory after the publication was decided: its files are
     * next to the job's, and either old files are gone, although this protocol has deleted none yet, or there were
     * none.
     */
    private boolean isMixed(String made, String destination) throws IOException {
        Set<OldFile> found = new HashSet<>(table.store().list(List.of(made, destination), true));
        Set<String> own = added.get(made).stream().map(StagedFile::name).collect(Collectors.toSet());
        Set<OldFile> old = displaced.getOrDefault(made, Set.of());
        Set<OldFile> oldInDestination = inDestinations.stream()
                .filter(file -> destination.equals(destination(file.directory())))
                .collect(Collectors.toSet());
        boolean hasForeign = found.stream()
                .anyMatch(file -> destination.equals(destination(file.directory()))
                        && !own.contains(file.name())
                        && !oldInDestination.contains(file));
        boolean hasLost = found.stream()
                        .filter(file -> old.contains(file) || oldInDestination.contains(file))
                        .count()
                < old.size();
        return hasForeign && (hasLost || old.isEmpty());
    }

    /**
     * Destination directories that another program has overwritten after the publication was decided, so that they hold
     * the rows of both.
     */
    List<String> mixed() {
        return mixed;
    }

    /** The outcome of an exchange; null if it is not possible. */
    private Outcome exchange(String made, String destination, String witness) throws IOException {
        LongWait wait = new LongWait(table);
        for (long pauseMillis = FIRST_PAUSE_MILLIS; ; pauseMillis = Math.min(2 * pauseMillis, LONGEST_PAUSE_MILLIS)) {
            Outcome outcome = tryExchange(made, destination, witness);
            if (outcome != Outcome.BUSY) {
                return outcome;
            }
            if (wait.isOver()) {
                throw new IOException("another process has held the lock for exchanging directories of job " + job
                        + " on " + table.root() + " for more than " + table.options().lockWaitMillis + " ms");
            }
            wait.pause(
                    pauseMillis,
                    () -> "another process holds the lock for exchanging directories of job " + job + " on "
                            + table.root());
        }
    }

    private Outcome tryExchange(String made, String destination, String witness) {
        try {
            return exchange.exchange(job, made, destination, witness);
        } catch (IOException e) {
            LOG.warn(
                    "New files of job {} appear one by one in {} of {}: {}",
                    job,
                    destination,
                    table.root(),
                    e.getMessage());
            return null;
        }
    }

    /** Moves the witness, which is the first file, before the others. False if another process has finished the job. */
    private boolean moveAll(List<StagedFile> files, String destination) throws IOException {
        List<StagedFile> missing = new ArrayList<>();
        for (StagedFile file : files) {
            if (!exchange.move(file, destination)) {
                missing.add(file);
            }
        }
        if (missing.isEmpty()) {
            return true;
        }
        if (jobState.isFinished()) {
            return false;
        }
        throw new IOException(StagedFiles.missing(table.root(), missing));
    }

    /** The old files of the destination directories, wherever they are now. */
    public List<OldFile> replaced() throws IOException {
        List<OldFile> files = new ArrayList<>(inDestinations);
        displaced.values().forEach(files::addAll);
        return table.unchanged(files);
    }

    /**
     * Removes the job's directories.
     *
     * @throws IOException if they are not empty
     */
    public void dissolve() throws IOException {
        for (int sweeps = 1; ; sweeps++) {
            table.store().prune(added.keySet(), List.of());
            int found = 0;
            for (String made : added.keySet()) {
                found += exchange.carryOver(job, made, destinations.get(made), Set.of());
            }
            if (found == 0) {
                table.store().removeEmptyTree(SwapDirectories.root(job));
                return;
            }
            if (sweeps == MAX_SWEEPS) {
                throw new IOException(
                        "another program keeps writing to " + SwapDirectories.root(job) + " of " + table.root());
            }
        }
    }
}
