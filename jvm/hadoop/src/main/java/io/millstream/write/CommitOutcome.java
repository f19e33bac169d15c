package io.millstream.write;

import java.util.Map;

/**
 * What a commit has done.
 *
 * @param addedFiles new files
 * @param addedBytes their size
 * @param deletedFiles old files deleted
 * @param directories how many directories got files
 * @param nanos how long each phase took
 */
public record CommitOutcome(
    long addedFiles, long addedBytes, long deletedFiles, int directories, Map<CommitPlan.Phase, Long> nanos) { }
