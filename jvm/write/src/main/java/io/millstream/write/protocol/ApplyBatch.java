package io.millstream.write.protocol;

import io.millstream.write.store.OldFile;
import io.millstream.write.store.Parallel;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.Stores;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** A part of a commit's apply that can run in any process: files to publish or to delete. */
public final class ApplyBatch implements Serializable {
    private static final long serialVersionUID = 1;

    private final String table;
    private final ArrayList<StagedFile> published;
    private final ArrayList<OldFile> deleted;
    private final HashMap<String, String> exchanges;

    public ApplyBatch(Path table, List<StagedFile> published, List<OldFile> deleted, Map<String, String> exchanges) {
        this.table = table.toString();
        this.published = new ArrayList<>(published);
        this.deleted = new ArrayList<>(deleted);
        this.exchanges = new HashMap<>(exchanges);
    }

    /**
     * Publishes and deletes the files.
     *
     * @param conf of the file system
     * @throws IOException if a step failed; the batch may be run again
     */
    public void run(Configuration conf) throws IOException {
        Store store = Stores.of(new Path(table), conf);
        List<Boolean> found = Parallel.map(
                new WriteOptions(conf).threads, published, file -> StagedFiles.publish(store, file, exchanges));
        List<StagedFile> missing = new ArrayList<>();
        for (int i = 0; i < published.size(); i++) {
            if (!found.get(i)) {
                missing.add(published.get(i));
            }
        }
        if (!missing.isEmpty()) {
            throw new IOException(StagedFiles.missing(new Path(table), missing));
        }
        store.delete(deleted);
    }
}
