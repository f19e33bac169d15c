import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * YarnCluster DIRECTORY: a resource manager and a node manager in this JVM, whose default file system is the local one.
 * DIRECTORY gets yarn-site.xml and core-site.xml for clients. The file DIRECTORY/ready ends the start.
 */
public final class YarnCluster {
  public static void main(String[] arguments) throws Exception {
    try {
      serve(Path.of(arguments[0]));
    } catch (Throwable e) {
      e.printStackTrace();
      System.exit(1); // services that have started would keep the process
    }
  }

  private static void serve(Path directory) throws Exception {
    Configuration conf = new YarnConfiguration();
    conf.set("fs.defaultFS", "file:///");
    conf.setInt(YarnConfiguration.NM_PMEM_MB, 6144);
    conf.setInt(YarnConfiguration.RM_SCHEDULER_MINIMUM_ALLOCATION_MB, 128);
    conf.setBoolean(YarnConfiguration.NM_VMEM_CHECK_ENABLED, false);
    conf.setBoolean(YarnConfiguration.NM_PMEM_CHECK_ENABLED, false);
    // The disk of a developer's machine may be nearly full.
    conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "100.0");
    // The jar lacks capacity-scheduler.xml.
    conf.set("yarn.scheduler.capacity.root.queues", "default");
    conf.setInt("yarn.scheduler.capacity.root.default.capacity", 100);
    conf.setInt("yarn.scheduler.capacity.root.default.maximum-capacity", 100);
    conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1.0");
    MiniYARNCluster cluster = new MiniYARNCluster("cluster", 1, 1, 1);
    cluster.init(conf);
    cluster.start();
    if (!cluster.waitForNodeManagersToConnect(60_000)) {
      throw new IllegalStateException("the node manager does not connect");
    }
    write(cluster.getConfig(), directory.resolve("yarn-site.xml"));
    Configuration core = new Configuration(false);
    core.set("fs.defaultFS", "file:///");
    write(core, directory.resolve("core-site.xml"));
    Files.createFile(directory.resolve("ready"));
    Thread.currentThread().join();
  }

  private static void write(Configuration conf, Path file) throws Exception {
    try (OutputStream out = Files.newOutputStream(file)) {
      conf.writeXml(out);
    }
  }
}
