package io.millstream.write.protocol;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.store.TaskAttempt;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** A table for tests: each file is a row, which is the file's text. */
final class TestTable {
    final Path table;
    final Configuration conf;
    final FileSystem fs;

    TestTable(Path table, Configuration conf) throws IOException {
        this.table = table;
        this.conf = conf;
        Placement.prepare(conf);
        this.fs = table.getFileSystem(conf);
    }

    TableAccess access(Metastore metastore) throws IOException {
        return TableAccess.of(table, conf, metastore);
    }

    static String newId() {
        return UUID.randomUUID().toString();
    }

    /** Writes a file like a program that does not know direct writes. */
    void put(String file, String row) throws IOException {
        write(new Path(table, file), row);
    }

    void write(Path file, String row) throws IOException {
        try (OutputStream out = file.getFileSystem(conf).create(file, true)) {
            out.write(row.getBytes(StandardCharsets.UTF_8));
        }
    }

    /** Writes the files of an attempt, one row each. */
    TaskAttempt attempt(Placement placement, String job, String attempt, String... directoriesAndRows)
            throws IOException {
        TaskAttempt task = placement.attempt(attempt, conf);
        fill(task, job, directoriesAndRows);
        return task;
    }

    void fill(TaskAttempt task, String job, String... directoriesAndRows) throws IOException {
        for (int i = 0; i < directoriesAndRows.length; i += 2) {
            write(
                    task.file(directoriesAndRows[i], "part-0000" + i + "-" + job + ".c000.txt"),
                    directoriesAndRows[i + 1]);
        }
    }

    /** Runs a complete job with one task. */
    CommitOutcome run(Overwrite overwrite, String... directoriesAndRows) throws IOException {
        String id = newId();
        try (DirectJob job = DirectJob.begin(table, id, "", conf, null)) {
            return job.commit(new CommitPlan(
                    attempt(job.placement(), id, "0", directoriesAndRows).commit(path -> true), overwrite));
        }
    }

    /** The rows that a reader sees, as {@code directory:row}. */
    TreeSet<String> rows() throws IOException {
        TreeSet<String> rows = new TreeSet<>();
        if (fs.exists(table)) {
            addRows("", table, rows);
        }
        return rows;
    }

    private void addRows(String relative, Path directory, TreeSet<String> rows) throws IOException {
        for (FileStatus status : fs.listStatus(directory)) {
            String name = status.getPath().getName();
            if (name.startsWith(".") || name.startsWith("_")) {
                continue;
            }
            if (status.isDirectory()) {
                addRows(relative.isEmpty() ? name : relative + "/" + name, status.getPath(), rows);
            } else {
                try (var in = fs.open(status.getPath())) {
                    String row = relative + ":" + new String(in.readAllBytes(), StandardCharsets.UTF_8);
                    if (!rows.add(row)) {
                        rows.add(row + " again in " + name);
                    }
                }
            }
        }
    }

    /** Files that no reader sees: hidden files, and the journal except for done marks. */
    List<String> hidden() throws IOException {
        List<String> hidden = new ArrayList<>();
        if (fs.exists(table)) {
            addHidden(table, hidden);
        }
        return hidden;
    }

    private void addHidden(Path directory, List<String> hidden) throws IOException {
        for (FileStatus status : fs.listStatus(directory)) {
            if (status.isDirectory()) {
                addHidden(status.getPath(), hidden);
            } else if (status.getPath().toString().contains("/.")
                    && !status.getPath().getName().startsWith("_done-")) {
                hidden.add(
                        status.getPath().toString().substring(table.toString().length()));
            }
        }
    }

    /** A metastore that knows the sizes of partitions. */
    static final class Partitions implements Metastore {
        final Map<String, Map<String, String>> parameters = new java.util.TreeMap<>();
        boolean isDown;
        boolean hasForgotten;

        @Override
        public MetastoreChange current(MetastoreChange change, Path root) {
            return hasForgotten ? null : change;
        }

        @Override
        public synchronized void apply(MetastoreChange change, JobState jobState) throws IOException {
            if (isDown) {
                throw new IOException("the metastore is down");
            }
            change.partitions().forEach(p -> parameters.put(p.name(), p.parameters()));
            change.droppedPartitions().forEach(parameters::remove);
        }

        @Override
        public Map<String, String> locations(String database, String table, Collection<String> partitions) {
            return Map.of();
        }
    }

    /** Plans a change in which each directory that gets files is a partition with its number of files. */
    static MetastoreChange count(CommitDraft draft) {
        List<MetastoreChange.Partition> partitions = draft.added().entrySet().stream()
                .map(e -> new MetastoreChange.Partition(
                        e.getKey(), null, Map.of("numFiles", "" + e.getValue().files())))
                .toList();
        List<String> dropped = draft.deleted().keySet().stream()
                .filter(d -> !draft.added().containsKey(d))
                .toList();
        return new MetastoreChange(
                "db", "t", partitions, dropped, Map.of("totalSize", "1"), java.util.Set.of("numRows"));
    }
}
