package io.millstream.write.protocol;

import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** An HDFS with one name node and one data node, which run in this process. */
final class HdfsTestCluster {
    private static final AtomicInteger TABLES = new AtomicInteger();
    private static MiniDFSCluster cluster;

    private HdfsTestCluster() {}

    private static synchronized MiniDFSCluster cluster() throws IOException {
        if (cluster == null) {
            Configuration conf = configuration();
            conf.set(
                    MiniDFSCluster.HDFS_MINIDFS_BASEDIR,
                    Files.createTempDirectory("millstream-hdfs").toString());
            conf.setInt("fs.trash.interval", 60); // set on the name node, where clients read it
            cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> cluster.shutdown(true)));
        }
        return cluster;
    }

    static Configuration configuration() {
        Configuration conf = new Configuration();
        // A client that closes a file sleeps 400 ms if the name node does not know its block yet, which is always the
        // case here.
        conf.setInt("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", 2);
        // The wait doubles with every retry; the usual number would give up after 60 ms, when the machine is busy.
        conf.setInt("dfs.client.block.write.locateFollowingBlock.retries", 12);
        return conf;
    }

    static Path newTable() throws IOException {
        return new Path(cluster().getFileSystem().getUri() + "/tables/t" + TABLES.incrementAndGet());
    }
}
