package io.millstream.hadoop.natives;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Random;

/** Trees for tests. */
public final class Trees {
    public static final List<String> NASTY_NAMES = List.of(
            "plain",
            "with space",
            "per%cent",
            "per%20cent",
            "hash#",
            "quest?ion",
            "plus+",
            "amp&",
            "semi;",
            "at@",
            "quote'",
            "double\"",
            "back\\slash",
            "tab\t",
            "line\nbreak",
            "colon:",
            "a:b",
            ":",
            "ünï",
            "日本",
            "\u00a0nbsp",
            "\u2003em",
            "emoji😀",
            "{brace}",
            "a,b",
            "~tilde",
            "eq=uals",
            "comb\u0301",
            "$dollar",
            "[x]",
            "*star",
            "^hat",
            "|pipe",
            "<lt>",
            "\u007f",
            "\u0085",
            " ",
            "%",
            "#",
            "?",
            "...",
            ".hidden",
            "_under");

    private Trees() {}

    public static void write(Path file, int size) throws IOException {
        Files.createDirectories(file.getParent());
        Files.write(file, new byte[size]);
        Files.setLastModifiedTime(file, FileTime.fromMillis(1_234_567_890_123L + size));
    }

    /** Directories and files of random shape, with nasty names, links of all kinds and checksum files. */
    public static void random(Path root, Random random) throws IOException {
        Files.createDirectories(root);
        Path[] directories = {root, root, root, root, root, root};
        for (int i = 0; i < 120; i++) {
            Path parent = directories[random.nextInt(directories.length)];
            Path child = parent.resolve(
                    NASTY_NAMES.get(random.nextInt(NASTY_NAMES.size())) + (random.nextInt(3) == 0 ? i : ""));
            if (Files.exists(child, java.nio.file.LinkOption.NOFOLLOW_LINKS)) {
                continue;
            }
            switch (random.nextInt(8)) {
                case 0, 1 -> {
                    Files.createDirectory(child);
                    directories[random.nextInt(directories.length)] = child;
                }
                case 2 -> Files.createSymbolicLink(child, Path.of("nowhere"));
                case 3 -> write(parent.resolve("." + child.getFileName() + ".crc"), 3);
                default -> write(child, random.nextInt(5));
            }
        }
        Files.createSymbolicLink(
                root.resolve("link to directory"), directories[0].equals(root) ? Path.of("/etc/apt") : directories[0]);
    }
}
