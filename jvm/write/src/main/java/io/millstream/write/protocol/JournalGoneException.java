package io.millstream.write.protocol;

import java.io.IOException;

/**
 * The journal has disappeared while a job's commit was carried out. Whether the job can still be finished depends on
 * where the table is now.
 */
final class JournalGoneException extends IOException {
    private static final long serialVersionUID = 1;

    JournalGoneException(String message) {
        super(message);
    }
}
