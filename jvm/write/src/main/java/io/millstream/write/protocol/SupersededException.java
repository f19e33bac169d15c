package io.millstream.write.protocol;

import java.io.IOException;

/**
 * A job is committed, but a program that does not know the journal has changed files that it wrote or replaced. Nothing
 * is left to do.
 */
public final class SupersededException extends IOException {
    private static final long serialVersionUID = 1;

    SupersededException(String message) {
        super(message);
    }
}
