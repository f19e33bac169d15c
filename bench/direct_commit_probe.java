package io.millstream.write.protocol;

import io.millstream.write.protocol.CommitPlan.Phase;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Commits an overwrite of as many files as it writes, on the in-memory store of the protocol's tests: only the driver's
 * own work remains. Prints the cost of the second of two commits, as JSON. Run by bench/direct_commit_probe.py.
 */
final class DirectCommitProbe {
  private static final int FILES_A_PARTITION = 100;

  public static void main(String[] arguments) throws IOException {
    int files = Integer.parseInt(arguments[0]);
    commit(files);
    System.out.println(commit(files));
  }

  private static String commit(int files) throws IOException {
    MemoryStore store = new MemoryStore(new MemoryStore.Steps() {
      @Override
      public void before(String step) { }

      @Override
      public void after(String step, Object result) { }
    });
    Configuration conf = new Configuration(false);
    conf.setInt(WriteOptions.THREADS, 1); // the store takes one call at a time
    TableAccess table = new TableAccess(new Path("memory:///table"), store, new WriteOptions(conf), null, millis -> { });
    String id = UUID.randomUUID().toString();
    double[] liveMb = {liveMb(), 0};
    long start;
    long cpuStart;
    try (DirectJob job = DirectJob.begin(table, id, "")) {
      CommitPlan plan = new CommitPlan(written(store, id, files), Overwrite.touched());
      // Garbage collection is not part of the commit: its time is measured and subtracted.
      long[] lookedNs = {0, 0};
      start = System.nanoTime();
      cpuStart = cpuNs();
      job.commit(plan.listener((phase, done, total) -> {
        if (phase == Phase.PUBLISH && done == 0) {
          long lookStart = System.nanoTime();
          long lookCpuStart = cpuNs();
          liveMb[1] = liveMb();
          lookedNs[0] = System.nanoTime() - lookStart;
          lookedNs[1] = cpuNs() - lookCpuStart;
        }
      }));
      start += lookedNs[0];
      cpuStart += lookedNs[1];
    }
    double wallS = (System.nanoTime() - start) / 1e9;
    double cpuS = (cpuNs() - cpuStart) / 1e9;
    if (store.rows().size() != files) {
      throw new AssertionError(store.rows().size() + " files, not " + files);
    }
    return String.format(
        "{\"wall_s\": %.3f, \"cpu_s\": %.3f, \"heap_mb\": %.1f, \"rows\": %d}", wallS, cpuS, liveMb[1] - liveMb[0], files);
  }

  private static List<StagedFile> written(MemoryStore store, String id, int files) {
    List<StagedFile> written = new ArrayList<>();
    for (int i = 0; i < files; i++) {
      String partition = "year=2026/month=1/day=" + i / FILES_A_PARTITION;
      store.putVisible(partition, "part-" + i + "-0f9f6d4e-4c5c-4a0f-8f0a-2b8f1f0c1d2e.c000", "old");
      written.add(store.putStaged(id, partition, "part-" + i + "-" + id + ".c000"));
    }
    return written;
  }

  /** The CPU time of all threads of this JVM, including those of its compiler and collector. */
  private static long cpuNs() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }

  private static double liveMb() {
    System.gc();
    return (Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory()) / 1048576.0;
  }
}
