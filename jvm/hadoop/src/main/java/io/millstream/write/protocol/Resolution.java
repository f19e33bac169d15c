package io.millstream.write.protocol;

import io.millstream.write.protocol.Finding;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.protocol.Finding.Verdict;
import io.millstream.write.store.Store;
import io.millstream.write.store.SwapDirectories;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Settles jobs of dead drivers. Whether a job is committed is decided by who makes its {@code commit} first, the job or this. */
public final class Resolution {
  private static final Logger LOG = LoggerFactory.getLogger(Resolution.class);
  /** For how long attempts of a job that is aborted may go on, and the job itself may wake up: its {@code commit} is kept. */
  private static final long KEPT_MILLIS = TimeUnit.DAYS.toMillis(1);

  private final TableAccess table;
  private final ReplacedFiles replaced;

  public Resolution(TableAccess table) {
    this.table = table;
    this.replaced = new ReplacedFiles(table);
  }

  public static IOException lost(TableAccess table, String job) {
    return new IOException("job " + job + " on " + table.root() + " gave no sign of life, and was aborted by another");
  }

  /**
   * Forgets jobs that were settled long ago, and settles every dead one.
   *
   * @throws IOException if one cannot be settled; the others are
   */
  public void settleDead(Journal journal) throws IOException {
    forgetOld(journal);
    Failures failures = new Failures();
    for (Journal.Job job : journal.jobs()) {
      failures.in(() -> {
        if (!job.isSettled() && isDead(journal, job)) {
          settle(job.id);
        }
      });
    }
    failures.check();
  }

  private void forgetOld(Journal journal) throws IOException {
    List<String> forgotten = new ArrayList<>();
    for (Journal.Job job : journal.jobs()) {
      if (job.replacedMillis() != 0) {
        if (replaced.mayGo(journal, job)) {
          replaced.tryRemove(job.id);
        }
      } else if (job.isSettled() && isOld(journal, Math.max(job.decidedMillis(), job.lastSignMillis()))) {
        forgotten.addAll(Journal.signs(job.id));
        forgotten.add(Journal.commit(job.id));
      }
    }
    journal.drafts().forEach((draft, millis) -> {
      if (isOld(journal, millis)) {
        forgotten.add(draft);
      }
    });
    if (!forgotten.isEmpty()) {
      table.store().remove(forgotten);
    }
  }

  private static boolean isOld(Journal journal, long millis) {
    return journal.nowMillis() - millis > KEPT_MILLIS;
  }

  /** Whether a job's lease has run out, by the clock of the store. */
  public boolean isDead(Journal journal, Journal.Job job) throws IOException {
    if (job.isAbandoned()) {
      return true;
    }
    byte[] begin = table.store().read(Journal.begin(job.id));
    if (begin == null) {
      return false;
    }
    long leaseMillis = Journal.Begin.of(begin).leaseMillis();
    if (!isSilent(journal.nowMillis(), job, leaseMillis)) {
      return false;
    }
    // An NFS client may show an old time; it asks again for a file that it opens.
    table.store().read(Journal.lease(job.id));
    Journal again = Journal.of(table.store()).at(journal.nowMillis());
    Journal.Job still = again.unsettled(job.id);
    return still != null && isSilent(again.nowMillis(), still, leaseMillis);
  }

  private static boolean isSilent(long nowMillis, Journal.Job job, long leaseMillis) {
    return nowMillis - job.lastSignMillis() > leaseMillis;
  }

  /** Settles a dead job. */
  public Finding settle(String job) throws IOException {
    Finding finding = examine(job, Run.REAL);
    if (finding.verdict() != Verdict.ALIVE) {
      LOG.warn("Job {} of {} on {} was left by its driver: {}, {} steps", job, finding.owner(), table.root(), finding.verdict(),
          finding.steps().size());
    }
    return finding;
  }

  /** Settles a dead job, or says how it would be settled. */
  public Finding examine(String job, Run run) throws IOException {
    byte[] commit = table.store().read(Journal.commit(job));
    if (commit == null && run == Run.REAL) {
      commit = abort(job);
    }
    byte[] begin = table.store().read(Journal.begin(job));
    if (begin == null) {
      // It woke up, and finished before it could be aborted: what its directories hold is in use.
      return new Finding(job, "unknown", Verdict.ALIVE, List.of());
    }
    Journal.Begin begun = Journal.Begin.of(begin);
    if (commit == null || CommitRecord.isAborted(commit)) {
      return new Finding(job, begun.owner(), Verdict.ROLL_BACK, rollBack(job, begun.below(), run));
    }
    return new Finding(job, begun.owner(), Verdict.ROLL_FORWARD, rollForward(job, begun.below(), CommitRecord.of(commit), run));
  }

  /** Decides that a job is aborted, unless it is decided already; what its {@code commit} says. */
  public byte[] abort(String job) throws IOException {
    String entry = Journal.commit(job);
    return table.store().create(entry, CommitRecord.ABORTED) ? CommitRecord.ABORTED : table.store().read(entry);
  }

  /** Removes what an aborted job has written, below a directory. */
  public List<String> rollBack(String job, String below, Run run) throws IOException {
    List<Store.Leftover> leftovers = table.store().leftovers(below, job::equals);
    if (run == Run.REAL) {
      table.store().discard(leftovers);
      table.store().removeTree(SwapDirectories.root(job));
      table.store().remove(Journal.signs(job));
    }
    return removals(leftovers);
  }

  public static List<String> removals(List<Store.Leftover> leftovers) {
    return leftovers.stream()
        .map(l -> "remove " + l.path() + (l.uploadId() == null ? "" : " (upload " + l.uploadId() + ")"))
        .collect(Collectors.toCollection(ArrayList::new));
  }

  private List<String> rollForward(String job, String below, CommitRecord record, Run run) throws IOException {
    if (run == Run.REAL) {
      Phases unheard = new Phases((phase, done, total) -> { });
      new Apply(table, job, record, null, unheard).rollForward();
      // Of attempts that failed; nobody can tell once the journal has forgotten the job.
      table.store().discard(table.store().leftovers(below, job::equals));
      table.store().remove(Journal.signs(job));
    }
    List<String> steps = new ArrayList<>();
    record.added().forEach(f -> steps.add("publish " + f));
    record.exchanges().forEach((made, place) -> steps.add("exchange " + made + " and " + place));
    record.deleted().forEach(f -> steps.add((record.isSwap() ? "replace " : "delete ") + f));
    if (record.change() != null) {
      String name = record.change().database() + "." + record.change().table();
      record.change().partitions().forEach(p -> steps.add("change " + name + " partition " + p.name()));
      record.change().droppedPartitions().forEach(p -> steps.add("drop " + name + " partition " + p));
      steps.add("change " + name);
    }
    return steps;
  }
}
