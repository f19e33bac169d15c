package io.millstream.write.protocol;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.protocol.CommitPlan.Phase;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;

/** The step of a commit that changes the catalog, and the directories that the catalog's readers expect. */
final class CatalogUpdate {
    private final TableAccess table;
    private final String job;
    private final CommitRecord record;
    private final JobEntries entries;
    private final Phases phases;
    private String untold = "";

    CatalogUpdate(TableAccess table, String job, CommitRecord record, JobEntries entries, Phases phases) {
        this.table = table;
        this.job = job;
        this.record = record;
        this.entries = entries;
        this.phases = phases;
    }

    /** Why the catalog was not changed; empty if it was, or needs no change. */
    String untold() {
        return untold;
    }

    /** Changes the catalog, unless the table is gone there. */
    void update(CommitRecord rest) throws IOException {
        if (rest.change() == null) {
            return;
        }
        entries.check();
        phases.time(Phase.METASTORE, () -> {
            MetastoreChange change = record.isSwap() || record.isExchange()
                    ? rest.change()
                    : rest.change().without(occupied(rest));
            MetastoreChange current =
                    metastore().current(change.moved(record.root(), table.rootAs(record.root())), table.root());
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
            metastore().apply(current, entries::isFinished);
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

    void makeEmptyDirectories(CommitRecord rest) throws IOException {
        Set<String> empty = withoutFiles(rest, untold.isEmpty(), table.rootAs(record.root()));
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
}
