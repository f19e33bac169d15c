package io.millstream.write.recovery;

import io.millstream.write.protocol.DirectJob;
import io.millstream.write.protocol.Finding;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.metastore.Metastore;
import io.millstream.write.protocol.DirectJob;
import io.millstream.write.protocol.Failures;
import io.millstream.write.protocol.Journal;
import io.millstream.write.protocol.Lease;
import io.millstream.write.protocol.ReplacedFiles;
import io.millstream.write.protocol.Resolution;
import io.millstream.write.protocol.TableAccess;
import io.millstream.write.store.Store;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** Settles jobs whose drivers have died: what is committed is finished, everything else is removed. */
public final class Recovery {
  private Recovery() { }

  /**
   * Settles the dead jobs of a table.
   *
   * @param table its root
   * @param conf of the file system, with {@link WriteOptions}
   * @param metastore for jobs that have committed; null if there is none, and then such a job is an error
   * @param run whether anything is changed
   * @return a finding for each job in the journal, dead or alive
   * @throws IOException if the table cannot be reached, or a job cannot be settled; the others are
   */
  public static List<Finding> recover(Path table, Configuration conf, Metastore metastore, Run run) throws IOException {
    return recover(TableAccess.of(table, conf, metastore), run);
  }

  public static List<Finding> recover(TableAccess table, Run run) throws IOException {
    if (run == Run.DRY) {
      return recover(table, run, Journal.of(table.store()).at(System.currentTimeMillis()));
    }
    String own = "recovery-" + UUID.randomUUID();
    // Its time is the time by the clock of the store.
    table.store().create(Journal.begin(own), new Journal.Begin(DirectJob.owner(), table.options().leaseMillis, "").toBytes());
    Lease lease = new Lease(table, own);
    try {
      return recover(table, run, Journal.of(table.store()).without(own));
    } finally {
      lease.end();
      table.store().remove(Journal.signs(own));
    }
  }

  private static List<Finding> recover(TableAccess table, Run run, Journal journal) throws IOException {
    Resolution resolution = new Resolution(table);
    ReplacedFiles replaced = new ReplacedFiles(table);
    List<Finding> findings = new ArrayList<>();
    Failures failures = new Failures();
    for (Journal.Job job : journal.jobs()) {
      failures.in(() -> {
        if (!job.isSettled()) {
          findings.add(resolution.isDead(journal, job) ? resolution.examine(job.id, run) : alive(table, journal, job));
        } else if (replaced.mayGo(journal, job)) {
          findings.add(replaced.remove(job.id, run));
        }
      });
    }
    failures.in(() -> findings.addAll(orphans(table, run)));
    failures.check();
    return findings;
  }

  private static Finding alive(TableAccess table, Journal journal, Journal.Job job) throws IOException {
    byte[] content = table.store().read(Journal.begin(job.id));
    if (content == null) {
      return new Finding(job.id, "unknown", Verdict.ALIVE, List.of());
    }
    Journal.Begin begin = Journal.Begin.of(content);
    long silentMillis = Math.max(0, journal.nowMillis() - job.lastSignMillis());
    return new Finding(job.id, begin.owner(), Verdict.ALIVE,
        List.of(String.format("last sign of life %d s ago; dead after %d s without one", silentMillis / 1000, begin.leaseMillis() / 1000)));
  }

  /** What attempts have written of whose job nobody knows any more, or knows that it is settled. */
  private static List<Finding> orphans(TableAccess table, Run run) throws IOException {
    Store store = table.store();
    Set<String> settled = new HashSet<>();
    Journal.of(store).jobs().forEach(job -> {
      if (job.isSettled()) {
        settled.add(job.id);
      }
    });
    List<Store.Leftover> leftovers = store.leftovers("", job -> store.leftoversNameTheirJobs() || settled.contains(job));
    // Looked at after the files, so that a job that began meanwhile is in it.
    Journal journal = Journal.of(store);
    List<Store.Leftover> unknown = leftovers.stream().filter(leftover -> journal.unsettled(leftover.job()) == null).toList();
    Map<String, List<Store.Leftover>> orphans = store.withoutOtherRoots(unknown).stream()
        .collect(Collectors.groupingBy(Store.Leftover::job, TreeMap::new, Collectors.toList()));
    List<Finding> findings = new ArrayList<>();
    for (Map.Entry<String, List<Store.Leftover>> orphan : orphans.entrySet()) {
      if (run == Run.REAL) {
        store.discard(orphan.getValue());
      }
      findings.add(new Finding(orphan.getKey(), "unknown", Verdict.ROLL_BACK, Resolution.removals(orphan.getValue())));
    }
    return findings;
  }
}
