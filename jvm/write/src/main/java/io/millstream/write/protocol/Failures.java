package io.millstream.write.protocol;

import java.io.IOException;

/** Collects the failures of several pieces of work, none of which stops the others. */
public final class Failures {
    /** A piece of work. */
    public interface Work {
        void run() throws IOException;
    }

    private IOException first;

    public void in(Work work) {
        try {
            work.run();
        } catch (IOException e) {
            if (first == null) {
                first = e;
            } else {
                add(first, e);
            }
        }
    }

    /** Adds a further failure to the first one, unless it is the same: a file may fail twice with one exception. */
    static void add(Throwable first, Throwable further) {
        if (further != first) {
            first.addSuppressed(further);
        }
    }

    /** Throws the first failure, if any, with the others as suppressed exceptions. */
    public void check() throws IOException {
        if (first != null) {
            throw first;
        }
    }
}
