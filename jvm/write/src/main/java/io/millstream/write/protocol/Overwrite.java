package io.millstream.write.protocol;

import java.io.Serializable;
import java.util.List;

/** The directories whose files a commit replaces; the files themselves are listed at the commit. */
public final class Overwrite implements Serializable {
    private static final long serialVersionUID = 1;

    private enum Kind {
        NOTHING,
        TOUCHED,
        BELOW
    }

    private final Kind kind;
    private final List<String> directories;

    private Overwrite(Kind kind, List<String> directories) {
        this.kind = kind;
        this.directories = directories;
    }

    /** For INSERT INTO: replaces nothing. */
    public static Overwrite nothing() {
        return new Overwrite(Kind.NOTHING, List.of());
    }

    /** For dynamic partitions: replaces everything in and below the directories that get files. */
    public static Overwrite touched() {
        return new Overwrite(Kind.TOUCHED, List.of());
    }

    /**
     * For static partitions, unpartitioned tables and directories: replaces everything in and below the given
     * directories.
     *
     * @param directories relative to the table; {@code ""} is the table itself
     */
    public static Overwrite below(List<String> directories) {
        return new Overwrite(Kind.BELOW, List.copyOf(directories));
    }

    public boolean isNothing() {
        return kind == Kind.NOTHING;
    }

    public boolean isOfTouched() {
        return kind == Kind.TOUCHED;
    }

    /** The directories of a static overwrite; empty otherwise. */
    public List<String> directories() {
        return directories;
    }
}
