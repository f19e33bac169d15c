package io.millstream.write.store.s3a;

import io.millstream.write.store.Names;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.TaskAttempt;
import io.millstream.write.store.Uninterrupted;
import io.millstream.write.store.WriteOptions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.WriteOperations;
import org.apache.hadoop.fs.s3a.commit.CommitConstants;
import org.apache.hadoop.fs.s3a.commit.files.SinglePendingCommit;
import org.apache.hadoop.fs.s3a.commit.magic.InMemoryMagicCommitTracker;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** An attempt's staged uploads. S3A keeps the list of them in the memory of this process. */
public final class S3aUploads implements TaskAttempt {
    private static final Logger LOG = LoggerFactory.getLogger(S3aUploads.class);

    private final S3AFileSystem fs;
    private final WriteOperations operations;
    private final Path table;
    private final WriteOptions options;
    private final String job;
    /** S3A's name for the attempt, unique among all attempts in this process. */
    private final String tracked;

    private final Path directory;

    public S3aUploads(
            S3AFileSystem fs,
            WriteOperations operations,
            Path table,
            WriteOptions options,
            String job,
            String attempt) {
        this.fs = fs;
        this.operations = operations;
        this.table = table;
        this.options = options;
        this.job = job;
        this.tracked = job + "_" + attempt;
        // S3A takes the fourth name below the magic directory as the attempt's name.
        Path below = new Path(
                table,
                CommitConstants.MAGIC_PATH_PREFIX + job + "/job/attempt/tasks/" + tracked + "/" + CommitConstants.BASE);
        this.directory = S3aUploadFileSystem.pathOf(below);
    }

    @Override
    public Path file(String destination, String name) {
        Names.check(destination, name, job);
        return fileOfAnyName(destination, name);
    }

    @Override
    public Path fileOfAnyName(String destination, String name) {
        Names.check(destination, name);
        return Names.path(Names.path(directory, destination), name);
    }

    @Override
    public List<StagedFile> commit(Predicate<Path> hasRows) throws IOException {
        List<StagedFile> files = new ArrayList<>();
        for (SinglePendingCommit upload : uploads()) {
            String relative =
                    upload.getDestinationKey().substring(prefix(fs, table).length());
            files.add(StagedFile.upload(
                    Names.parent(relative),
                    relative.substring(relative.lastIndexOf('/') + 1),
                    upload.getLength(),
                    upload.getUploadId(),
                    S3aPart.tracked(upload.getEtags())));
        }
        forget();
        return files;
    }

    /** The prefix of keys below a table; empty if the table is the whole bucket. */
    public static String prefix(S3AFileSystem fs, Path table) {
        String key = fs.pathToKey(table);
        return key.isEmpty() ? key : key + "/";
    }

    private List<SinglePendingCommit> uploads() {
        return InMemoryMagicCommitTracker.getTaskAttemptIdToMpuMetadata().getOrDefault(tracked, List.of());
    }

    /** Removes S3A's records of this attempt, which are meant for its magic committer. */
    private void forget() {
        InMemoryMagicCommitTracker.getTaskAttemptIdToMpuMetadata().remove(tracked);
        List<Path> paths = InMemoryMagicCommitTracker.getTaskAttemptIdToPath().remove(tracked);
        if (paths != null) {
            paths.forEach(InMemoryMagicCommitTracker.getPathToBytesWritten()::remove);
        }
    }

    @Override
    public void abort() {
        Uninterrupted.run(this::abortAll);
    }

    private void abortAll() {
        try {
            Parallel.map(options.threads, uploads(), upload -> {
                try {
                    operations.abortMultipartCommit(upload.getDestinationKey(), upload.getUploadId());
                } catch (FileNotFoundException e) {
                    LOG.debug("Upload {} no longer exists", upload.getUploadId(), e);
                }
                return null;
            });
        } catch (IOException e) {
            LOG.warn(
                    "An aborted task attempt could not abort its uploads of job {} below {}; the job's recovery aborts them",
                    job,
                    table,
                    e);
        } finally {
            forget();
        }
    }
}
