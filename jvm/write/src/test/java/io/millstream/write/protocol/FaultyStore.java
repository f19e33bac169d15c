package io.millstream.write.protocol;

import io.millstream.hadoop.natives.NativeExchange;
import io.millstream.write.store.Exchange;
import io.millstream.write.store.NotWrittenException;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.TaskAttempt;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.hadoop.fs.Path;

/** A store whose process dies at a step: its later calls have no effect. */
final class FaultyStore implements Store {
    /** The process has died. This is not an IOException, which the protocol would handle. */
    static final class Died extends Error {
        private static final long serialVersionUID = 1;
    }

    /** Whether the step at which the process dies has happened. */
    enum Moment {
        BEFORE,
        AFTER
    }

    /** An observer that looks at the table after every step. */
    interface Watcher {
        void look() throws IOException;
    }

    private interface Call<R> {
        R run() throws IOException;
    }

    private final Store store;
    private final int lastStep;
    private final Moment moment;
    private int steps;
    private String diedAt;
    private Watcher watcher = () -> {};
    private String refused;

    FaultyStore(Store store, int lastStep, Moment moment) {
        this.store = store;
        this.lastStep = lastStep;
        this.moment = moment;
    }

    FaultyStore watchedBy(Watcher looks) {
        watcher = looks;
        return this;
    }

    /** A store without space for journal entries with this prefix. */
    FaultyStore refusing(String prefix) {
        refused = prefix;
        return this;
    }

    /** The name of the step; null if there were fewer steps. */
    String diedAt() {
        return diedAt;
    }

    private synchronized <R> R step(String name, Call<R> call) throws IOException {
        if (diedAt != null) {
            throw new Died();
        }
        if (++steps == lastStep) {
            diedAt = moment + " " + name;
            if (moment == Moment.AFTER) {
                call.run();
            }
            throw new Died();
        }
        R result = call.run();
        watcher.look();
        return result;
    }

    @Override
    public List<Entry> journal() throws IOException {
        return step("journal", store::journal);
    }

    @Override
    public byte[] read(String entry) throws IOException {
        return step("read " + entry, () -> store.read(entry));
    }

    @Override
    public boolean create(String entry, byte[] content) throws IOException {
        return step("create " + entry, () -> {
            if (refused != null && entry.startsWith(refused)) {
                throw new NotWrittenException(new IOException("No space left on device"));
            }
            return store.create(entry, content);
        });
    }

    @Override
    public boolean begin(String entry, byte[] content) throws IOException {
        return step("begin " + entry, () -> store.begin(entry, content));
    }

    @Override
    public List<StagedFile> unpublished(List<StagedFile> files) throws IOException {
        return step("unpublished", () -> store.unpublished(files));
    }

    @Override
    public void replace(String entry, byte[] content) throws IOException {
        step("replace " + entry, () -> {
            store.replace(entry, content);
            return null;
        });
    }

    @Override
    public void remove(Collection<String> entries) throws IOException {
        for (String entry : entries) {
            step("remove " + entry, () -> {
                store.remove(List.of(entry));
                return null;
            });
        }
    }

    @Override
    public TaskAttempt attempt(String job, String attempt) throws IOException {
        TaskAttempt task = store.attempt(job, attempt);
        return new TaskAttempt() {
            @Override
            public Path file(String directory, String name) throws IOException {
                return step("write " + name, () -> task.file(directory, name));
            }

            @Override
            public Path fileOfAnyName(String directory, String name) throws IOException {
                return step("write " + name, () -> task.fileOfAnyName(directory, name));
            }

            @Override
            public List<StagedFile> commit(Predicate<Path> hasRows) throws IOException {
                return step("commit attempt", () -> task.commit(hasRows));
            }

            @Override
            public void abort() {
                task.abort();
            }
        };
    }

    @Override
    public List<StagedFile> missing(List<StagedFile> files) throws IOException {
        return step("missing", () -> store.missing(files));
    }

    @Override
    public boolean publish(StagedFile file) throws IOException {
        return step("publish " + file.name(), () -> store.publish(file));
    }

    @Override
    public List<OldFile> list(Collection<String> directories, boolean recursive) throws IOException {
        return step("list", () -> store.list(directories, recursive));
    }

    @Override
    public Holdings holdings(Collection<String> directories) throws IOException {
        return step("list", () -> store.holdings(directories));
    }

    @Override
    public void requireRights(
            String own, Collection<StagedFile> byExecutors, Collection<OldFile> removed, Collection<StagedFile> renamed)
            throws IOException {
        store.requireRights(own, byExecutors, removed, renamed);
    }

    @Override
    public void requireRightsOfAuthor(
            String entry, Collection<OldFile> removed, Collection<StagedFile> renamed, Collection<String> replaced)
            throws IOException {
        store.requireRightsOfAuthor(entry, removed, renamed, replaced);
    }

    @Override
    public void delete(List<OldFile> files) throws IOException {
        for (OldFile file : files) {
            step("delete " + file.name(), () -> {
                store.delete(List.of(file));
                return null;
            });
        }
    }

    @Override
    public Exchange exchange() {
        Exchange exchange = store.exchange();
        return new Exchange() {
            @Override
            public Optional<String> whyNot() {
                return exchange.whyNot();
            }

            @Override
            public void rehearse(StagedFile file, String place) throws IOException {
                step("rehearse " + place, () -> {
                    exchange.rehearse(file, place);
                    return null;
                });
            }

            @Override
            public NativeExchange.Outcome exchange(String job, String made, String place, String witness)
                    throws IOException {
                return step("exchange " + place, () -> exchange.exchange(job, made, place, witness));
            }

            @Override
            public boolean move(StagedFile file, String place) throws IOException {
                return step("move " + file.name(), () -> exchange.move(file, place));
            }

            @Override
            public int carryOver(String job, String from, String place, Set<OldFile> but) throws IOException {
                return step("carry over " + place, () -> exchange.carryOver(job, from, place, but));
            }
        };
    }

    @Override
    public void reserve(String entry, byte[] content) throws IOException {
        step("reserve " + entry, () -> {
            store.reserve(entry, content);
            return null;
        });
    }

    @Override
    public void release(String job) throws IOException {
        step("release", () -> {
            store.release(job);
            return null;
        });
    }

    @Override
    public Set<String> missingDirectories(Collection<String> directories) throws IOException {
        return store.missingDirectories(directories);
    }

    @Override
    public void makeDirectories(Collection<String> directories) throws IOException {
        step("make directories", () -> {
            store.makeDirectories(directories);
            return null;
        });
    }

    @Override
    public void removeTree(String directory) throws IOException {
        step("remove tree", () -> {
            store.removeTree(directory);
            return null;
        });
    }

    @Override
    public void persist(Collection<String> directories) throws IOException {
        step("persist", () -> {
            store.persist(directories);
            return null;
        });
    }

    @Override
    public void invalidateListings(Collection<String> directories) throws IOException {
        step("invalidateListings", () -> {
            store.invalidateListings(directories);
            return null;
        });
    }

    @Override
    public void prune(Set<String> directories, Collection<String> stay) throws IOException {
        step("prune", () -> {
            store.prune(directories, stay);
            return null;
        });
    }

    @Override
    public void removeHollow(Set<String> directories, Collection<String> stay, Predicate<String> isOver)
            throws IOException {
        step("remove hollow", () -> {
            store.removeHollow(directories, stay, isOver);
            return null;
        });
    }

    @Override
    public List<Leftover> leftovers(String below, Predicate<String> ofJob) throws IOException {
        return step("leftovers", () -> store.leftovers(below, ofJob));
    }

    @Override
    public boolean leftoversNameTheirJobs() {
        return store.leftoversNameTheirJobs();
    }

    @Override
    public List<Leftover> withoutOtherRoots(List<Leftover> leftovers) throws IOException {
        return step("other roots", () -> store.withoutOtherRoots(leftovers));
    }

    @Override
    public boolean copiesInRenames() {
        return store.copiesInRenames();
    }

    @Override
    public boolean isMissing() throws IOException {
        return step("is missing", store::isMissing);
    }

    @Override
    public void removeEmptyTree(String directory) throws IOException {
        step("remove empty tree", () -> {
            store.removeEmptyTree(directory);
            return null;
        });
    }

    @Override
    public void discard(List<Leftover> leftovers) throws IOException {
        for (Leftover leftover : leftovers) {
            step("discard " + leftover.path(), () -> {
                store.discard(List.of(leftover));
                return null;
            });
        }
    }
}
