package io.millstream.write.store.local;

import java.io.IOException;
import java.nio.file.AccessMode;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether the kernel lets this process remove and rename files: in directories to which it may write and, if a
 * directory has the sticky bit, only its own files. When in doubt, the answer is yes.
 */
final class Rights {
    private static final Logger LOG = LoggerFactory.getLogger(Rights.class);
    static final int STICKY = 01000;
    /** The number of Linux's capability that exempts a process from the sticky bit. */
    private static final int CAP_FOWNER = 3;

    /** The ids of the process's user: here, and on a server that maps ids. */
    private final Set<Integer> users = new HashSet<>();

    private final boolean isExempt;

    /**
     * The rights of this process.
     *
     * @param own a file that it has created
     * @param isNfs whether a server decides, which knows no capabilities, only root
     */
    Rights(Path own, boolean isNfs) throws IOException {
        int user = (int) Files.getAttribute(own, "unix:uid");
        users.add(user);
        Map<String, String> process = process();
        if (process.containsKey("Uid") && process.containsKey("CapEff")) {
            users.add(user(process));
            boolean hasCapability = (Long.parseUnsignedLong(process.get("CapEff"), 16) >> CAP_FOWNER & 1) != 0;
            isExempt = isNfs ? user == 0 : hasCapability;
        } else {
            isExempt = true;
        }
    }

    /** The user of this process, as file systems know it; null if the kernel's description lacks it. */
    static Integer user(Map<String, String> process) {
        String ids = process.get("Uid");
        // Real, effective, saved and file system id.
        return ids == null ? null : Integer.valueOf(Integer.parseUnsignedInt(ids.split("\\s+")[3]));
    }

    /** The kernel's description of this process; empty if it is not available. */
    static Map<String, String> process() {
        Map<String, String> fields = new HashMap<>();
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                String[] field = line.split(":", 2);
                fields.put(field[0], field[field.length - 1].strip());
            }
        } catch (IOException e) {
            LOG.debug("The kernel does not describe this process", e);
        }
        return fields;
    }

    /**
     * Checks that files can be removed and renamed.
     *
     * @param directory their directory
     * @param files may be missing
     * @throws IOException if it is certain that they cannot
     */
    void require(Path directory, Stream<Path> files) throws IOException {
        Map<String, Object> attributes = modeAndOwner(directory);
        if (attributes == null) {
            return;
        }
        requireWritable(directory);
        boolean isSticky = ((int) attributes.get("mode") & STICKY) != 0;
        if (isSticky && !isExempt && !users.contains(attributes.get("uid"))) {
            for (Iterator<Path> all = files.iterator(); all.hasNext(); ) {
                requireOwned(all.next(), directory);
            }
        }
    }

    /** The {@code mode} and the {@code uid} of a directory; null if it is missing. */
    static Map<String, Object> modeAndOwner(Path directory) throws IOException {
        try {
            return Files.readAttributes(directory, "unix:mode,uid");
        } catch (NoSuchFileException e) {
            return null;
        }
    }

    private static void requireWritable(Path directory) throws IOException {
        try {
            directory.getFileSystem().provider().checkAccess(directory, AccessMode.WRITE, AccessMode.EXECUTE);
        } catch (IOException answer) {
            // A server's answer is only advice.
            try {
                TouchedDirectory.createAndDelete(directory);
            } catch (NoSuchFileException e) {
                return;
            } catch (IOException e) {
                e.addSuppressed(answer);
                String reason = e instanceof FileSystemException system && system.getReason() != null
                        ? system.getReason()
                        : "Permission denied";
                throw new IOException(
                        directory + " belongs to " + owner(directory)
                                + ", and the user of this process may not remove or rename files in it (" + reason
                                + "); nothing is written. Grant that user write permission there, or run the statement as a user who has it",
                        e);
            }
        }
    }

    /** Whether a file, or a link, belongs to the user of this process. */
    boolean isOwn(Path file) throws IOException {
        return users.contains(Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS));
    }

    private void requireOwned(Path file, Path directory) throws IOException {
        try {
            if (!isOwn(file)) {
                throw new IOException(
                        file + " belongs to " + owner(file) + ", and its directory, owned by " + owner(directory)
                                + ", has the sticky bit: only these users"
                                + " and root may remove or rename the file; nothing is written. Run the statement as one of them, or clear the bit with chmod -t");
            }
        } catch (NoSuchFileException e) {
            return; // another program has removed it
        }
    }

    private static String owner(Path path) throws IOException {
        return Files.getOwner(path, LinkOption.NOFOLLOW_LINKS).getName();
    }
}
