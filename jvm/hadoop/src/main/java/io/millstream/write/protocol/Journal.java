package io.millstream.write.protocol;

import io.millstream.write.store.Store;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The journal as one listing shows it. All of it is flat in one directory, whose changes by others an NFS client sees once it has
 * made a change of its own.
 *
 * <pre>
 * JOB.begin      made first; removed when the job is settled: committed and applied, or rolled back
 * JOB.lease      written again and again while the job lives
 * JOB.abandoned  the owner has given up: as if the lease had run out
 * JOB.commit     made once: the commit record, or that the job is aborted
 * JOB.replaced   the job is settled; what a swap has replaced is still there, for those who have found it before
 * turn-N         the job that commits, or did
 * </pre>
 */
public final class Journal {
  private static final String BEGIN = ".begin";
  private static final String LEASE = ".lease";
  private static final String ABANDONED = ".abandoned";
  private static final String COMMIT = ".commit";
  private static final String REPLACED = ".replaced";
  private static final String TURN = "turn-";
  private static final Pattern TURNS = Pattern.compile(TURN + "\\d{1,18}");

  /** Of entries that say all by being there. */
  public static final byte[] NOTHING = new byte[0];

  /** A job in the journal; 0 is the time of what is not there. */
  public static final class Job {
    public final String id;
    private long begunMillis;
    private long renewedMillis;
    private long decidedMillis;
    private long replacedMillis;
    private boolean abandoned;

    private Job(String id) {
      this.id = id;
    }

    public boolean isSettled() {
      return begunMillis == 0;
    }

    /** Whether there is a record, or the word that there never will be one. */
    public boolean isDecided() {
      return decidedMillis != 0;
    }

    public long decidedMillis() {
      return decidedMillis;
    }

    public long lastSignMillis() {
      return Math.max(begunMillis, renewedMillis);
    }

    /** Since when what it has replaced is of no use; 0 if it is removed. */
    public long replacedMillis() {
      return replacedMillis;
    }

    public boolean isAbandoned() {
      return abandoned;
    }
  }

  private final Map<String, Job> jobs = new TreeMap<>();
  private final TreeMap<Long, String> turns = new TreeMap<>();
  private final Map<String, Long> drafts = new TreeMap<>();
  private long nowMillis;

  private Journal() { }

  public static Journal of(Store store) throws IOException {
    Journal journal = new Journal();
    for (Store.Entry entry : store.journal()) {
      journal.add(entry.name(), Math.max(1, entry.modifiedMillis()));
    }
    return journal.at(journal.jobs.values().stream().mapToLong(Job::lastSignMillis).max().orElse(0));
  }

  /** Takes the time for what it is, unless the journal shows that it is later. */
  public Journal at(long millis) {
    nowMillis = Math.max(nowMillis, millis);
    return this;
  }

  /** Leaves a job out, but not the time that it has shown. */
  public Journal without(String job) {
    jobs.remove(job);
    return this;
  }

  private void add(String name, long modifiedMillis) {
    int dot = name.lastIndexOf('.');
    if (TURNS.matcher(name).matches()) {
      turns.put(Long.parseLong(name.substring(TURN.length())), name);
    } else if (dot > 0 && !name.startsWith(".")) {
      Job job = jobs.computeIfAbsent(name.substring(0, dot), Job::new);
      switch (name.substring(dot)) {
        case BEGIN -> job.begunMillis = modifiedMillis;
        case LEASE -> job.renewedMillis = modifiedMillis;
        case ABANDONED -> job.abandoned = true;
        case COMMIT -> job.decidedMillis = modifiedMillis;
        case REPLACED -> job.replacedMillis = modifiedMillis;
        default -> { }
      }
    } else if (name.startsWith(".")) {
      drafts.put(name, modifiedMillis);
    }
  }

  public Iterable<Job> jobs() {
    return jobs.values();
  }

  /** A job, even one that the listing does not show. */
  public Job job(String id) {
    return jobs.getOrDefault(id, new Job(id));
  }

  /** A job that is not settled; null if it is, or is unknown. */
  public Job unsettled(String id) {
    Job job = jobs.get(id);
    return job == null || job.isSettled() ? null : job;
  }

  /** The time by the clock of the store, as the journal shows it. */
  public long nowMillis() {
    return nowMillis;
  }

  /** The turns that were taken, by number. */
  public TreeMap<Long, String> turns() {
    return turns;
  }

  /** What stores have written to make entries of, when it was last written; it stays if they die then. */
  public Map<String, Long> drafts() {
    return drafts;
  }

  public static String turn(long number) {
    return TURN + number;
  }

  public static String begin(String job) {
    return job + BEGIN;
  }

  public static String lease(String job) {
    return job + LEASE;
  }

  public static String abandoned(String job) {
    return job + ABANDONED;
  }

  public static String commit(String job) {
    return job + COMMIT;
  }

  public static String replaced(String job) {
    return job + REPLACED;
  }

  /** What is removed, in this order, to settle a job; its {@code commit} is not, as the job itself may still ask for it. */
  public static List<String> signs(String job) {
    return List.of(begin(job), abandoned(job), lease(job));
  }

  /** What {@code JOB.begin} says: who runs the job, how long it may be silent, and in which directory, relative to the table's, all its files are. */
  public record Begin(String owner, long leaseMillis, String below) {
    private static final String OWNER = "owner";
    private static final String LEASE_MILLIS = "lease.ms";
    private static final String BELOW = "below";

    public byte[] toBytes() throws IOException {
      Properties properties = new Properties();
      properties.setProperty(OWNER, owner);
      properties.setProperty(LEASE_MILLIS, Long.toString(leaseMillis));
      properties.setProperty(BELOW, below);
      StringWriter text = new StringWriter();
      properties.store(text, null);
      // Without the date, which is the entry's anyway: the same begin is the same bytes.
      return text.toString().lines().filter(line -> !line.startsWith("#")).collect(Collectors.joining("\n", "", "\n"))
          .getBytes(StandardCharsets.UTF_8);
    }

    public static Begin of(byte[] content) throws IOException {
      Properties properties = new Properties();
      try {
        properties.load(new StringReader(new String(content, StandardCharsets.UTF_8)));
        return new Begin(properties.getProperty(OWNER, "unknown"), Long.parseLong(properties.getProperty(LEASE_MILLIS)),
            properties.getProperty(BELOW, ""));
      } catch (IllegalArgumentException e) {
        throw new IOException("a job's begin in the journal is damaged", e);
      }
    }
  }
}
