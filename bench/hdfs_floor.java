import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * Lists the files below an HDFS directory, and reads each with one call on 16 threads: the cost of the HDFS client
 * alone, without Spark. Reads the first data set of a bed three times, then prints the cost of the second, as JSON. Run
 * by bench/spark-remote, with the JSON file that describes the bed.
 */
final class HdfsFloor {
  private static final int THREADS = 16;
  private static final int LONGEST = 1 << 20;
  private static final OperatingSystemMXBean PROCESS = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  public static void main(String[] arguments) throws Exception {
    String facts = Files.readString(java.nio.file.Path.of(arguments[0]));
    for (int i = 0; i < 3; i++) {
      bytes(new Path(fact(facts, "warm")));
    }
    long start = System.nanoTime();
    long cpuStart = PROCESS.getProcessCpuTime();
    long bytes = bytes(new Path(fact(facts, "data")));
    double wallS = (System.nanoTime() - start) / 1e9;
    double cpuS = (PROCESS.getProcessCpuTime() - cpuStart) / 1e9;
    System.out.println(String.format(Locale.ROOT, "{\"wall_s\": %f, \"cpu_s\": %f, \"heap_mb\": 0, \"rows\": 0, \"sum\": %d}", wallS, cpuS, bytes));
  }

  private static String fact(String facts, String name) {
    Matcher found = Pattern.compile('"' + name + "\": \"([^\"]*)\"").matcher(facts);
    if (!found.find()) {
      throw new IllegalArgumentException("no " + name + " in " + facts);
    }
    return found.group(1);
  }

  /** The total size of the files. */
  private static long bytes(Path root) throws IOException, InterruptedException {
    FileSystem fileSystem = root.getFileSystem(new Configuration());
    List<Path> files = new ArrayList<>();
    for (RemoteIterator<LocatedFileStatus> found = fileSystem.listFiles(root, true); found.hasNext(); ) {
      files.add(found.next().getPath());
    }
    AtomicInteger next = new AtomicInteger();
    AtomicLong bytes = new AtomicLong();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      Thread thread = new Thread(() -> {
        byte[] buffer = new byte[LONGEST];
        for (int file = next.getAndIncrement(); file < files.size(); file = next.getAndIncrement()) {
          try (FSDataInputStream stream = fileSystem.open(files.get(file))) {
            bytes.addAndGet(stream.read(0, buffer, 0, LONGEST));
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        }
      });
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) {
      thread.join();
    }
    return bytes.get();
  }
}
