package io.millstream.write.protocol;

import io.millstream.write.metastore.Metastore;
import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.protocol.CommitPlan.Phase;
import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.store.Names;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.Uninterrupted;
import io.millstream.write.store.UnsuitedException;
import io.millstream.write.store.WriteOptions;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A job that writes files straight into a table's directories, from the driver's side: {@link #begin}, tasks that write through the
 * {@link #placement}, then {@link #commit} or {@link #abort}. A job that is neither, because its driver died, is resolved by the next
 * one that begins on the table, or by {@code Recovery}.
 */
public final class DirectJob implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(DirectJob.class);

  private enum State { RUNNING, UNFINISHED, OVER }

  private final TableAccess table;
  private final String id;
  private final String below;
  private final Resolution resolution;
  private final Lease lease;
  /** Of this process, before the job. */
  private final long earlierRequests;
  /** Whether there was nothing before this job: a statement that makes a table wants to find nothing when it is repeated. */
  private final boolean isFirst;
  private State state = State.RUNNING;
  private CommitLock.Held lock;
  /** Whether the record may be there. */
  private boolean hasTriedToCommit;

  private DirectJob(TableAccess table, String id, String below, long earlierRequests, boolean isFirst) {
    this.table = table;
    this.id = id;
    this.below = below;
    this.earlierRequests = earlierRequests;
    this.isFirst = isFirst;
    this.resolution = new Resolution(table);
    this.lease = new Lease(table, id);
  }

  /**
   * Why tables of a file system cannot be written directly.
   *
   * @param fs the table's
   * @return a sentence for a warning; empty if they can
   */
  public static Optional<String> whyNot(FileSystem fs) {
    return Store.whyNot(fs);
  }

  /**
   * Why directories of a table cannot change places ({@link CommitPlan#exchange}).
   *
   * @param table the root of what is written
   * @param conf of the file system, with {@link WriteOptions}
   * @return a sentence for a warning; empty if they can
   * @throws IOException if the file system cannot be reached
   */
  public static Optional<String> whyNoExchange(Path table, Configuration conf) throws IOException {
    return Store.whyNoExchange(table, conf);
  }

  /**
   * Resolves dead jobs of the table, then begins one.
   *
   * @param table the root of what is written, a table's or a partitioned directory's; made if it is not there
   * @param id of the job, a UUID that no other has; it is in the name of every file
   * @param below the directory, relative to the table's, that all its files will be in or below: where they are looked for if it fails; "" if that is not known
   * @param conf of the file system, with {@link WriteOptions}
   * @param metastore for dead jobs that have committed; null if there is none, and then such a job is an error
   * @return the job
   * @throws UnsuitedException if the file system has not what this needs, which nobody could know before
   * @throws IOException if the table cannot be reached, or a dead job cannot be resolved
   */
  public static DirectJob begin(Path table, String id, String below, Configuration conf, Metastore metastore) throws IOException {
    return begin(TableAccess.of(table, conf, metastore), id, below);
  }

  public static DirectJob begin(TableAccess table, String id, String below) throws IOException {
    if (!id.matches(Names.JOB)) {
      throw new IllegalArgumentException("the id of a job must be a UUID: " + id);
    }
    long earlierRequests = table.store().requests();
    boolean isFirst = table.store().isMissing();
    try {
      if (!table.store().begin(Journal.begin(id), new Journal.Begin(owner(), table.options().leaseMillis, below).toBytes())) {
        throw new IOException("there is a job " + id + " on " + table.root() + " already");
      }
    } catch (UnsuitedException e) {
      // The journal's directory, and the table's.
      table.store().remove(List.of());
      if (isFirst) {
        table.store().removeEmptyTree("");
      }
      throw e;
    }
    DirectJob job = new DirectJob(table, id, below, earlierRequests, isFirst);
    try {
      job.resolution.resolveDead(Journal.of(table.store()));
      return job;
    } catch (Throwable e) { // Scala's need not be declared
      job.abort();
      job.close();
      throw e;
    }
  }

  public static String owner() {
    String host;
    try {
      host = InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException e) {
      host = "unknown-host";
    }
    return System.getProperty("user.name") + "@" + host + " process " + ProcessHandle.current().pid();
  }

  /** The job's id. */
  public String id() {
    return id;
  }

  /** Where its tasks write. */
  public Placement placement() {
    return new Placement(table.root(), id);
  }

  /**
   * Commits: waits for the table's commit lock, lists what is overwritten, writes the commit record, and does what it says.
   *
   * @param plan what is to be done
   * @return what was done
   * @throws CommittedException if the record is written, but what it says is not all done: it will be, by the next statement on the table or a
   *     recovery
   * @throws SupersededException if the job is over, but a program that does not know the journal has replaced or removed rows of it meanwhile
   * @throws ConflictException if another job has changed the table since the statement read it: nothing is written
   * @throws IOException if the job is not committed: the table is as it was, and the job is to be aborted
   */
  public CommitOutcome commit(CommitPlan plan) throws IOException {
    if (state != State.RUNNING) {
      throw new IllegalStateException("job " + id + " is over");
    }
    Phases phases = new Phases(plan.listener);
    lock = phases.time(Phase.LOCK, () -> new CommitLock(table, resolution, id).take());
    if (plan.readVersion != null && plan.readVersion.changed() != Journal.of(table.store()).version().changed()) {
      throw new ConflictException("another statement has changed " + table.root() + " since this one began to read it: nothing is written, and it"
          + " can be run again");
    }
    CommitRecord record = phases.time(Phase.LIST, () -> record(plan));
    phases.time(Phase.RECORD, () -> {
      // What tasks have made is in directories that they may have made too.
      table.store().persist(touched(plan.files).stream().filter(d -> !d.isEmpty()).map(Names::parent).collect(Collectors.toSet()));
      if (record.isExchange()) {
        Exchanges.rehearse(table, plan.files, record.exchanges());
      }
      checkStaged(plan.files);
      decide(record.toBytes());
      return null;
    });
    state = State.UNFINISHED;
    Ending ending;
    try {
      ending = new Apply(table, id, record, plan.distribution, phases, Apply.Role.OWNER).run();
    } catch (IOException | RuntimeException | LinkageError e) {
      throw new CommittedException("job " + id + " on " + table.root() + " is committed, but is not finished yet: the next statement on the table, or"
          + " `millstream recover`, finishes it once the cause is gone. Cause: " + e.getMessage(), e);
    }
    phases.time(Phase.CLEAN, () -> clean(record, ending));
    return switch (ending.outcome()) {
      case COMPLETE -> outcome(record, phases);
      case REVOKED -> throw new IOException(ending.detail());
      case SUPERSEDED, MIXED, LOST -> throw new SupersededException(ending.detail());
    };
  }

  private CommitRecord record(CommitPlan plan) throws IOException {
    Set<String> touched = touched(plan.files);
    Map<String, String> exchanges = new HashMap<>();
    if (plan.places != null) {
      touched.forEach(made -> exchanges.put(made, plan.places.apply(made)));
    }
    CommitPlan.Found found = plan.survey.find(touched);
    Set<String> targets = new LinkedHashSet<>(targets(plan, touched, found, exchanges));
    List<OldFile> old = targets.isEmpty() ? List.of() : table.store().list(targets, true);
    List<OldFile> forgotten = new ArrayList<>(found == null ? List.of() : new ReplacedFiles(table).in(found.unclaimed()));
    forgotten.removeAll(old);
    MetastoreChange change = plan.metastorePlanner.plan(new Draft(table.store(), plan.files, old, forgotten));
    List<OldFile> deleted = new ArrayList<>(old);
    deleted.addAll(forgotten);
    List<String> emptied = plan.overwrite.isOfTouched() || plan.overwrite.isNothing() ? List.of() : List.copyOf(targets);
    boolean replaces = !plan.overwrite.isNothing() || !deleted.isEmpty();
    return new CommitRecord(lock.number(), table.root().toString(), owner(), below, replaces ? Journal.Kind.OVER : Journal.Kind.INTO,
        List.copyOf(targets), plan.files, deleted, emptied, change, exchanges);
  }

  /** Directories whose files are replaced. */
  private static Collection<String> targets(CommitPlan plan, Set<String> touched, CommitPlan.Found found, Map<String, String> exchanges) {
    if (plan.overwrite.isNothing()) {
      return found != null && found.replacesUnclaimed() ? found.unclaimed() : List.of();
    } else if (found != null) {
      return found.old();
    } else if (!plan.overwrite.isOfTouched()) {
      return plan.overwrite.directories();
    }
    return exchanges.isEmpty() ? touched : exchanges.values();
  }

  private static Set<String> touched(List<StagedFile> files) {
    Set<String> directories = new LinkedHashSet<>();
    files.forEach(f -> directories.add(f.directory()));
    return directories;
  }

  /** Who knows nothing of the journal may have removed files: once the record is there, nobody could do what it says. */
  private void checkStaged(List<StagedFile> files) throws IOException {
    List<StagedFile> missing = files.isEmpty() ? List.of() : table.store().missing(files);
    if (!missing.isEmpty()) {
      if (table.store().read(Journal.commit(id)) != null) {
        throw Resolution.lost(table, id);
      }
      throw new IOException(missing.size() + " files that job " + id + " on " + table.root() + " has written are gone before its commit, "
          + Apply.such(missing) + ": somebody else has removed them, and nothing is committed");
    }
  }

  /** The commit point. Returns if this job is committed. */
  private void decide(byte[] record) throws IOException {
    lease.check();
    hasTriedToCommit = true;
    boolean written;
    try {
      written = table.store().create(Journal.commit(id), record);
    } catch (IOException e) {
      // The record may be there, or may still come: one of the two is made impossible.
      try {
        written = Arrays.equals(resolution.abort(id), record);
      } catch (IOException unknown) {
        e.addSuppressed(unknown);
        throw new IOException("it is not known whether job " + id + " on " + table.root() + " is committed; a recovery decides", e);
      }
      if (!written) {
        throw e;
      }
    }
    if (!written) {
      throw Resolution.lost(table, id);
    }
  }

  /** What fails here is done again by whoever comes next, to no effect. */
  private Void clean(CommitRecord record, Ending ending) {
    // A sign that comes after the others are gone would stay.
    lease.end();
    boolean keepsFiles = ending.outcome() == Ending.Outcome.SUPERSEDED;
    if (!table.store().leftoversNameTheirJobs() && !keepsFiles) {
      discardLeftovers();
    }
    try {
      table.store().remove(Journal.signs(id));
      state = State.OVER;
      List<String> rest = new ArrayList<>(List.of(lock.entry()));
      Journal.Kind kind = ending.outcome() == Ending.Outcome.REVOKED ? Journal.Kind.NONE : record.kind();
      rest.addAll(lock.journal().forgettable(kind, Resolution.KEPT_MILLIS));
      if (!keepsFiles) {
        rest.add(Journal.published(id));
      }
      if (!keepsFiles && !record.hasReplaced()) {
        rest.add(Journal.commit(id));
      }
      table.store().remove(rest);
      if (record.hasReplaced() && table.options().keepReplacedMillis == 0) {
        new ReplacedFiles(table).tryRemove(id);
      }
    } catch (IOException e) {
      LOG.warn("Job {} on {} is committed and finished, but its journal could not be removed", id, table.root(), e);
    }
    return null;
  }

  /** Once the journal has forgotten the job, nobody can tell what its failed attempts have left. */
  private void discardLeftovers() {
    try {
      table.store().discard(table.store().leftovers(below, id::equals));
    } catch (IOException e) {
      LOG.warn("What failed attempts of job {} on {} may have left could not be looked for or removed", id, table.root(), e);
    }
  }

  private CommitOutcome outcome(CommitRecord record, Phases phases) {
    long bytes = record.added().stream().mapToLong(StagedFile::bytes).sum();
    return new CommitOutcome(record.added().size(), bytes, record.deleted().size(), touched(record.added()).size(),
        table.store().requests() - earlierRequests, record.added().stream().mapToLong(StagedFile::uploadRequests).sum(),
        Map.copyOf(phases.nanos()));
  }

  /**
   * Removes everything that the job's attempts have written. Does nothing after a commit; what fails is logged, and left to a
   * recovery.
   */
  public void abort() {
    if (state == State.RUNNING) {
      Uninterrupted.run(this::rollBack);
    }
  }

  private void rollBack() {
    try {
      if (hasTriedToCommit && !CommitRecord.isAborted(resolution.abort(id))) {
        LOG.error("Job {} on {} is committed, though its commit seemed to fail: a recovery finishes it", id, table.root());
        return;
      }
      lease.end();
      resolution.rollBack(id, below, Run.REAL);
      state = State.OVER;
      List<String> rest = new ArrayList<>();
      if (lock != null) {
        rest.add(lock.entry());
      }
      if (!hasTriedToCommit) {
        // Another may have written that it is aborted; nobody has to know that of a job that never asks.
        rest.add(Journal.commit(id));
      }
      table.store().remove(rest);
      if (isFirst) {
        table.store().removeEmptyTree("");
      }
    } catch (IOException | RuntimeException e) {
      LOG.warn("Job {} on {} is left to a recovery", id, table.root(), e);
    }
  }

  /** Stops giving signs of life. A job that was not committed counts as dead from then on. */
  @Override
  public void close() {
    lease.end();
    if (state != State.OVER) {
      Uninterrupted.run(this::giveUp);
    }
  }

  private void giveUp() {
    try {
      table.store().replace(Journal.abandoned(id), Journal.NOTHING);
    } catch (IOException | RuntimeException e) {
      LOG.warn("Others have to wait until the lease of job {} on {} runs out", id, table.root(), e);
    }
  }

  /** The files of a commit by their directories. */
  private record Draft(Store store, List<StagedFile> files, List<OldFile> old, List<OldFile> forgotten) implements CommitDraft {
    @Override
    public Map<String, Totals> added() {
      Map<String, Totals> totals = new HashMap<>();
      files.forEach(f -> totals.merge(f.directory(), new Totals(1, f.bytes()), Totals::plus));
      return totals;
    }

    @Override
    public Map<String, Totals> deleted() {
      return totals(old);
    }

    @Override
    public Map<String, Totals> present(Collection<String> directories) throws IOException {
      Set<OldFile> files = new HashSet<>(store.list(directories, false));
      forgotten.forEach(files::remove);
      old.forEach(files::remove);
      return totals(files);
    }

    private static Map<String, Totals> totals(Collection<OldFile> files) {
      Map<String, Totals> totals = new HashMap<>();
      files.forEach(f -> totals.merge(f.directory(), new Totals(1, f.bytes()), Totals::plus));
      return totals;
    }
  }
}
