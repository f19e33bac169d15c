package io.millstream.write.store.local;

import java.nio.file.Path;

/** The file in which Hadoop keeps the checksums of a file. */
final class Checksums {
    private Checksums() {}

    static Path of(Path file) {
        return file.resolveSibling(of(file.getFileName().toString()));
    }

    static String of(String name) {
        return "." + name + ".crc";
    }
}
