package io.millstream.write.store;

import java.io.IOException;

/**
 * A file system turns out to lack a feature that direct writes need. If thrown when a job begins, nothing is left
 * behind.
 */
public final class UnsuitedException extends IOException {
    private static final long serialVersionUID = 1;

    public UnsuitedException(String message, Exception cause) {
        super(message, cause);
    }
}
