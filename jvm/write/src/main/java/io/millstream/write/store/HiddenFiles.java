package io.millstream.write.store;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Collection;
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

    /** The store's files and directories, as far as an attempt uses them. */
    interface Directories {
        /** The path of a directory, relative to the table's. */
        Path directory(String relative);

        /**
         * Called before a task writes a file to a directory, relative to the table's. The directory may be missing;
         * most stores leave it to the writer to create it.
         */
        void prepare(String directory) throws IOException;

        /** The status of a file that an attempt may have written; null if it does not exist. */
        FileStatus staged(String directory, String name) throws IOException;

        /** Makes files, and their names in their directories, durable against a power failure. */
        void sync(Collection<Path> files) throws IOException;

        /** Deletes a file if it exists. */
        void deleteFile(Path file) throws IOException;

        /** The content of a journal entry; null if it does not exist. */
        byte[] read(String entry) throws IOException;
    }

    private record Asked(String directory, String name) {}

    private final Directories store;
    private final Path table;
    private final WriteOptions options;
    private final String job;
    private final String prefix;
    private final List<Asked> asked = new ArrayList<>();

    HiddenFiles(Directories store, Path table, WriteOptions options, String job, String prefix) {
        this.store = store;
        this.table = table;
        this.options = options;
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
        List<StagedFile> written = Parallel.map(options.threads, asked, file -> written(file, hasRows)).stream()
                .filter(Objects::nonNull)
                .toList();
        if (options.sync) {
            sync(written);
        }
        // An aborted job removes its begin entry, then looks for files: it would not find later ones.
        if (store.read(Names.begin(job)) == null) {
            abort();
            throw new IOException("the journal entry of job " + job + " is gone from " + table
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
                Parallel.map(options.threads, files, file -> store.staged(file.directory(), file.stagedAs()));
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
            Parallel.map(options.threads, asked, file -> {
                store.deleteFile(hidden(file));
                return null;
            });
        } catch (IOException e) {
            LOG.warn(
                    "An aborted task attempt could not remove its files {}* below {}; the job's recovery removes them",
                    prefix,
                    table,
                    e);
        }
    }
}
