package io.millstream.write.protocol;

import java.util.Map;

/**
 * The result of a commit.
 *
 * @param addedFiles new files
 * @param addedBytes their size in bytes
 * @param deletedFiles old files deleted
 * @param directories number of directories that got files
 * @param requests requests of the driver's process to the file system since the job began, including those of other
 *     threads; 0 if not counted
 * @param uploadRequests requests of tasks for the uploads of the new files
 * @param nanos duration of each phase
 */
public record CommitOutcome(
        long addedFiles,
        long addedBytes,
        long deletedFiles,
        int directories,
        long requests,
        long uploadRequests,
        Map<CommitPlan.Phase, Long> nanos) {}
