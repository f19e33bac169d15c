package io.millstream.write.protocol;

import java.io.IOException;

/**
 * A statement cannot be committed because another one has changed data that it had read. Nothing is written, and it can
 * be run again.
 */
public final class ConflictException extends IOException {
    private static final long serialVersionUID = 1;

    ConflictException(String message) {
        super(message);
    }
}
