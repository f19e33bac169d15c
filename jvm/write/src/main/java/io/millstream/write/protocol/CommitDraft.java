package io.millstream.write.protocol;

import java.io.IOException;
import java.util.Collection;
import java.util.Map;

/** A planned commit, shown at the last moment at which it can be refused. */
public interface CommitDraft {
    /** Numbers of files and bytes. */
    record Totals(long files, long bytes) {
        Totals plus(Totals other) {
            return new Totals(files + other.files, bytes + other.bytes);
        }
    }

    /** New files, by directory relative to the table. */
    Map<String, Totals> added();

    /** Files to delete, by directory relative to the table. */
    Map<String, Totals> deleted();

    /**
     * Files that exist already and stay, without files left over from before a partition was dropped.
     *
     * @param directories relative to the table
     * @return totals by directory, without directories that are empty
     * @throws IOException if they cannot be listed
     */
    Map<String, Totals> present(Collection<String> directories) throws IOException;
}
