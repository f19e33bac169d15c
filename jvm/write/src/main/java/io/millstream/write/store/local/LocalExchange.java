package io.millstream.write.store.local;

import io.millstream.hadoop.natives.NativeExchange;
import io.millstream.hadoop.natives.NativeLibrary;
import io.millstream.write.store.Exchange;
import io.millstream.write.store.HiddenFileStore;
import io.millstream.write.store.Names;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import java.io.IOException;
import java.nio.file.Files;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** Exchanges directories on {@code file:} if the kernel and the file system support it; NFS does not. */
public final class LocalExchange implements Exchange {
    /** A file that can be made and is removed again. */
    interface TemporaryFile {
        /** Writes the file in the journal's directory, which it creates if it is missing. */
        java.nio.file.Path make() throws IOException;
    }

    private final HiddenFileStore store;
    private final TemporaryFile probeFile;

    /** The exchange of a store's directories, which is tried beside a file that {@code probeFile} makes. */
    LocalExchange(HiddenFileStore store, TemporaryFile probeFile) {
        this.store = store;
        this.probeFile = probeFile;
    }

    @Override
    public Optional<String> whyNot() {
        if (!NativeLibrary.isLoaded()) {
            return Optional.of("Millstream's native library does not load in this JVM");
        }
        try {
            probe();
            return Optional.empty();
        } catch (IOException e) {
            return Optional.of("directories of " + store.table + " cannot be exchanged: " + e.getMessage());
        }
    }

    /**
     * Exchanges two directories in the journal as a test. If this process dies meanwhile, they are removed like other
     * temporary files of the journal.
     */
    private void probe() throws IOException {
        boolean isFirst = store.isMissing();
        java.nio.file.Path token = probeFile.make();
        String name = token.getFileName().toString();
        java.nio.file.Path one = token.resolveSibling(name + "-1");
        java.nio.file.Path other = token.resolveSibling(name + "-2");
        try {
            Files.createDirectory(one);
            Files.createDirectory(other);
            NativeExchange.exchange(token.getParent().toString(), name, name + "-1", name + "-2", "witness");
        } finally {
            Files.deleteIfExists(one);
            Files.deleteIfExists(other);
            Files.deleteIfExists(token);
            store.removeIfEmpty(store.journal);
            if (isFirst) {
                store.removeEmptyTree("");
            }
        }
    }

    @Override
    public void rehearse(StagedFile file, String destination) throws IOException {
        store.makeDirectories(Set.of(destination));
        Path staged = Names.path(store.directory(file.directory()), file.stagedAs());
        Path there = Names.path(store.directory(destination), file.stagedAs());
        if (store.rename(staged, there) && !store.rename(there, staged)) {
            throw new IOException(there + " was removed by another program");
        }
    }

    @Override
    public NativeExchange.Outcome exchange(String job, String made, String destination, String witness)
            throws IOException {
        String token = Names.entry(new Path(Store.JOURNAL), Names.begin(job)).toString();
        return NativeExchange.exchange(store.table.toUri().getPath(), token, made, destination, witness);
    }

    @Override
    public boolean move(StagedFile file, String destination) throws IOException {
        Path placed = Names.path(store.directory(destination), file.name());
        return store.rename(Names.path(store.directory(file.directory()), file.name()), placed)
                || store.status(placed) != null;
    }

    @Override
    public int carryOver(String job, String from, String destination, Set<OldFile> but) throws IOException {
        Set<String> checksums = new HashSet<>();
        but.forEach(file -> checksums.add(Checksums.of(file.name())));
        int found = 0;
        for (FileStatus status : store.entries(store.directory(from))) {
            String name = status.getPath().getName();
            if (checksums.contains(name)
                    || but.contains(new OldFile(from, name, status.getLen(), status.getModificationTime()))) {
                continue;
            }
            found++;
            if (job.equals(HiddenFileStore.jobOf(name))) {
                store.deleteFile(status.getPath());
            } else {
                carry(status.getPath(), store.directory(destination), job);
            }
        }
        return found;
    }

    /** Moves a file back, under another name if the destination directory has a file of that name by then. */
    private void carry(Path file, Path destination, String job) throws IOException {
        String name = file.getName();
        Path target = Names.path(destination, name);
        if (store.status(target) != null) {
            target = Names.path(destination, Names.isHidden(name) ? name + "." + job : job + "-" + name);
        }
        store.rename(file, target);
    }
}
