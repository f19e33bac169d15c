package io.millstream.write.protocol;

import java.util.Map;

/**
 * What a commit has done.
 *
 * @param addedFiles new files
 * @param addedBytes their size
 * @param deletedFiles old files deleted
 * @param directories how many directories got files
 * @param requests of the job's own process to the file system, from its beginning on, those of others in the process at the same time
 *     among them; 0 if nobody counts them
 * @param uploadRequests of tasks, for the uploads that are new files
 * @param nanos how long each phase took
 */
public record CommitOutcome(
    long addedFiles,
    long addedBytes,
    long deletedFiles,
    int directories,
    long requests,
    long uploadRequests,
    Map<CommitPlan.Phase, Long> nanos) { }
