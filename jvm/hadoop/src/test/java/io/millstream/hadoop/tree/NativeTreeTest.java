package io.millstream.hadoop.tree;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeTreeTest {
    @TempDir
    Path top;

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private NativeTree tree() {
        return new NativeTree(bytes(top.toString()), 0, 0);
    }

    @Test
    void entriesAreTheSharedVector() throws IOException {
        String hex =
                Files.readString(Path.of("../../testdata/tree-entries.hex")).strip();
        var entries = new NativeTree.Entries(HexFormat.of().parseHex(hex));
        assertArrayEquals("m\u00ff".getBytes(ISO_8859_1), entries.mount());
        var link = entries.next();
        assertArrayEquals("l\u00fe".getBytes(ISO_8859_1), link.name());
        assertEquals("to", new String(link.target(), ISO_8859_1));
        assertEquals(NativeTree.Kind.LINK, link.kind());
        assertEquals(3, link.size());
        assertEquals(-1_000_000_001L, link.mtime());
        assertEquals(0777, link.mode());
        assertEquals(-2, link.uid());
        assertEquals(7, link.gid());
        assertTrue(link.isMounted());
        assertEquals(5, link.device());
        assertEquals(-1, link.inode());
        assertEquals(3, link.links());
        assertEquals(0x301, link.number());
        assertEquals("000102030405060708090a0b0c0d0e0f", HexFormat.of().formatHex(link.acls()));
        assertEquals(0, link.xattrs().length);
        var failed = entries.next();
        assertEquals(NativeTree.Kind.FAILED, failed.kind());
        assertEquals("stat: Input/output error", new String(failed.target(), ISO_8859_1));
        assertFalse(failed.isMounted());
        assertNull(entries.next());
    }

    @Test
    void whatIsWrittenCanBeReadAndGetsItsName() throws IOException {
        try (var tree = tree()) {
            byte[] content = new byte[3 << 20];
            new java.util.Random(1).nextBytes(content);
            var staged = tree.stage(
                    bytes("f"), bytes(".tmp"), new NativeTree.Attributes(NativeTree.NONE, NativeTree.NONE, 0640, 1));
            staged.write(content);
            assertArrayEquals(content, staged.read().readAllBytes());
            assertNull(tree.status(bytes("f")));
            assertNull(staged.install());
            staged.close();
            assertArrayEquals(content, Files.readAllBytes(top.resolve("f")));
            try (var in = tree.open(bytes("f"))) {
                assertArrayEquals(content, in.readAllBytes());
            }
            var found = tree.status(bytes("f"));
            assertEquals(0640, found.mode());
            assertEquals(1, found.mtime());
            tree.stage(bytes("g"), bytes(".tmp"), NativeTree.Attributes.NOTHING).close();
            assertEquals(1, top.toFile().list().length);
        }
    }

    @Test
    void specialFilesAndHardLinksAreMade() throws IOException {
        byte[] none = {};
        try (var tree = tree()) {
            tree.makeSpecial(
                    bytes("pipe"), NativeTree.Kind.PIPE, none, 0, bytes(".tmp"), null, NativeTree.Attributes.NOTHING);
            tree.makeSpecial(
                    bytes("link"),
                    NativeTree.Kind.LINK,
                    bytes("to"),
                    0,
                    bytes(".tmp"),
                    tree,
                    NativeTree.Attributes.NOTHING);
            assertEquals(NativeTree.Kind.PIPE, tree.status(bytes("pipe")).kind());
            assertEquals("to", new String(tree.status(bytes("link")).target(), ISO_8859_1));
            tree.makeHardLink(bytes("other"), bytes("pipe"), bytes(".tmp"));
            assertEquals(
                    tree.status(bytes("pipe")).inode(),
                    tree.status(bytes("other")).inode());
            assertEquals(2, tree.status(bytes("pipe")).links());
            tree.setAttributes(
                    bytes("pipe"), tree, new NativeTree.Attributes(NativeTree.NONE, NativeTree.NONE, 0604, 5));
            assertEquals(0604, tree.status(bytes("other")).mode());
            assertThrows(
                    FileNotFoundException.class, () -> tree.makeHardLink(bytes("new"), bytes("none"), bytes(".tmp")));
            assertEquals(3, top.toFile().list().length);
        }
    }

    @Test
    void errorsAreThoseOfJava() throws IOException {
        var tree = tree();
        assertThrows(FileNotFoundException.class, () -> tree.open(bytes("none")));
        assertEquals(
                "a\\xff: open: No such file or directory",
                assertThrows(FileNotFoundException.class, () -> tree.open("a\u00ff".getBytes(ISO_8859_1)))
                        .getMessage());
        assertEquals(NativeTree.Removal.GONE, tree.remove(bytes("none")));
        tree.close();
        tree.close();
        assertThrows(InterruptedIOException.class, () -> tree.status(bytes("none")));
    }

    @Test
    void accountsHaveNames() throws IOException {
        assertEquals("root", NativeTree.userName(0));
        assertEquals(0, NativeTree.userId("root"));
        assertEquals(0, NativeTree.groupId("root"));
        assertEquals("4294967280", NativeTree.groupName(-16));
        assertEquals(-16, NativeTree.userId("4294967280"));
        assertThrows(IOException.class, () -> NativeTree.groupId("no such group"));
    }
}
