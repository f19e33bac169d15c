package io.millstream.write.protocol;

import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.store.Names;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Files that swaps have replaced. A query planned before a swap still lists and reads the old directories; Spark treats
 * a missing directory as empty and silently loses rows. So the replaced files are kept for some time, listed in the
 * commit record of the job that replaced them.
 */
public final class ReplacedFiles {
    private static final Logger LOG = LoggerFactory.getLogger(ReplacedFiles.class);

    private final TableAccess table;

    public ReplacedFiles(TableAccess table) {
        this.table = table;
    }

    public boolean isRemovable(Journal journal, Journal.Job job) {
        return job.isFinished()
                && job.replacedMillis() != 0
                && table.metastore() != null
                && journal.nowMillis() - job.replacedMillis() > table.options().keepReplacedMillis;
    }

    /**
     * Removes a job's replaced files. Failures are logged and left to the next job, because nothing depends on the
     * removal.
     */
    public void tryRemove(String job) {
        try {
            remove(job, Run.REAL);
        } catch (IOException | RuntimeException e) {
            LOG.warn(
                    "Replaced files were not removed from {}; the next write tries again: {}",
                    table.root(),
                    e.toString());
        }
    }

    /** Removes a job's replaced files, or lists them. */
    public Finding remove(String job, Run run) throws IOException {
        byte[] commit = table.store().read(Journal.commit(job));
        List<String> steps = new ArrayList<>();
        if (commit != null) {
            CommitRecord record = CommitRecord.of(commit);
            Set<Path> inUse = inUse(job, record.change());
            List<OldFile> files = table.unchanged(record.deleted().stream()
                    .filter(file -> !isIn(inUse, file.directory()))
                    .toList());
            files.forEach(file -> steps.add("delete " + file));
            if (run == Run.REAL) {
                table.store().requireRightsOfAuthor(Journal.commit(job), files, List.of(), List.of());
                table.store().delete(files);
                table.store().delete(successMarks(record, inUse));
                removeDirectories(job, record, inUse);
            }
        }
        if (run == Run.REAL) {
            table.store().remove(List.of(Journal.replaced(job), Journal.commit(job)));
        }
        return new Finding(job, "unknown", Verdict.REMOVE_REPLACED, steps);
    }

    private void removeDirectories(String job, CommitRecord record, Set<Path> inUse) throws IOException {
        table.store().prune(abandoned(record, inUse), List.of());
        if (record.change().emptyDirectory() != null) {
            table.store().removeTree(SwapDirectories.emptyDirectory(job));
        }
    }

    /** Directories of replaced files that no reader uses. */
    private Set<String> abandoned(CommitRecord record, Set<Path> inUse) {
        return record.deleted().stream()
                .map(OldFile::directory)
                .filter(directory ->
                        !directory.startsWith(Path.SEPARATOR) && !directory.isEmpty() && !isIn(inUse, directory))
                .collect(Collectors.toSet());
    }

    /** The success marks that committers leave next to their files. */
    private List<OldFile> successMarks(CommitRecord record, Set<Path> inUse) {
        return abandoned(record, inUse).stream()
                .map(directory -> new OldFile(directory, "_SUCCESS", 0, 0))
                .toList();
    }

    /** Directories that the catalog uses again. */
    private Set<Path> inUse(String job, MetastoreChange change) throws IOException {
        MetastoreChange current = table.metastore().current(change, table.root());
        if (current == null) {
            throw new IOException("files that job " + job + " replaced are kept: " + change.database() + "."
                    + change.table() + " is gone, was renamed or is"
                    + " now another table, so it is unknown whether they are in use. To stop this message, remove "
                    + Names.entry(new Path(table.root(), Store.JOURNAL), Journal.replaced(job))
                    + "; this removes no data");
        }
        List<String> names = new ArrayList<>(change.droppedPartitions());
        change.partitions().forEach(partition -> names.add(partition.name()));
        if (change.tableLocation() != null) {
            names.add("");
        }
        return table.metastore().locations(current.database(), current.table(), names).values().stream()
                .map(location -> withoutScheme(new Path(location)))
                .collect(Collectors.toSet());
    }

    /**
     * Whether readers of one of the used directories find the files of a directory, because it is one of them or below
     * one.
     */
    private boolean isIn(Set<Path> inUse, String directory) {
        Path above = withoutScheme(Names.path(table.root(), directory));
        while (above != null && !inUse.contains(above)) {
            above = Names.isHidden(above.getName()) ? null : above.getParent();
        }
        return above != null;
    }

    private static Path withoutScheme(Path path) {
        return new Path(path.toUri().getPath());
    }

    /** Kept replaced files in directories where a job is about to add partitions. */
    public List<OldFile> in(Collection<String> directories) throws IOException {
        List<OldFile> files = new ArrayList<>();
        if (!directories.isEmpty()) {
            for (Journal.Job job : Journal.of(table.store()).jobs()) {
                byte[] commit = job.replacedMillis() == 0 ? null : table.store().read(Journal.commit(job.id));
                if (commit != null) {
                    CommitRecord.of(commit).deleted().stream()
                            .filter(file -> directories.contains(file.directory()))
                            .forEach(files::add);
                }
            }
        }
        return table.unchanged(files);
    }
}
