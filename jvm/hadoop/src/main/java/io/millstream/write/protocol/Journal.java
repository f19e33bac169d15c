package io.millstream.write.protocol;

import io.millstream.write.store.Names;
import io.millstream.write.store.Store;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The journal as one listing shows it. All of it is flat in one directory, whose changes by others an NFS client sees once it has
 * made a change of its own.
 *
 * <pre>
 * JOB.begin          made first; removed once the job is over
 * JOB.lease          written again and again while the job's driver lives
 * JOB.abandoned      the driver has given up: as if the lease had run out
 * JOB.commit         made once: the commit record, or that the job is aborted
 * JOB.published      made once, before anything old is deleted: all files are published, or the commit is revoked ({@link Publication})
 * done-N-KIND-JOB    made once: the job is over, and this is how it ended ({@link Ending}); N is the number of its commit lock
 * JOB.superseded     the job is over; another writer came first in some directories, and its files for them are kept
 * JOB.replaced       the job is over; what a swap has replaced is still there, for those who have found it before
 * lock-N             the commit lock: the job that commits, or did
 * </pre>
 *
 * The newest {@code done} of all, and the newest of a job that overwrote, are kept for good: they are the {@link TableVersion} by which a
 * statement sees that a table has changed since it began to read it.
 */
public final class Journal {
  private static final String LEASE = ".lease";
  private static final String ABANDONED = ".abandoned";
  private static final String COMMIT = ".commit";
  private static final String PUBLISHED = ".published";
  private static final String SUPERSEDED = ".superseded";
  private static final String REPLACED = ".replaced";
  private static final String LOCK = "lock-";
  private static final Pattern LOCKS = Pattern.compile(LOCK + "\\d{1,18}");
  private static final Pattern DONE = Pattern.compile("done-(?<number>\\d{1,18})-(?<kind>[a-z]+)-(?<job>.+)");

  /** Of entries that say all by being there. */
  public static final byte[] NOTHING = new byte[0];

  /** What a job changed. */
  public enum Kind {
    /** It added files. */
    INTO,
    /** It replaced files, or was taken back when some of its files may have been visible: files that a reader has listed may be gone. */
    OVER;

    String word() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** The mark of a job that is over. */
  public record Done(long number, Kind kind, String job, long millis) {
    String entry() {
      return done(number, kind, job);
    }
  }

  /** A job in the journal; 0 is the time of what is not there. */
  public static final class Job {
    public final String id;
    private long begunMillis;
    private long renewedMillis;
    private long decidedMillis;
    private long publishedMillis;
    private long replacedMillis;
    private boolean superseded;
    private boolean abandoned;
    private Done done;

    private Job(String id) {
      this.id = id;
    }

    /** Whether a mark says so. That anything else is missing proves nothing. */
    public boolean isFinished() {
      return done != null;
    }

    /** Its mark; null if it is not finished. */
    Done done() {
      return done;
    }

    /** Whether its driver has begun, and nobody has cleaned up yet. */
    public boolean hasBegun() {
      return begunMillis != 0;
    }

    /** Whether there is a record, or the word that there never will be one. */
    public boolean isDecided() {
      return decidedMillis != 0;
    }

    /** When its begin was made; 0 if it is not there. */
    long begunMillis() {
      return begunMillis;
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

    /** Whether its files are kept for directories in which another writer came first. */
    public boolean isSuperseded() {
      return superseded;
    }

    public boolean isAbandoned() {
      return abandoned;
    }

    /** Whether nothing but its mark is there: its own driver has ended it. */
    private boolean isCleanedUp() {
      return !hasBegun() && !isDecided() && publishedMillis == 0 && replacedMillis == 0;
    }

    /** When anything of it was last written. */
    long lastMillis() {
      return Math.max(Math.max(decidedMillis, publishedMillis), lastSignMillis());
    }
  }

  private final Map<String, Job> jobs = new TreeMap<>();
  private final TreeMap<Long, String> locks = new TreeMap<>();
  private final TreeMap<Long, Done> done = new TreeMap<>();
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
    Matcher finished = DONE.matcher(name);
    if (name.startsWith(".")) {
      drafts.put(name, modifiedMillis);
    } else if (LOCKS.matcher(name).matches()) {
      locks.put(Long.parseLong(name.substring(LOCK.length())), name);
    } else if (finished.matches()) {
      addDone(new Done(Long.parseLong(finished.group("number")), kind(finished.group("kind")), finished.group("job"), modifiedMillis));
    } else if (dot > 0) {
      Job job = jobs.computeIfAbsent(name.substring(0, dot), Job::new);
      switch (name.substring(dot)) {
        case ".begin" -> job.begunMillis = modifiedMillis;
        case LEASE -> job.renewedMillis = modifiedMillis;
        case ABANDONED -> job.abandoned = true;
        case COMMIT -> job.decidedMillis = modifiedMillis;
        case PUBLISHED -> job.publishedMillis = modifiedMillis;
        case SUPERSEDED -> job.superseded = true;
        case REPLACED -> job.replacedMillis = modifiedMillis;
        default -> { }
      }
    }
  }

  private void addDone(Done mark) {
    done.put(mark.number, mark);
    jobs.computeIfAbsent(mark.job, Job::new).done = mark;
  }

  /** A kind that this version does not know may have changed anything. */
  private static Kind kind(String word) {
    return Arrays.stream(Kind.values()).filter(kind -> kind.word().equals(word)).findFirst().orElse(Kind.OVER);
  }

  /** Which jobs have changed the table so far. */
  public TableVersion version() {
    return new TableVersion(newest(EnumSet.allOf(Kind.class)), newest(EnumSet.of(Kind.OVER)));
  }

  private long newest(Set<Kind> kinds) {
    return done.descendingMap().values().stream().filter(mark -> kinds.contains(mark.kind)).mapToLong(Done::number).findFirst().orElse(0);
  }

  /**
   * Marks that nobody needs any more: of jobs that their own drivers have ended, and of all after some time. Those that say the table's version stay.
   *
   * @param next what the mark says that is made after this listing; null if there is none
   */
  List<String> forgettable(Kind next, long keptMillis) {
    TableVersion version = version();
    List<String> forgettable = new ArrayList<>();
    for (Done mark : done.values()) {
      boolean isVersion = mark.number == version.changed() && next == null || mark.number == version.overwritten() && next != Kind.OVER;
      Job job = jobs.get(mark.job);
      if (!isVersion && !job.superseded && (job.isCleanedUp() || nowMillis - mark.millis > keptMillis)) {
        forgettable.add(mark.entry());
      }
    }
    return forgettable;
  }

  public Iterable<Job> jobs() {
    return jobs.values();
  }

  /** A job, even one that the listing does not show. */
  Job job(String id) {
    return jobs.getOrDefault(id, new Job(id));
  }

  /** The time by the clock of the store, as the journal shows it. */
  public long nowMillis() {
    return nowMillis;
  }

  /** The commit locks that were taken, by number. */
  public TreeMap<Long, String> locks() {
    return locks;
  }

  /** What stores have written to make entries of, when it was last written; it stays if they die then. */
  public Map<String, Long> drafts() {
    return drafts;
  }

  /** The highest number of a commit lock that is known; 0 if none is. */
  long lastNumber() {
    return Math.max(locks.isEmpty() ? 0 : locks.lastKey(), done.isEmpty() ? 0 : done.lastKey());
  }

  public static String lock(long number) {
    return LOCK + number;
  }

  public static String begin(String job) {
    return Names.begin(job);
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

  public static String published(String job) {
    return job + PUBLISHED;
  }

  public static String superseded(String job) {
    return job + SUPERSEDED;
  }

  public static String replaced(String job) {
    return job + REPLACED;
  }

  /** Whether an entry says that a job is over. */
  static boolean isDone(String entry) {
    return DONE.matcher(entry).matches();
  }

  public static String done(long number, Kind kind, String job) {
    return "done-" + number + "-" + kind.word() + "-" + job;
  }

  /** What is removed, in this order, once a job is over; its {@code commit} is not, as the job itself may still ask for it. */
  public static List<String> signs(String job) {
    return List.of(begin(job), abandoned(job), lease(job));
  }

  /** What {@code JOB.begin} says: who runs the job, how long it may be silent, and in which directory, relative to the table's, all its files are. */
  public record Begin(String owner, long leaseMillis, String below) {
    private static final String UNKNOWN = "unknown";
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

    /**
     * What an entry says. One that is damaged, as by a power failure, must not stop the table: its driver's files are looked for everywhere.
     *
     * @param content of the entry
     * @param leaseMillis the lease of a job whose begin does not say it
     * @return as much as can be read
     */
    public static Begin of(byte[] content, long leaseMillis) {
      Properties properties = new Properties();
      try {
        properties.load(new StringReader(new String(content, StandardCharsets.UTF_8)));
        return new Begin(properties.getProperty(OWNER, UNKNOWN), Long.parseLong(properties.getProperty(LEASE_MILLIS)), properties.getProperty(BELOW, ""));
      } catch (IOException | IllegalArgumentException e) {
        return new Begin(UNKNOWN, leaseMillis, "");
      }
    }
  }
}
