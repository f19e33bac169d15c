package io.millstream.write.store;

import java.io.IOException;

/**
 * An entry certainly does not exist and will not appear: writing it failed before it was given its name. The message is
 * the cause's.
 */
public final class NotWrittenException extends IOException {
    private static final long serialVersionUID = 1;

    public NotWrittenException(IOException cause) {
        super(Causes.text(cause), cause);
    }
}
