package io.millstream.write.protocol;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.Pause;
import io.millstream.write.store.Store;
import io.millstream.write.store.Stores;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** A job's or a recovery's access to a table. */
public record TableAccess(Path root, Store store, WriteOptions options, Metastore metastore, Waiting waiting) {
    /** How to wait for others, and the clock that measures it. */
    public interface Waiting {
        void pause(long millis) throws IOException;

        /** As {@link System#nanoTime}. */
        default long nanoTime() {
            return System.nanoTime();
        }
    }

    public static TableAccess of(Path table, Configuration conf, Metastore metastore) throws IOException {
        Path root = table.getFileSystem(conf).makeQualified(table);
        return new TableAccess(root, Stores.of(root, conf), new WriteOptions(conf), metastore, Pause::sleep);
    }

    /** The files of a list that have been neither rewritten nor removed. */
    public List<OldFile> unchanged(List<OldFile> files) throws IOException {
        Set<String> directories = files.stream().map(OldFile::directory).collect(Collectors.toSet());
        Set<OldFile> found = new HashSet<>(store.list(directories, false));
        return files.stream().filter(found::contains).toList();
    }

    /** The table's directory now, under the name that a record has for it if that still leads there. */
    String rootAs(String recorded) throws IOException {
        return store.isAlso(recorded) ? recorded : root.toString();
    }

    public TableAccess through(Store other) {
        return new TableAccess(root, other, options, metastore, waiting);
    }
}
