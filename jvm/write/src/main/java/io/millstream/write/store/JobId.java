package io.millstream.write.store;

/** The ids of jobs. */
public final class JobId {
    /** A regular expression for job ids, which are UUIDs and part of the names of a job's files. */
    public static final String PATTERN = "\\p{XDigit}{8}(?:-\\p{XDigit}{4}){3}-\\p{XDigit}{12}";

    private JobId() {}
}
