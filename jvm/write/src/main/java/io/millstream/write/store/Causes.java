package io.millstream.write.store;

import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;

/** Messages of exceptions for users. */
public final class Causes {
    private Causes() {}

    /** The message of an exception, with the reason if it is a Java exception whose message is only a path. */
    public static String text(Throwable cause) {
        String reason =
                cause instanceof FileSystemException failure && failure.getReason() == null ? reason(failure) : null;
        return reason == null ? cause.getMessage() : cause.getMessage() + ": " + reason;
    }

    private static String reason(FileSystemException failure) {
        if (failure instanceof AccessDeniedException) {
            return "Permission denied";
        } else if (failure instanceof NoSuchFileException) {
            return "No such file or directory";
        } else if (failure instanceof FileAlreadyExistsException) {
            return "File exists";
        } else if (failure instanceof DirectoryNotEmptyException) {
            return "Directory not empty";
        } else if (failure instanceof NotDirectoryException) {
            return "Not a directory";
        } else {
            return failure instanceof FileSystemLoopException ? "Too many levels of symbolic links" : null;
        }
    }
}
