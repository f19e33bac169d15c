package io.millstream.write.protocol;

import org.junit.jupiter.api.io.TempDir;

/** What contracts of every store have in common: a local directory that is removed in the end. */
abstract class StoreContract implements TestStore {
    @TempDir
    java.nio.file.Path directory;

    private int tables;

    /** A path in the directory that does not exist: the first is {@code table0}. */
    public java.nio.file.Path newLocalTable() {
        return directory.resolve("table" + tables++);
    }
}
