package io.millstream.write.protocol;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.store.Names;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.SwapDirectories;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** A table whose readers look up its partitions in a catalog; "" is a table without partitions. */
final class SwapTable implements Metastore {
    final TestTable fixture;
    /** Partitions and their locations. */
    final Map<String, String> catalog = new TreeMap<>();

    private final List<Map<String, String>> asked = new ArrayList<>();
    private Set<Set<String>> allowed = Set.of();
    /** Simulates that the table was renamed, or that another table got its name. */
    boolean isOfAnother;

    SwapTable(Path table, Configuration conf) throws IOException {
        fixture = new TestTable(table.getFileSystem(conf).makeQualified(table), conf);
    }

    /** Writes a file to a partition, as Spark would. */
    void put(String partition, String row) throws IOException {
        fixture.put(partition.isEmpty() ? "old" : partition + "/old", row);
        catalog.put(partition, (partition.isEmpty() ? fixture.table : new Path(fixture.table, partition)).toString());
    }

    TableAccess through(Store store) throws IOException {
        return fixture.access(this).through(store);
    }

    /** Records what a reader that uses the catalog now reads now, and will read later. */
    void look() throws IOException {
        Map<String, String> now = new HashMap<>(catalog);
        check(now, "at once");
        if (!asked.contains(now)) {
            asked.add(now);
        }
    }

    /** Checks that a reader reads the old or the new rows, whenever it has used the catalog. */
    void checkAll(String when) throws IOException {
        for (Map<String, String> locations : asked) {
            check(locations, when);
        }
    }

    /** Sets the rows that a reader may see from now on. */
    void allow(Set<String> oldRows, Set<String> newRows) {
        allowed = Set.of(oldRows, newRows);
        asked.clear();
    }

    /** Disables the check, because other programs write as well and the test checks the rows itself. */
    void allowAnything() {
        allowed = null;
    }

    private void check(Map<String, String> locations, String when) throws IOException {
        Set<String> rows = allowed == null ? Set.of() : rows(locations);
        if (allowed != null && !allowed.contains(rows)) {
            throw new AssertionError("a reader saw " + rows + " at " + locations + ", " + when);
        }
    }

    Set<String> rows() throws IOException {
        return rows(catalog);
    }

    private Set<String> rows(Map<String, String> locations) throws IOException {
        Set<String> rows = new TreeSet<>();
        for (Map.Entry<String, String> partition : locations.entrySet()) {
            for (Path file : files(new Path(partition.getValue()))) {
                try (var in = fixture.fs.open(file)) {
                    rows.add(partition.getKey() + ":"
                            + new String(in.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8));
                }
            }
        }
        return rows;
    }

    private List<Path> files(Path directory) throws IOException {
        List<Path> files = new ArrayList<>();
        try {
            for (FileStatus status : fixture.fs.listStatus(directory)) {
                if (status.isFile() && !Names.isHidden(status.getPath().getName())) {
                    files.add(status.getPath());
                }
            }
        } catch (FileNotFoundException e) {
            return files;
        }
        return files;
    }

    /** Files of the table that no reader finds, without the journal's. */
    Set<String> lost() throws IOException {
        Set<String> lost = new TreeSet<>();
        var all = fixture.fs.listFiles(fixture.table, true);
        while (all.hasNext()) {
            lost.add(all.next().getPath().toString());
        }
        for (String location : catalog.values()) {
            files(new Path(location)).forEach(file -> lost.remove(file.toString()));
        }
        lost.removeIf(file -> file.contains("/" + Store.JOURNAL + "/") || file.endsWith(".crc"));
        return lost;
    }

    /** Plans a swap as the commit of an overwrite in Spark does. */
    CommitPlan plan(String job, List<StagedFile> files, Overwrite overwrite) {
        Set<String> old = new TreeSet<>();
        Set<String> dropped = new TreeSet<>();
        return new CommitPlan(files, overwrite)
                .survey(touched -> {
                    Set<String> names = new TreeSet<>();
                    touched.forEach(directory -> names.add(SwapDirectories.partition(directory)));
                    catalog.keySet().stream()
                            .filter(name -> !overwrite.isOfTouched() || names.contains(name))
                            .forEach(name -> {
                                old.add(relative(catalog.get(name)));
                                if (!names.contains(name)) {
                                    dropped.add(name);
                                }
                            });
                    return new CommitPlan.Found(old, List.of(), false);
                })
                .metastore(draft -> change(job, draft, dropped));
    }

    private MetastoreChange change(String job, CommitDraft draft, Collection<String> dropped) {
        List<MetastoreChange.Partition> partitions = new ArrayList<>();
        draft.added()
                .keySet()
                .forEach(directory -> partitions.add(new MetastoreChange.Partition(
                        SwapDirectories.partition(directory),
                        new Path(fixture.table, directory).toString(),
                        Map.of())));
        boolean hasPartitions = !catalog.containsKey("");
        MetastoreChange change = new MetastoreChange(
                "db", "t", hasPartitions ? partitions : List.of(), List.copyOf(dropped), Map.of(), Set.of());
        return hasPartitions
                ? change.swap(new Path(fixture.table, SwapDirectories.emptyDirectory(job)).toString(), null)
                : change.swap(null, new Path(fixture.table, SwapDirectories.of(job, "")).toString());
    }

    private String relative(String location) {
        String root = fixture.table.toString();
        return location.equals(root)
                ? ""
                : location.startsWith(root + "/")
                        ? location.substring(root.length() + 1)
                        : new Path(location).toUri().getPath();
    }

    @Override
    public MetastoreChange current(MetastoreChange change, Path root) {
        return isOfAnother ? null : change;
    }

    /** Applies a change in a metastore's steps: additions, one change of all locations, removals. */
    @Override
    public void apply(MetastoreChange change, JobState jobState) throws IOException {
        for (MetastoreChange.Partition partition : change.partitions()) {
            catalog.putIfAbsent(partition.name(), change.emptyDirectory());
            look();
        }
        change.partitions().forEach(partition -> catalog.put(partition.name(), partition.location()));
        change.droppedPartitions()
                .forEach(name -> catalog.computeIfPresent(name, (key, location) -> change.emptyDirectory()));
        if (change.tableLocation() != null) {
            catalog.put("", change.tableLocation());
        }
        for (String location : catalog.values()) {
            if (!fixture.fs.exists(new Path(location))) {
                throw new AssertionError("the catalog has " + location + ", which is not there");
            }
        }
        look();
        for (String name : change.droppedPartitions()) {
            catalog.remove(name);
            look();
        }
    }

    @Override
    public Map<String, String> locations(String database, String table, Collection<String> partitions) {
        if (isOfAnother) {
            return Map.of();
        }
        Map<String, String> found = new HashMap<>(catalog);
        found.keySet().retainAll(partitions);
        return found;
    }
}
