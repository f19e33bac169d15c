package io.millstream.write.protocol;

import java.nio.charset.StandardCharsets;

/**
 * How a job ended: what its {@code done} mark says.
 *
 * @param outcome in a word
 * @param detail for a person; empty if there is nothing to say
 */
public record Ending(Outcome outcome, String detail) {
  /** How, in a word. */
  public enum Outcome {
    /** Everything that the record says is done. */
    COMPLETE,
    /** In some directories another writer came first; the rest is done. */
    SUPERSEDED,
    /** Everything is done, but another program's rows, written at the same time, are beside those that it wrote. */
    MIXED,
    /** The commit was taken back: the table is as it was. */
    REVOKED,
    /** Rows of the job are not where readers find them, or not all of them. */
    LOST
  }

  public static final Ending DONE = new Ending(Outcome.COMPLETE, "");

  byte[] toBytes() {
    return (outcome.name() + "\n" + detail).getBytes(StandardCharsets.UTF_8);
  }

  static Ending of(byte[] content) {
    String[] parts = new String(content, StandardCharsets.UTF_8).split("\n", 2);
    for (Outcome outcome : Outcome.values()) {
      if (outcome.name().equals(parts[0])) {
        return new Ending(outcome, parts.length > 1 ? parts[1] : "");
      }
    }
    return new Ending(Outcome.LOST, "an ending that this version does not know: " + parts[0]);
  }
}
