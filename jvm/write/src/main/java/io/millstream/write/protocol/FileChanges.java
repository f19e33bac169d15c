package io.millstream.write.protocol;

import io.millstream.write.protocol.CommitPlan.Phase;
import io.millstream.write.store.Causes;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.StagedFile;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/** Publishes and deletes the files of a commit, in this process or, if they are many, in others. */
final class FileChanges {
    private static final int BATCH_FILES = 1000;
    /** Enough for 64 requests of S3's bulk deletion at once. */
    private static final int DELETED_AT_ONCE = 16_000;

    private final TableAccess table;
    private final String job;
    private final CommitRecord record;
    private final JobEntries entries;
    private final CommitPlan.Distribution distribution;
    private final Phases phases;

    FileChanges(
            TableAccess table,
            String job,
            CommitRecord record,
            JobEntries entries,
            CommitPlan.Distribution distribution,
            Phases phases) {
        this.table = table;
        this.job = job;
        this.record = record;
        this.entries = entries;
        this.distribution = distribution;
        this.phases = phases;
    }

    /** Publishes files, and returns the missing ones: they are neither staged nor published. */
    List<StagedFile> publish(List<StagedFile> files) throws IOException {
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
    List<StagedFile> missing(List<StagedFile> files) throws IOException {
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

    Void delete(List<OldFile> deleted) throws IOException {
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

    private void distribute(List<ApplyBatch> batches) throws IOException {
        try {
            distribution.run(batches);
        } catch (Exception e) { // Scala code may throw undeclared exceptions
            entries.check();
            throw new IOException(
                    "the distributed apply of job " + job + " on " + table.root() + " failed: " + Causes.text(e), e);
        }
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
}
