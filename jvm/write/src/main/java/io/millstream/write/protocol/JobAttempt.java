package io.millstream.write.protocol;

import io.millstream.write.store.Names;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.SwapDirectories;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.Uninterrupted;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A task attempt of a job. Writers create the job's directories together with their files, and may do so after the job
 * has been rolled back, because Spark aborts a failed job while its tasks still run. An attempt that is aborted then
 * removes these directories.
 *
 * <p>{@link Resolution#rollBack} removes the begin entry, then empty directories. An attempt removes its files, then
 * looks for the begin entry. So an attempt that still finds the entry has removed its files before the rollback looks
 * for empty directories.
 */
final class JobAttempt implements TaskAttempt {
    private static final Logger LOG = LoggerFactory.getLogger(JobAttempt.class);

    private final Store store;
    private final String job;
    private final TaskAttempt files;
    /** The job's own directories in which this attempt has requested files. */
    private final Set<String> own = new HashSet<>();

    JobAttempt(Store store, String job, String attempt) throws IOException {
        this.store = store;
        this.job = job;
        this.files = store.attempt(job, attempt);
    }

    @Override
    public Path file(String directory, String name) throws IOException {
        return remembered(directory, files.file(directory, name));
    }

    @Override
    public Path fileOfAnyName(String directory, String name) throws IOException {
        return remembered(directory, files.fileOfAnyName(directory, name));
    }

    private Path remembered(String directory, Path file) {
        if (directory.startsWith(SwapDirectories.root(job) + "/")) {
            own.add(directory);
        }
        return file;
    }

    @Override
    public List<StagedFile> commit(Predicate<Path> hasRows) throws IOException {
        return files.commit(hasRows);
    }

    @Override
    public void abort() {
        files.abort();
        if (!own.isEmpty()) {
            Uninterrupted.run(this::removeOwnDirectories);
        }
    }

    /** Other attempts may have files in these directories; the last one removes them. */
    private void removeOwnDirectories() {
        try {
            if (isRolledBack()) {
                store.prune(own, List.of());
            }
        } catch (IOException e) {
            LOG.warn("Empty directories of job {} may be left in {}", job, SwapDirectories.root(job), e);
        }
    }

    /**
     * Whether the job is over and was never committed. Readers may use the directories of a committed job, even those
     * that are empty.
     */
    private boolean isRolledBack() throws IOException {
        if (store.read(Names.begin(job)) != null) {
            return false;
        }
        byte[] commit = store.read(Names.commit(job));
        return (commit == null || CommitRecord.isAborted(commit))
                && !Journal.of(store).job(job).isFinished();
    }
}
