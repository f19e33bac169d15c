package io.millstream.write.protocol;

import java.nio.charset.StandardCharsets;

/**
 * How a job ended: the content of its {@code done} mark.
 *
 * @param outcome the result in one word
 * @param detail an explanation for the user; empty if none is needed
 */
public record Ending(Outcome outcome, String detail) {
    /** The result in one word. */
    public enum Outcome {
        /** The commit record is completely carried out. */
        COMPLETE,
        /** Another program has overwritten some directories first; everything else is done. */
        SUPERSEDED,
        /** Everything is done, but the directories also have rows that another program wrote at the same time. */
        MIXED,
        /** The commit was revoked: the table is as before. */
        REVOKED,
        /** Readers do not find some or all of the job's rows. */
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
        return new Ending(Outcome.LOST, "an outcome unknown to this version: " + parts[0]);
    }
}
