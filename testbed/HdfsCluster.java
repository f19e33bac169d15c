import java.io.File;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.minikdc.MiniKdc;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * HdfsCluster PORT DIRECTORY HOSTS [kerberos]: a name node, and a data node for each of the host names HOSTS, in this
 * JVM. The name node gives clients these host names for blocks, although all nodes are on this machine.
 *
 * <p>With {@code kerberos}, there is also a key distribution center. DIRECTORY then has krb5.conf, a keytab of the user
 * {@code reader}, and core-site.xml for clients. DIRECTORY/http has the address of the name node's metrics. The file
 * DIRECTORY/ready appears when the cluster is ready. DIRECTORY/stop-N stops data node N, and is removed afterwards.
 */
public final class HdfsCluster {
  private static final String SERVICE = "hdfs/localhost";
  private static final String USER = "reader";

  public static void main(String[] arguments) throws Exception {
    Path directory = Path.of(arguments[1]);
    String[] hosts = arguments[2].split(",");
    Configuration conf = new HdfsConfiguration();
    if (arguments.length > 3) {
      secure(conf, directory);
    }
    MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(conf).nameNodePort(Integer.parseInt(arguments[0])).numDataNodes(hosts.length).format(true);
    if (!hosts[0].isEmpty()) {
      builder.hosts(hosts);
    }
    MiniDFSCluster cluster = builder.build();
    cluster.waitActive();
    if (UserGroupInformation.isSecurityEnabled()) {
      open(cluster.getFileSystem());
    }
    Files.writeString(directory.resolve("http"), "127.0.0.1:" + cluster.getNameNode().getHttpAddress().getPort());
    Files.createFile(directory.resolve("ready"));
    stopOnDemand(List.copyOf(cluster.getDataNodes()), directory);
  }

  /** Stops data nodes until this process is ended. The name node considers a stopped one alive for ten minutes. */
  private static void stopOnDemand(List<DataNode> nodes, Path directory) throws Exception {
    while (true) {
      Thread.sleep(50);
      for (int i = 0; i < nodes.size(); i++) {
        Path demand = directory.resolve("stop-" + i);
        if (Files.exists(demand)) {
          nodes.get(i).shutdown();
          Files.delete(demand);
        }
      }
    }
  }

  /** Lets all users write, except to /private. */
  private static void open(DistributedFileSystem fileSystem) throws Exception {
    fileSystem.setPermission(new org.apache.hadoop.fs.Path("/"), new FsPermission("777"));
    org.apache.hadoop.fs.Path secret = new org.apache.hadoop.fs.Path("/private");
    fileSystem.mkdirs(secret, new FsPermission("700"));
    fileSystem.create(new org.apache.hadoop.fs.Path(secret, "a.txt")).close();
  }

  private static void secure(Configuration conf, Path directory) throws Exception {
    Properties settings = MiniKdc.createConf();
    // Its realm is for this machine alone, and looking for it elsewhere takes seconds.
    settings.setProperty(MiniKdc.KDC_BIND_ADDRESS, InetAddress.getLoopbackAddress().getHostAddress());
    MiniKdc kdc = new MiniKdc(settings, directory.toFile());
    kdc.start();
    File service = directory.resolve("service.keytab").toFile();
    kdc.createPrincipal(service, SERVICE, "HTTP/localhost");
    kdc.createPrincipal(directory.resolve("reader.keytab").toFile(), USER);
    Files.copy(kdc.getKrb5conf().toPath(), directory.resolve("client-krb5.conf"));
    String realm = "@" + kdc.getRealm();
    Map<String, String> ofClients = Map.of(
        "hadoop.security.authentication", "kerberos",
        "dfs.namenode.kerberos.principal", SERVICE + realm,
        // The renewer of tokens, which Hadoop requires although none is renewed.
        "yarn.resourcemanager.principal", SERVICE + realm,
        "dfs.data.transfer.protection", "authentication");
    Configuration client = new Configuration(false);
    ofClients.forEach(client::set);
    ofClients.forEach(conf::set);
    try (var out = Files.newOutputStream(directory.resolve("core-site.xml"))) {
      client.writeXml(out);
    }
    conf.set("dfs.namenode.keytab.file", service.getPath());
    conf.set("dfs.datanode.keytab.file", service.getPath());
    conf.set("dfs.datanode.kerberos.principal", SERVICE + realm);
    conf.set("dfs.web.authentication.kerberos.principal", "HTTP/localhost" + realm);
    conf.set("dfs.web.authentication.kerberos.keytab", service.getPath());
    conf.setBoolean("dfs.block.access.token.enable", true);
    // Data nodes of a secure cluster would want ports that only root may use, or HTTPS.
    conf.setBoolean("ignore.secure.ports.for.testing", true);
    UserGroupInformation.setConfiguration(conf);
    UserGroupInformation.loginUserFromKeytab(SERVICE + realm, service.getPath());
  }
}
