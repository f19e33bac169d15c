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
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The journal as one listing shows it. All entries are in a single directory, so that an NFS client sees the changes of
 * others after its own change.
 *
 * <pre>
 * JOB.begin          written first; removed once the job is over
 * JOB.lease          rewritten repeatedly while the job's driver lives
 * JOB.abandoned      the driver has given up: as if the lease had expired
 * JOB.commit         written once: the commit record, or that the job is aborted
 * JOB.published      written once, before any old file is deleted: all files are published, or the commit is revoked
 *                    ({@link Publication})
 * done-N-KIND-JOB    written once: the job is over, and how it ended ({@link Ending}); N is the number of its commit
 *                    lock
 * JOB.superseded     the job is over; another program overwrote some directories first, and the job's files for them
 *                    are kept
 * JOB.replaced       the job is over; the files that a swap has replaced still exist, for queries planned before
 * lock-N             the commit lock of the job that commits, or did
 * below-JOB          a job in a directory of this table that has its own journal ({@link Pointer})
 * </pre>
 *
 * The newest {@code done} mark, and the newest of a job that overwrote files, are never removed: they are the
 * {@link TableVersion}, which tells a statement that a table has changed since it began to read it.
 */
public final class Journal {
    private static final String LEASE = ".lease";
    private static final String ABANDONED = ".abandoned";
    private static final String COMMIT = ".commit";
    private static final String PUBLISHED = ".published";
    private static final String SUPERSEDED = ".superseded";
    private static final String REPLACED = ".replaced";
    private static final String LOCK = "lock-";
    private static final String BELOW = "below-";
    private static final Pattern LOCKS = Pattern.compile(LOCK + "\\d{1,18}");
    private static final Pattern DONE = Pattern.compile("done-(?<number>\\d{1,18})-(?<kind>[a-z]+)-(?<job>.+)");

    /** Content of entries that matter only by existing. */
    public static final byte[] NOTHING = new byte[0];

    /** A job's effect on a table. */
    public enum Kind {
        /** It added files. */
        INTO,
        /**
         * It replaced files, or was revoked when some of its files may have been visible: files that a reader has
         * listed may be gone.
         */
        OVER;

        String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** The done mark of a job. */
    public record Done(long number, Kind kind, String job) {
        String entry() {
            return done(number, kind, job);
        }
    }

    /** A job in the journal; the time of a missing entry is 0. */
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

        /** Whether there is a done mark. The absence of other entries proves nothing. */
        public boolean isFinished() {
            return done != null;
        }

        /** Its done mark; null if it is not finished. */
        Done done() {
            return done;
        }

        /** Whether its driver has begun and the job is not cleaned up yet. */
        public boolean hasBegun() {
            return begunMillis != 0;
        }

        /** Whether it is committed or aborted. */
        public boolean isDecided() {
            return decidedMillis != 0;
        }

        /** When its begin entry was written; 0 if there is none. */
        long begunMillis() {
            return begunMillis;
        }

        public long decidedMillis() {
            return decidedMillis;
        }

        public long lastRenewalMillis() {
            return Math.max(begunMillis, renewedMillis);
        }

        /** When it replaced files that are still kept; 0 if none are kept. */
        public long replacedMillis() {
            return replacedMillis;
        }

        /** Whether its files for directories that another program overwrote first are kept. */
        public boolean isSuperseded() {
            return superseded;
        }

        public boolean isAbandoned() {
            return abandoned;
        }

        /** Whether only its done mark is left. */
        private boolean isCleanedUp() {
            return !hasBegun() && !isDecided() && !superseded && publishedMillis == 0 && replacedMillis == 0;
        }

        /** When any of its entries was last written. */
        long lastMillis() {
            return Math.max(Math.max(decidedMillis, publishedMillis), lastRenewalMillis());
        }
    }

    private final Map<String, Job> jobs = new TreeMap<>();
    private final TreeMap<Long, String> locks = new TreeMap<>();
    private final TreeMap<Long, Done> done = new TreeMap<>();
    private final Map<String, Long> drafts = new TreeMap<>();
    private final Set<String> below = new TreeSet<>();
    private long nowMillis;

    private Journal() {}

    public static Journal of(Store store) throws IOException {
        Journal journal = new Journal();
        for (Store.Entry entry : store.journal()) {
            journal.add(entry.name(), Math.max(1, entry.modifiedMillis()));
        }
        return journal.at(journal.jobs.values().stream()
                .mapToLong(Job::lastRenewalMillis)
                .max()
                .orElse(0));
    }

    /** Sets the current time, unless the journal shows a later one. */
    public Journal at(long millis) {
        nowMillis = Math.max(nowMillis, millis);
        return this;
    }

    /** Removes a job from this listing, but keeps the time that it has shown. */
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
        } else if (name.startsWith(BELOW)) {
            below.add(name.substring(BELOW.length()));
        } else if (finished.matches()) {
            addDone(new Done(
                    Long.parseLong(finished.group("number")), kind(finished.group("kind")), finished.group("job")));
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
                default -> {}
            }
        }
    }

    private void addDone(Done mark) {
        done.put(mark.number, mark);
        jobs.computeIfAbsent(mark.job, Job::new).done = mark;
    }

    /** An unknown kind counts as an overwrite: the job may have changed anything. */
    private static Kind kind(String word) {
        return Arrays.stream(Kind.values())
                .filter(kind -> kind.word().equals(word))
                .findFirst()
                .orElse(Kind.OVER);
    }

    /** The table's version: the last jobs that changed it. */
    public TableVersion version() {
        return new TableVersion(newest(EnumSet.allOf(Kind.class)), newest(EnumSet.of(Kind.OVER)));
    }

    private long newest(Set<Kind> kinds) {
        return done.descendingMap().values().stream()
                .filter(mark -> kinds.contains(mark.kind))
                .mapToLong(Done::number)
                .findFirst()
                .orElse(0);
    }

    /**
     * Done marks that are no longer needed: those of jobs that have no other entry left. However old a mark is, it
     * stays as long as a commit record, because a record without a mark means that the job has yet to be finished. The
     * marks that are the table's version stay.
     *
     * @param next the kind of the mark written after this listing; null if there is none
     */
    List<String> forgettable(Kind next) {
        TableVersion version = version();
        List<String> forgettable = new ArrayList<>();
        for (Done mark : done.values()) {
            boolean isVersion = mark.number == version.changed() && next == null
                    || mark.number == version.overwritten() && next != Kind.OVER;
            Job job = jobs.get(mark.job);
            if (!isVersion && job.isCleanedUp()) {
                forgettable.add(mark.entry());
            }
        }
        return forgettable;
    }

    /** Whether there are no entries, or there is no journal. */
    boolean isEmpty() {
        return jobs.isEmpty() && locks.isEmpty() && below.isEmpty();
    }

    public Iterable<Job> jobs() {
        return jobs.values();
    }

    /** A job, even one that the listing does not show. */
    Job job(String id) {
        return jobs.getOrDefault(id, new Job(id));
    }

    /**
     * How a job ended.
     *
     * @param store that of this journal
     * @return empty if it is not over, or its mark is no longer kept
     */
    public Optional<Ending> ending(Store store, String job) throws IOException {
        Done mark = job(job).done();
        return mark == null
                ? Optional.empty()
                : Optional.ofNullable(store.read(mark.entry())).map(Ending::of);
    }

    /** The current time by the store's clock, as far as the journal shows it. */
    public long nowMillis() {
        return nowMillis;
    }

    /** The entries of commit locks, by number. */
    public TreeMap<Long, String> locks() {
        return locks;
    }

    /** Jobs that have their own journals in directories of this table. */
    public Set<String> jobsBelow() {
        return below;
    }

    /**
     * Temporary files from which stores create entries, with their modification times; they stay if the process dies.
     */
    public Map<String, Long> drafts() {
        return drafts;
    }

    /** The highest known number of a commit lock; 0 if there is none. */
    long lastNumber() {
        return Math.max(locks.isEmpty() ? 0 : locks.lastKey(), done.isEmpty() ? 0 : done.lastKey());
    }

    /** Whether a job with this number of a commit lock, or a higher one, is over. */
    boolean hasReached(long number) {
        return !done.isEmpty() && done.lastKey() >= number;
    }

    public static String lock(long number) {
        return LOCK + number;
    }

    static String below(String job) {
        return BELOW + job;
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
        return Names.commit(job);
    }

    public static String published(String job) {
        return job + PUBLISHED;
    }

    public static String superseded(String job) {
        return Names.superseded(job);
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

    /**
     * The entries to remove, in this order, once a job is over. Its {@code commit} entry stays, because the job itself
     * may still read it.
     */
    public static List<String> liveEntries(String job) {
        return List.of(begin(job), abandoned(job), lease(job));
    }

    /**
     * The content of {@code JOB.begin}: the process that runs the job, the length of its lease, and the directory,
     * relative to the table's, that contains all its files.
     */
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
            // Without the date comment, so that equal entries have equal bytes.
            return text.toString()
                    .lines()
                    .filter(line -> !line.startsWith("#"))
                    .collect(Collectors.joining("\n", "", "\n"))
                    .getBytes(StandardCharsets.UTF_8);
        }

        /**
         * Reads an entry. A damaged entry, for example after a power failure, must not block the table: the job's files
         * are then looked for in the whole table.
         *
         * @param content the entry's content
         * @param leaseMillis the lease of a job whose entry does not contain it
         * @return as much of it as can be read
         */
        public static Begin of(byte[] content, long leaseMillis) {
            Properties properties = new Properties();
            try {
                properties.load(new StringReader(new String(content, StandardCharsets.UTF_8)));
                return new Begin(
                        properties.getProperty(OWNER, UNKNOWN),
                        Long.parseLong(properties.getProperty(LEASE_MILLIS)),
                        properties.getProperty(BELOW, ""));
            } catch (IOException | IllegalArgumentException e) {
                return new Begin(UNKNOWN, leaseMillis, "");
            }
        }
    }
}
