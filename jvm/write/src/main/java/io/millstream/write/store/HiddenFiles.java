package io.millstream.write.store;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Predicate;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** An attempt's hidden files. */
public final class HiddenFiles implements TaskAttempt {
    private static final Logger LOG = LoggerFactory.getLogger(HiddenFiles.class);
    private static final int SYNC_ATTEMPTS = 5;

    private record Asked(String directory, String name) {}

    private final HiddenFileStore store;
    private final String job;
    private final String prefix;
    private final List<Asked> asked = new ArrayList<>();

    public HiddenFiles(HiddenFileStore store, String job, String prefix) {
        this.store = store;
        this.job = job;
        this.prefix = prefix;
    }

    @Override
    public Path file(String directory, String name) throws IOException {
        Names.check(directory, name, job);
        return fileOfAnyName(directory, name);
    }

    @Override
    public Path fileOfAnyName(String directory, String name) throws IOException {
        Names.check(directory, name);
        Asked file = new Asked(directory, name);
        asked.add(file);
        store.prepare(directory);
        return hidden(file);
    }

    private Path hidden(Asked file) {
        return Names.path(store.directory(file.directory), prefix + file.name);
    }

    @Override
    public List<StagedFile> commit(Predicate<Path> hasRows) throws IOException {
        List<StagedFile> written = Parallel.map(store.options.threads, asked, file -> written(file, hasRows)).stream()
                .filter(Objects::nonNull)
                .toList();
        if (store.options.sync) {
            sync(written);
        }
        // An aborted job removes its begin entry, then looks for files: it would not find later ones.
        if (store.read(Names.begin(job)) == null) {
            abort();
            throw new IOException("the journal entry of job " + job + " is gone from " + store.table
                    + ": the job ended before its task attempt " + prefix
                    + "*, or the table was renamed or dropped. The attempt's files are removed");
        }
        return written;
    }

    /** Syncs files to disk. An exchange by another job may displace their directories for a moment. */
    private void sync(List<StagedFile> files) throws IOException {
        for (int attempt = 1; ; attempt++) {
            try {
                store.sync(files.stream()
                        .map(file -> Names.path(store.directory(file.directory()), file.stagedAs()))
                        .toList());
                return;
            } catch (NoSuchFileException e) {
                if (attempt == SYNC_ATTEMPTS) {
                    throw e;
                }
                LOG.debug("A file was displaced while it was synced", e);
                Parallel.map(store.options.threads, files, file -> store.staged(file.directory(), file.stagedAs()));
            }
        }
    }

    private StagedFile written(Asked file, Predicate<Path> hasRows) throws IOException {
        FileStatus status = store.staged(file.directory, prefix + file.name);
        if (status == null && hasRows.test(hidden(file))) {
            throw new IOException("another program has removed " + hidden(file) + " since this task wrote it");
        }
        return status == null
                ? null
                : StagedFile.hidden(file.directory, file.name, status.getLen(), prefix + file.name);
    }

    @Override
    public void abort() {
        Uninterrupted.run(this::deleteAll);
    }

    private void deleteAll() {
        try {
            Parallel.map(store.options.threads, asked, file -> {
                store.deleteFile(hidden(file));
                return null;
            });
        } catch (IOException e) {
            LOG.warn(
                    "An aborted task attempt could not remove its files {}* below {}; the job's recovery removes them",
                    prefix,
                    store.table,
                    e);
        }
    }
}
