package io.millstream.write.protocol;

import java.io.Serializable;
import java.util.List;

/** Which of the files that a table has are replaced by a commit; which exactly is seen at the commit. */
public final class Overwrite implements Serializable {
  private static final long serialVersionUID = 1;

  private enum Kind { NOTHING, TOUCHED, BELOW }

  private final Kind kind;
  private final List<String> directories;

  private Overwrite(Kind kind, List<String> directories) {
    this.kind = kind;
    this.directories = directories;
  }

  /** INSERT INTO: none. */
  public static Overwrite nothing() {
    return new Overwrite(Kind.NOTHING, List.of());
  }

  /** Dynamic partitions: everything in and below the directories that get files. */
  public static Overwrite touched() {
    return new Overwrite(Kind.TOUCHED, List.of());
  }

  /**
   * Static partitions, tables without partitions, directories: everything in and below the given directories.
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

  /** The directories that a static overwrite names; none for another. */
  public List<String> directories() {
    return directories;
  }
}
