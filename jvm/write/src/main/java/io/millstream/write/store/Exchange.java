package io.millstream.write.store;

import io.millstream.hadoop.natives.NativeExchange;
import java.io.IOException;
import java.util.Optional;
import java.util.Set;

/** Exchanges directories of a file system. Paths are like those of {@link Store}. */
public interface Exchange {
    /** Why the table's directories cannot be exchanged; empty if they can. */
    Optional<String> whyNot();

    /**
     * Creates the destination directory, and checks that files of the job can be moved to it.
     *
     * @param file any staged file of the job
     * @throws IOException if they cannot
     */
    void rehearse(StagedFile file, String destination) throws IOException;

    /**
     * Exchanges a directory of a job with its destination directory, unless that already contains the witness.
     *
     * @param witness the name of a file in the job's directory
     * @throws IOException if that is not possible; nothing has changed
     */
    NativeExchange.Outcome exchange(String job, String made, String destination, String witness) throws IOException;

    /**
     * Moves a published file.
     *
     * @return false if it is neither in its old nor in its destination directory
     */
    boolean move(StagedFile file, String destination) throws IOException;

    /**
     * Moves files that other programs have added to the old directory since it was listed back to the destination
     * directory. Leftovers of the job's own failed attempts are removed.
     *
     * @param but files that stay, unless they were rewritten
     * @return number of files found
     */
    int carryOver(String job, String from, String destination, Set<OldFile> but) throws IOException;
}
