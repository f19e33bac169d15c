package io.millstream.write.store.local;

import io.millstream.write.store.HiddenFileStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;

/** A change of a directory that leaves nothing behind, and that everybody can make who may write to it. */
final class TouchedDirectory {
    private TouchedDirectory() {}

    /**
     * Creates and deletes a file, named like a staged file so that recovery removes it if the process dies in between.
     */
    static void createAndDelete(Path directory) throws IOException {
        Files.delete(Files.createFile(directory.resolve(HiddenFileStore.PREFIX + UUID.randomUUID() + "-0.touch")));
    }
}
