package io.millstream.write.protocol;

import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.Path;

/** What every process that carries out a part of a commit does with staged files, and says about missing ones. */
final class StagedFiles {
    private static final int NAMED_FILES = 5;

    private StagedFiles() {}

    /** Publishes a file where it was staged, or in the directory that an exchange has moved it to. */
    static boolean publish(Store store, StagedFile file, Map<String, String> exchanges) throws IOException {
        String destination = exchanges.get(file.directory());
        return store.publish(file) || destination != null && store.publish(file.in(destination));
    }

    static String missing(Path table, List<StagedFile> files) {
        return files.size() + " of its files are neither staged nor published in " + table + ", " + examples(files)
                + ": another program has removed them";
    }

    static String examples(List<StagedFile> files) {
        return "such as "
                + files.stream().limit(NAMED_FILES).map(StagedFile::toString).collect(Collectors.joining(", "));
    }
}
