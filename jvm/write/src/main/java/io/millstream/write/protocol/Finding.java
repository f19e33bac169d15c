package io.millstream.write.protocol;

import java.util.List;

/**
 * A job found by recovery, and what was or would be done.
 *
 * @param job its id
 * @param owner the process that ran it
 * @param verdict how it is resolved
 * @param steps one line for each file to publish, delete or remove and each partition to change; for a live job, when
 *     it counts as dead, if known
 */
public record Finding(String job, String owner, Verdict verdict, List<String> steps) {
    /** Whether recovery changes anything. */
    public enum Run {
        DRY,
        REAL
    }

    /** How a job is resolved. */
    public enum Verdict {
        /** It renews its lease, died a short time ago, or was finished meanwhile: it is left alone. */
        ALIVE,
        /** It is committed: its commit record is carried out. */
        ROLL_FORWARD,
        /** It is not committed: its files and uploads are removed. */
        ROLL_BACK,
        /**
         * It is finished, except for directories that another program overwrote first: its files for these are kept.
         */
        SUPERSEDED,
        /** It was committed and could not be finished: it is ended, and the steps list the losses. */
        LOST,
        /**
         * It is over, whether it was committed or not: files that its attempts left behind, which were never part of
         * it, are removed.
         */
        LEFTOVERS,
        /** It is finished: its replaced files, kept for queries planned before, are removed. */
        REMOVE_REPLACED
    }
}
