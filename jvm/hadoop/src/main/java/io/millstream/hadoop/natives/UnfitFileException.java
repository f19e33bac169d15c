package io.millstream.hadoop.natives;

import java.io.IOException;

/** A file is not the listed version, or its contents do not allow the operation: another attempt would fail, too. */
public final class UnfitFileException extends IOException {
    private static final long serialVersionUID = 1L;

    public UnfitFileException(String message) {
        super(message);
    }

    public UnfitFileException(String message, Throwable cause) {
        super(message, cause);
    }

    /** Whether an error is of this class or caused by one. */
    public static boolean isCauseOf(Throwable error) {
        Throwable cause = error;
        while (cause != null && !(cause instanceof UnfitFileException)) {
            cause = cause.getCause();
        }
        return cause != null;
    }
}
