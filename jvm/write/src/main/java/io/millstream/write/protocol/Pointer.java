package io.millstream.write.protocol;

import io.millstream.write.store.Names;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An entry in the journal of the table of which a job's root directory is a part. A job on {@code t/p=1}, a directory
 * that is addressed by its path, has its own journal there; statements that read or write {@code t} find it by the
 * entry {@code below-JOB} in the journal of {@code t}, and need not look for journals in all partitions.
 *
 * <p>It is set after the job's begin entry is written and removed after that is removed, so a pointer without a begin
 * entry is outdated.
 *
 * <p>The root of a file system is above everything in it, so every statement would look at an entry there. It gets one
 * only if it has a journal, like the root directory of a table that was written directly.
 */
public final class Pointer {
    private static final Logger LOG = LoggerFactory.getLogger(Pointer.class);

    /** The table; null if the root directory is not part of one. */
    private final TableAccess table;

    private final String job;
    private final String root;
    private boolean isSet;

    private Pointer(TableAccess table, String job, String root) {
        this.table = table;
        this.job = job;
        this.root = root;
    }

    static Pointer none() {
        return new Pointer(null, "", "");
    }

    /** The pointer to a job, to be {@link #set}. */
    static Pointer to(String job, Path root, Configuration conf) throws IOException {
        Path qualified = root.getFileSystem(conf).makeQualified(root);
        Path table = Names.tableOf(qualified, path -> false);
        return table.equals(qualified) ? none() : to(job, qualified, TableAccess.of(table, conf, null));
    }

    /** The same for a table that is open. */
    static Pointer to(String job, Path root, TableAccess table) {
        return new Pointer(table, job, relative(table.root(), root));
    }

    private static String relative(Path above, Path below) {
        String top = above.toUri().getPath();
        return below.toUri().getPath().substring(above.isRoot() ? top.length() : top.length() + 1);
    }

    /** Creates the entry. The job continues without it if it may write only to its own directory. */
    void set() {
        if (table != null) {
            try {
                if (!table.root().isRoot() || !table.store().journal().isEmpty()) {
                    isSet = true;
                    table.store().begin(Journal.below(job), root.getBytes(StandardCharsets.UTF_8));
                }
            } catch (IOException e) {
                LOG.warn(
                        "Statements that read {} will not notice if this write to {} is killed: {}",
                        table.root(),
                        root,
                        e.toString());
            }
        }
    }

    /** Removes the entry. */
    void remove() {
        if (isSet) {
            remove(table, job);
        }
    }

    private static void remove(TableAccess table, String job) {
        try {
            table.store().remove(List.of(Journal.below(job)));
        } catch (IOException e) {
            LOG.debug("The pointer to job {} stays in the journal of {}", job, table.root(), e);
        }
    }

    /** The root directory of a job to which an entry of a table's journal points; null if the entry is gone. */
    public static Path root(TableAccess table, String job) throws IOException {
        byte[] content = table.store().read(Journal.below(job));
        return content == null ? null : Names.path(table.root(), new String(content, StandardCharsets.UTF_8));
    }

    /** Removes the entry of a job that is over. */
    public static void removeOutdated(TableAccess table, TableAccess part, String job) throws IOException {
        Journal.Job left = Journal.of(part.store()).job(job);
        boolean isUnfinished =
                !left.isFinished() && (left.isDecided() || part.store().read(Journal.begin(job)) != null);
        if (!isUnfinished) {
            remove(table, job);
        }
    }
}
