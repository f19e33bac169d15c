package io.millstream.write.store;

import java.io.IOException;
import java.util.List;
import java.util.function.Predicate;
import org.apache.hadoop.fs.Path;

/** The files of one task attempt, private to it until the job's commit publishes them. Used by one thread at a time. */
public interface TaskAttempt {
    /**
     * The path at which a writer must write a file. It has the same extension as the name. The writer creates the file,
     * and closes it before {@link #commit}.
     *
     * @param directory the destination directory, relative to the table; empty for the table's own
     * @param name the final name, which must contain the job's id
     * @return a unique path, for a writer whose configuration is prepared ({@code Placement.prepare})
     * @throws IOException if no file can be written there
     */
    Path file(String directory, String name) throws IOException;

    /**
     * Like {@link #file}, for a name that need not contain the job's id. No other job may write a file of this name,
     * and since an upload of this name does not tell its job, the caller removes the leftovers
     * ({@link Store#leftovers}).
     */
    Path fileOfAnyName(String directory, String name) throws IOException;

    /**
     * Makes the written files durable, and lists them. Files that were requested but never created are left out.
     *
     * @param hasRows whether rows were written to a path returned by {@link #file}, so that the file must exist
     * @return the files, for the job's commit if this attempt is chosen
     * @throws IOException if they could not be made durable, or a file with rows is gone: the attempt must be aborted
     */
    List<StagedFile> commit(Predicate<Path> hasRows) throws IOException;

    /** Removes the files of this attempt only. The job's recovery removes those that cannot be removed now. */
    void abort();
}
