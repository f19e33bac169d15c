package io.millstream.write.protocol;

import java.util.List;

/**
 * What was found of a job, and what was or would be done.
 *
 * @param job its id
 * @param owner who ran it
 * @param verdict what becomes of it
 * @param steps each file to publish, to delete or to remove, and each partition to change, one line each; of a job that is alive, when it counts as dead, if known
 */
public record Finding(String job, String owner, Verdict verdict, List<String> steps) {
  /** Whether anything is changed. */
  public enum Run { DRY, REAL }

  /** What becomes of a job. */
  public enum Verdict {
    /** It gives signs of life, died a short time ago, or was finished meanwhile: it is left alone. */
    ALIVE,
    /** It is committed: its record is carried out. */
    ROLL_FORWARD,
    /** It is not committed: its files and uploads are removed. */
    ROLL_BACK,
    /** It is finished, but for directories in which another writer came first: its files for these are kept. */
    SUPERSEDED,
    /** It was committed and could not be finished: it is ended, and the steps say what is lost. */
    LOST,
    /** It is finished: the files that it has replaced, kept for queries that had found them, are removed. */
    REMOVE_REPLACED
  }
}
