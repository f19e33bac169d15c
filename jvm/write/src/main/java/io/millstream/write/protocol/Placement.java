package io.millstream.write.protocol;

import io.millstream.write.store.Stores;
import io.millstream.write.store.TaskAttempt;
import java.io.IOException;
import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** Determines where the tasks of a job write; serialised to them. */
public final class Placement implements Serializable {
    private static final long serialVersionUID = 1;

    private final String table;
    private final String job;

    public Placement(Path table, String job) {
        this.table = table.toString();
        this.job = job;
    }

    /**
     * Prepares a configuration for writers to the paths of {@link TaskAttempt#file}.
     *
     * @param conf the writers' configuration
     */
    public static void prepare(Configuration conf) {
        // By name, so that the class is not loaded where S3A is missing.
        conf.set("fs.direct-s3a.impl", "io.millstream.write.store.s3a.S3aUploadFileSystem");
    }

    /**
     * Begins a task attempt.
     *
     * @param id unique within the job, also among repeated and speculative attempts: letters, digits and {@code _}
     * @param conf of the file system
     * @return the attempt
     * @throws IOException if the file system cannot be reached
     */
    public TaskAttempt attempt(String id, Configuration conf) throws IOException {
        if (!id.matches("\\w+")) {
            throw new IllegalArgumentException("not the id of a task attempt: " + id);
        }
        return new JobAttempt(Stores.of(new Path(table), conf), job, id);
    }
}
