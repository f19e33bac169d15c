package io.millstream.write.protocol;

import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.TaskAttempt;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;

/**
 * A table in memory. Each call is one step of its caller. It records the order of commits, which determines the final
 * rows.
 */
final class MemoryStore implements Store {
    /** Called before each step, and with its result. */
    interface Steps {
        void before(String step) throws IOException;

        void after(String step, Object result);
    }

    private final Map<String, byte[]> journal = new TreeMap<>();
    private final Map<String, String> visible = new TreeMap<>();
    private final Map<String, String> staged = new TreeMap<>();
    private final List<String> commits = new ArrayList<>();
    private final Steps steps;
    private final Map<String, Long> written = new TreeMap<>();
    private int version;
    private long nowMillis = 1;

    MemoryStore(Steps steps) {
        this.steps = steps;
    }

    /** Writes of the tests, which are not steps. */
    void putVisible(String directory, String name, String row) {
        visible.put(directory + "/" + name, row);
    }

    StagedFile putStaged(String job, String directory, String row) {
        String hidden = ".direct-" + job + "-0." + row;
        staged.put(directory + "/" + hidden, row);
        return StagedFile.hidden(directory, row, 1, hidden);
    }

    void putAbandoned(String job) {
        journal.put(Journal.abandoned(job), new byte[0]);
        version++;
    }

    void pass(long millis) {
        nowMillis += millis;
    }

    Set<String> rows() {
        return new TreeSet<>(visible.values());
    }

    /** The rows that a statement reads in one step. */
    Set<String> readRows() throws IOException {
        return step("read rows", this::rows);
    }

    Set<String> stagedRows() {
        return new TreeSet<>(staged.values());
    }

    /** The committed jobs, in order. */
    List<String> commits() {
        return commits;
    }

    int version() {
        return version;
    }

    /** The complete observable state. */
    String state() {
        StringBuilder state = new StringBuilder();
        journal.forEach((name, content) ->
                state.append(name).append('=').append(Arrays.hashCode(content)).append(','));
        return state.append(visible).append(staged).toString();
    }

    private interface Call<R> {
        R run() throws IOException;
    }

    private <R> R step(String name, Call<R> call) throws IOException {
        steps.before(name);
        R result = call.run();
        steps.after(name, result instanceof byte[] bytes ? Arrays.hashCode(bytes) : result);
        return result;
    }

    private <T, V> V changed(V before) {
        version++;
        return before;
    }

    @Override
    public List<Entry> journal() throws IOException {
        return step(
                "journal",
                () -> journal.keySet().stream()
                        .map(name -> new Entry(name, written.getOrDefault(name, 1L)))
                        .toList());
    }

    @Override
    public byte[] read(String entry) throws IOException {
        return step("read " + entry, () -> journal.get(entry));
    }

    @Override
    public boolean create(String entry, byte[] content) throws IOException {
        return step("create " + entry, () -> {
            byte[] there = changed(journal.putIfAbsent(entry, content));
            if (there == null) {
                written.put(entry, nowMillis);
            }
            if (there == null && entry.endsWith(".commit") && !CommitRecord.isAborted(content)) {
                commits.add(entry.substring(0, entry.lastIndexOf('.')));
            }
            return there == null || Arrays.equals(there, content);
        });
    }

    @Override
    public boolean begin(String entry, byte[] content) throws IOException {
        return create(entry, content);
    }

    @Override
    public List<StagedFile> unpublished(List<StagedFile> files) throws IOException {
        return step(
                "unpublished",
                () -> files.stream()
                        .filter(file -> !visible.containsKey(file.toString()))
                        .toList());
    }

    @Override
    public void replace(String entry, byte[] content) throws IOException {
        step("replace " + entry, () -> changed(journal.put(entry, content)));
    }

    @Override
    public void remove(Collection<String> entries) throws IOException {
        for (String entry : entries) {
            if (journal.containsKey(entry)) {
                step("remove " + entry, () -> changed(journal.remove(entry)));
            }
        }
    }

    @Override
    public TaskAttempt attempt(String job, String attempt) {
        throw new UnsupportedOperationException("attempts have ended before the first step");
    }

    @Override
    public List<StagedFile> missing(List<StagedFile> files) throws IOException {
        return step(
                "missing",
                () -> files.stream()
                        .filter(file -> !staged.containsKey(file.directory() + "/" + file.stagedAs()))
                        .toList());
    }

    @Override
    public boolean publish(StagedFile file) throws IOException {
        return step("publish " + file.name(), () -> {
            String row = changed(staged.remove(file.directory() + "/" + file.stagedAs()));
            if (row != null) {
                visible.put(file.toString(), row);
            }
            return row != null || visible.containsKey(file.toString());
        });
    }

    @Override
    public List<OldFile> list(Collection<String> directories, boolean recursive) throws IOException {
        return step(
                "list",
                () -> visible.keySet().stream()
                        .map(path -> new OldFile(
                                path.substring(0, path.lastIndexOf('/')),
                                path.substring(path.lastIndexOf('/') + 1),
                                1,
                                1))
                        .filter(file -> directories.contains(file.directory()))
                        .toList());
    }

    @Override
    public void delete(List<OldFile> files) throws IOException {
        for (OldFile file : files) {
            step("delete " + file.name(), () -> changed(visible.remove(file.toString())));
        }
    }

    @Override
    public void makeDirectories(Collection<String> directories) {}

    @Override
    public void removeTree(String directory) {}

    @Override
    public void prune(Set<String> directories, Collection<String> stay) {}

    @Override
    public List<Leftover> leftovers(String below, Predicate<String> ofJob) throws IOException {
        return step(
                "leftovers",
                () -> staged.keySet().stream()
                        .map(path -> new Leftover(
                                path.substring(path.indexOf(".direct-") + ".direct-".length(), path.indexOf("-0.")),
                                path,
                                null))
                        .filter(leftover -> leftover.path().startsWith(below) && ofJob.test(leftover.job()))
                        .toList());
    }

    @Override
    public boolean leftoversNameTheirJobs() {
        return true;
    }

    @Override
    public void discard(List<Leftover> leftovers) throws IOException {
        for (Leftover leftover : leftovers) {
            step("discard", () -> changed(staged.remove(leftover.path())));
        }
    }
}
