package io.millstream.write.protocol;

import io.millstream.write.store.OldFile;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What programs that do not know the journal have done in the directories of a commit, as far as a listing shows it.
 */
final class OtherWriters {
    /**
     * The files of a directory that the job writes to or empties.
     *
     * @param found the files that a reader sees
     * @param old the files that the job replaces
     * @param own names of the files that the job puts there
     */
    private record Contents(Set<OldFile> found, Set<OldFile> old, Set<String> own) {
        private boolean hasForeign() {
            return !(old.isEmpty() && own.isEmpty())
                    && found.stream().anyMatch(file -> !old.contains(file) && !own.contains(file.name()));
        }

        /**
         * The job deletes nothing until all its files are published, so if an old file is missing before that, another
         * program has replaced or removed it.
         */
        private boolean hasLost() {
            return !found.containsAll(old);
        }

        /** In a directory without old files, an INSERT INTO and an overwrite by another program look the same. */
        private boolean isMixed() {
            return hasForeign() && old.isEmpty();
        }

        private boolean hasOwn() {
            return found.stream().anyMatch(file -> own.contains(file.name()));
        }
    }

    private final TableAccess table;
    private final CommitRecord record;
    private final Set<String> mixed = new TreeSet<>();
    private Set<OldFile> seen = Set.of();

    OtherWriters(TableAccess table, CommitRecord record) {
        this.table = table;
        this.record = record;
    }

    /**
     * Directories that hold another program's files as well as the job's; that program may have meant to replace the
     * job's.
     */
    Set<String> mixed() {
        return mixed;
    }

    void addMixed(Collection<String> directories) {
        mixed.addAll(directories);
    }

    /** The files found by the last listing of the directories whose files are replaced. */
    Set<OldFile> seen() {
        return seen;
    }

    private Map<String, Contents> contents() throws IOException {
        if (record.targets().isEmpty()) {
            return Map.of();
        }
        seen = new HashSet<>(table.store().list(new LinkedHashSet<>(record.targets()), true));
        Map<String, Set<OldFile>> found = byDirectory(seen);
        Map<String, Set<OldFile>> old = byDirectory(record.deleted());
        Map<String, Set<String>> own = new HashMap<>();
        // A swap's new files are in other directories; map each to the old directory that the catalog replaces with it.
        Map<String, String> replaced = new HashMap<>();
        old.keySet().forEach(directory -> replaced.put(SwapDirectories.partition(directory), directory));
        record.added().forEach(file -> {
            String directory = record.isSwap()
                    ? replaced.getOrDefault(SwapDirectories.partition(file.directory()), "")
                    : record.destination(file);
            own.computeIfAbsent(directory, key -> new HashSet<>()).add(file.name());
        });
        Map<String, Contents> contents = new HashMap<>();
        Stream.concat(found.keySet().stream(), old.keySet().stream())
                .distinct()
                .forEach(directory -> contents.put(
                        directory,
                        new Contents(
                                found.getOrDefault(directory, Set.of()),
                                old.getOrDefault(directory, Set.of()),
                                own.getOrDefault(directory, Set.of()))));
        return contents;
    }

    private static Map<String, Set<OldFile>> byDirectory(Collection<OldFile> files) {
        return files.stream().collect(Collectors.groupingBy(OldFile::directory, Collectors.toSet()));
    }

    /**
     * Directories that another program has overwritten before the job published anything there; the job's files must
     * not appear there. Foreign files next to all of the old ones come from an INSERT INTO, and stay next to the job's.
     */
    Set<String> superseded() throws IOException {
        Set<String> superseded = new TreeSet<>();
        contents().forEach((directory, contents) -> {
            if (!contents.hasOwn() && (contents.hasLost() || contents.isMixed())) {
                superseded.add(directory);
            }
        });
        return superseded;
    }

    /**
     * Directories that another program has overwritten while the job published. That program's rows must stay alone
     * there, because each of the two replaces the other's. The result is valid only until the decision is recorded,
     * since old files may be deleted after that; it becomes part of the decision.
     */
    Set<String> overwrittenMeanwhile(Set<String> superseded) throws IOException {
        Set<String> overwritten = new TreeSet<>();
        contents().forEach((directory, contents) -> {
            if (!superseded.contains(directory) && contents.hasForeign() && contents.hasLost()) {
                overwritten.add(directory);
            } else if (!superseded.contains(directory) && contents.isMixed()) {
                mixed.add(directory);
            }
        });
        return overwritten;
    }
}
