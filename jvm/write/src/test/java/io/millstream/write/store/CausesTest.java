package io.millstream.write.store;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import org.junit.jupiter.api.Test;

class CausesTest {
    @Test
    void exceptionsThatSayJustAPathGetTheirReason() {
        assertEquals("/d/f: Permission denied", Causes.text(new AccessDeniedException("/d/f")));
        assertEquals("/d/f: No such file or directory", Causes.text(new NoSuchFileException("/d/f")));
        assertEquals("/d/f: File exists", Causes.text(new FileAlreadyExistsException("/d/f")));
        assertEquals("/d/f: Directory not empty", Causes.text(new DirectoryNotEmptyException("/d/f")));
        assertEquals("/d/f: Not a directory", Causes.text(new NotDirectoryException("/d/f")));
        assertEquals("/d/f: Too many levels of symbolic links", Causes.text(new FileSystemLoopException("/d/f")));
    }

    @Test
    void othersSayWhatTheySay() {
        assertEquals(
                "/d/f -> /d/g: Disk quota exceeded",
                Causes.text(new FileSystemException("/d/f", "/d/g", "Disk quota exceeded")));
        assertEquals("damaged", Causes.text(new IOException("damaged")));
    }
}
