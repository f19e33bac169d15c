package io.millstream.hadoop.listing;

/** The names that Spark ignores in a data set; its {@code HadoopFSUtils} has the rules. */
public final class DatasetNames {
    private DatasetNames() {}

    /** Whether Spark ignores a file, or a directory with all its contents. */
    public static boolean isHidden(String name) {
        boolean hidden =
                name.startsWith(".") || name.startsWith("_") && name.indexOf('=') < 0 || name.endsWith("._COPYING_");
        return hidden && !isSummary(name);
    }

    /** Whether Spark reads a file as data: it lists Parquet's summaries, but does not read them. */
    public static boolean isData(String name) {
        return !isHidden(name) && !(name.startsWith("_") && name.indexOf('=') < 0);
    }

    /** Whether a name is, or begins like, the name of a Parquet summary. */
    public static boolean isSummary(String name) {
        return name.startsWith("_metadata") || name.startsWith("_common_metadata");
    }
}
