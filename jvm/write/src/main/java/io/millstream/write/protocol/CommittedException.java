package io.millstream.write.protocol;

import java.io.IOException;

/** A job is committed, but its commit record is not completely carried out yet. */
public final class CommittedException extends IOException {
    private static final long serialVersionUID = 1;

    public CommittedException(String message, Throwable cause) {
        super(message, cause);
    }
}
