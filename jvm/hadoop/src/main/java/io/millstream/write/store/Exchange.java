package io.millstream.write.store;

import io.millstream.hadoop.NativeExchange;
import java.io.IOException;
import java.util.Optional;
import java.util.Set;

/** What a file system can do whose directories can change places. Paths are as those of the {@link Store}. */
public interface Exchange {
  /** Why they cannot, after all; empty if they can. */
  Optional<String> whyNot();

  /**
   * Makes a directory, and sees that files of the job's can get into it.
   *
   * @param file any one of them, which is staged
   * @throws IOException if they cannot
   */
  void rehearse(StagedFile file, String place) throws IOException;

  /**
   * Lets a directory of a job take the place of another, unless the witness is there already.
   *
   * @param witness the name of a file of the job's in it
   * @throws IOException if that is not possible, and nothing has changed
   */
  NativeExchange.Outcome exchange(String job, String made, String place, String witness) throws IOException;

  /**
   * Moves a published file.
   *
   * @return false if it is neither where it was nor where it is to be
   */
  boolean move(StagedFile file, String place) throws IOException;

  /**
   * Moves what is in a directory that has lost its place to the one that has it: what others have put there since it was listed. The
   * job's own attempts that do not count are removed.
   *
   * @param but files that stay, unless they were written anew
   * @return how many it found
   */
  int carryOver(String job, String from, String place, Set<OldFile> but) throws IOException;
}
