package io.millstream.write.protocol;

import java.io.Serializable;

/**
 * The last jobs that changed a table, by the numbers of their commit locks: a later job has a higher number.
 *
 * @param changed number of the last job that added or replaced files; 0 if none is known
 * @param overwritten number of the last job that replaced files; 0 if none is known
 */
public record TableVersion(long changed, long overwritten) implements Serializable {}
