package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("slow")
class HdfsDirectJobTest extends DirectJobContract implements HdfsStore {
    @Test
    void replacedFilesAreMovedToTheTrashIfEnabled() throws IOException {
        Configuration conf = newConfiguration();
        conf.setBoolean(WriteOptions.TRASH, true);
        TestTable trashing = new TestTable(fixture.table, conf);
        trashing.put("k=1/old", "o");

        trashing.run(Overwrite.touched(), "k=1", "n");

        Path trash = new Path(
                trashing.fs.getTrashRoot(trashing.table),
                "Current" + trashing.table.toUri().getPath() + "/k=1/old");
        assertEquals(1, trashing.fs.getFileStatus(trash).getLen());
        assertEquals(Set.of("k=1:n"), trashing.rows());
    }
}
