package io.millstream.write.metastore;

import java.io.IOException;
import java.util.Collection;
import java.util.Map;
import org.apache.hadoop.fs.Path;

/** The catalog that holds tables and partitions. */
public interface Metastore {
    /** The state of the job whose change is carried out. */
    @FunctionalInterface
    interface JobState {
        /**
         * Whether another process has finished the job, so that later jobs may already be running.
         *
         * @return true if nothing is left to do
         * @throws IOException if this cannot be determined, for example because the table's directory is gone
         */
        boolean isFinished() throws IOException;
    }

    /**
     * Carries out the change of a commit record. It may be called again with the same change, also by a job other than
     * the one that committed; the result must be the same.
     *
     * @param change the desired state
     * @param jobState to be checked before each of several requests that change the location of rows
     * @throws IOException if the change failed: the commit stays in the journal, and the next writer rolls it forward
     */
    void apply(MetastoreChange change, JobState jobState) throws IOException;

    /**
     * The change under its table's current name.
     *
     * @param change the change of a commit record
     * @param root the table's current directory
     * @return the change, with the new name if the table was renamed; null if the table is gone or its name belongs to
     *     another table
     * @throws IOException if the table belongs to another catalog, or the catalog cannot be reached
     */
    MetastoreChange current(MetastoreChange change, Path root) throws IOException;

    /**
     * The locations of partitions.
     *
     * @param database of the table
     * @param table its name
     * @param partitions their names; an empty name is the table itself
     * @return their locations by name, without partitions that do not exist
     * @throws IOException if the catalog cannot be reached
     */
    Map<String, String> locations(String database, String table, Collection<String> partitions) throws IOException;
}
