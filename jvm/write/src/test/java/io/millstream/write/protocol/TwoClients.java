package io.millstream.write.protocol;

import java.io.IOException;
import org.apache.hadoop.fs.Path;

/**
 * Runs {@link DeathContract} on two mounts of one NFS export that share no cache. Drivers die on the first; readers,
 * recovery and the next writer use the second, as on another machine. This is a program because the guest of
 * testbed/kernel-nfs has no Maven; tests/spark/cases/slow_kernel_nfs_writes.py runs it.
 */
final class TwoClients extends DeathContract implements LocalStore {
    private final String first;
    private final String second;
    private int tables;

    private TwoClients(String first, String second) {
        this.first = first;
        this.second = second;
    }

    @Override
    public java.nio.file.Path newLocalTable() {
        return java.nio.file.Path.of(first, "table" + tables++);
    }

    @Override
    Path seenByOthers(Path table) {
        return new Path("file://" + second + "/" + table.getName());
    }

    /** A case of the contract. */
    private interface Case {
        void run() throws IOException;
    }

    private void run(String name, Case contract) throws IOException {
        int before = tables;
        contract.run();
        System.out.println(name + ": " + (tables - before) + " tables");
    }

    /**
     * Runs the contract.
     *
     * @param mounts the mount points of the two clients
     */
    public static void main(String[] mounts) throws IOException {
        TwoClients clients = new TwoClients(mounts[0], mounts[1]);
        clients.run("insertInto", clients::insertInto);
        clients.run("overwriteOfDynamicPartitions", clients::overwriteOfDynamicPartitions);
        clients.run("overwriteOfTheTable", clients::overwriteOfTheTable);
        clients.run("theNextWriterRecoversAsTheCommandDoes", clients::theNextWriterRecoversAsTheCommandDoes);
    }
}
