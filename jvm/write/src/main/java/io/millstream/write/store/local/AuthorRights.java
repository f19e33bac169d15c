package io.millstream.write.store.local;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Map;

/**
 * Whether the kernel would have let another user remove and rename files. The journal of a directory that everybody may
 * write to, such as {@code /tmp}, may name files of any user below it, and a process that finishes its jobs does so
 * with all rights of its own user.
 *
 * <p>A user's groups are not known here: a directory counts as writable to everybody if its mode lets its group or
 * others write. The mode includes the grants of a POSIX access control list; an NFSv4 list may grant more.
 */
final class AuthorRights {
    private static final int ROOT = 0;
    private static final int WRITABLE_TO_OTHERS = 0022;

    private final Path entry;
    private final Object author;

    private AuthorRights(Path entry, Object author) {
        this.entry = entry;
        this.author = author;
    }

    /**
     * The rights of the user to whom a journal entry belongs.
     *
     * @return null if that is root or the user of this process, or the entry is gone: another process has finished the
     *     job
     */
    static AuthorRights of(Path entry) throws IOException {
        try {
            Object author = Files.getAttribute(entry, "unix:uid", LinkOption.NOFOLLOW_LINKS);
            return author.equals(ROOT) || author.equals(Rights.user(Rights.process()))
                    ? null
                    : new AuthorRights(entry, author);
        } catch (NoSuchFileException e) {
            return null;
        }
    }

    /**
     * Checks that the user could remove and rename files in a directory.
     *
     * @param files their names; the files may be missing
     * @throws IOException if not
     */
    void require(Path directory, Collection<String> files) throws IOException {
        Map<String, Object> attributes = Rights.modeAndOwner(directory);
        if (attributes == null || attributes.get("uid").equals(author)) {
            return;
        }
        int mode = (int) attributes.get("mode");
        if ((mode & WRITABLE_TO_OTHERS) == 0) {
            throw refused("files in " + directory);
        }
        if ((mode & Rights.STICKY) != 0) {
            for (String name : files) {
                if (!isOf(author, directory.resolve(name))) {
                    throw refused(directory.resolve(name).toString());
                }
            }
        }
    }

    private static boolean isOf(Object user, Path file) throws IOException {
        try {
            return Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS)
                    .equals(user);
        } catch (NoSuchFileException e) {
            return true;
        }
    }

    private IOException refused(String files) throws IOException {
        String user = Files.getOwner(entry, LinkOption.NOFOLLOW_LINKS).getName();
        return new IOException(entry + " belongs to " + user + ", who may not remove or rename " + files
                + ": it is not applied with another user's rights. " + user
                + " can run millstream recover; if you do not trust the entry, remove " + entry.getParent());
    }
}
