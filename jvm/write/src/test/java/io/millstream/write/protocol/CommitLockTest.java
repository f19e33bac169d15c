package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.store.StagedFile;
import io.millstream.write.store.Store;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.test.GenericTestUtils.LogCapturer;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

class CommitLockTest {
    private static final String RESOLVED = TestTable.newId();
    private static final String HOLDER = TestTable.newId();
    private static final String LATE = TestTable.newId();

    private static final long LEASE_MILLIS = 120_000;

    private MemoryStore store;
    private boolean isHeld;

    /**
     * While a job is about to take the lock after that of a finished job, the journal is emptied, and another job takes
     * a lock with a lower number.
     */
    private void before(String step) throws IOException {
        if (step.startsWith("create lock-") && !isHeld) {
            isHeld = true;
            store.remove(List.of("lock-1"));
            store.create(Journal.begin(HOLDER), new Journal.Begin("test", 1, "").toBytes());
            store.create("lock-1", HOLDER.getBytes(StandardCharsets.UTF_8));
        }
    }

    private static TableAccess impatient(Store store) {
        Configuration conf = new Configuration(false);
        conf.setInt(WriteOptions.LOCK_WAIT_MILLIS, 0);
        return new TableAccess(new Path("memory:///table"), store, new WriteOptions(conf), null, millis -> {});
    }

    /** Time that passes only while somebody waits. */
    private static final class PassingTime implements TableAccess.Waiting {
        private long nanos;

        @Override
        public void pause(long millis) {
            nanos += TimeUnit.MILLISECONDS.toNanos(millis);
        }

        @Override
        public long nanoTime() {
            return nanos;
        }
    }

    private static TableAccess patient(Store store) {
        return new TableAccess(
                new Path("memory:///table"), store, new WriteOptions(new Configuration(false)), null, millis -> {});
    }

    /** Takes the commit lock, runs a planner, and commits no files. */
    private static void commit(DirectJob job, CommitPlan.MetastorePlanner during) throws IOException {
        job.commit(new CommitPlan(List.of(), Overwrite.nothing()).metastore(during));
    }

    /** The log of a commit that waits this long for the lock of {@link #HOLDER}. */
    private List<String> logOfWait(int lockWaitMillis) throws IOException {
        Configuration conf = new Configuration(false);
        conf.setInt(WriteOptions.LOCK_WAIT_MILLIS, lockWaitMillis);
        MemoryStore quiet = new MemoryStore(new MemoryStore.Steps() {
            @Override
            public void before(String step) {}

            @Override
            public void after(String step, Object result) {}
        });
        TableAccess table =
                new TableAccess(new Path("memory:///table"), quiet, new WriteOptions(conf), null, new PassingTime());
        LogCapturer log = LogCapturer.captureLogs(LoggerFactory.getLogger(LongWait.class));
        try (DirectJob holder = DirectJob.begin(table, HOLDER, "")) {
            commit(holder, draft -> {
                DirectJob waiting = DirectJob.begin(table, LATE, "");
                assertThrows(IOException.class, () -> commit(waiting, nothing -> null));
                waiting.abort();
                return null;
            });
        } finally {
            log.stopCapturing();
        }
        return log.getOutput()
                .lines()
                .filter(line -> line.contains("Still waiting"))
                .toList();
    }

    @Test
    void aLongWaitIsLoggedOnceWithTheHolderOfTheLock() throws IOException {
        List<String> logged = logOfWait(60_000);

        assertEquals(1, logged.size(), logged::toString);
        String expected = "Still waiting after 10 s, and for up to 60 s in all (fs.millstream.write.lock.wait.ms): job "
                + HOLDER + " of " + ThisProcess.owner() + " holds the commit lock of " + new Path("memory:///table")
                + ", which job " + LATE + " needs";
        assertTrue(logged.get(0).contains(expected), logged::toString);
    }

    @Test
    void aShortWaitIsNotLogged() throws IOException {
        assertEquals(List.of(), logOfWait(5_000));
    }

    @Test
    void aLateJobDoesNotRemoveTheLockOfAnother() throws IOException {
        MemoryStore quiet = new MemoryStore(new MemoryStore.Steps() {
            @Override
            public void before(String step) {}

            @Override
            public void after(String step, Object result) {}
        });
        TableAccess table = impatient(quiet);
        DirectJob sleeper = DirectJob.begin(table, LATE, "");
        boolean[] wasTried = {false};

        assertThrows(
                IOException.class,
                () -> commit(sleeper, draft -> {
                    quiet.putAbandoned(LATE);
                    quiet.pass(LEASE_MILLIS);
                    try (DirectJob next = DirectJob.begin(table, RESOLVED, "")) {
                        commit(next, nothing -> null);
                    }
                    quiet.pass(LEASE_MILLIS);
                    DirectJob holder = DirectJob.begin(table, HOLDER, "");
                    commit(holder, whileItHoldsTheLock -> {
                        sleeper.abort();
                        DirectJob fourth = DirectJob.begin(table, TestTable.newId(), "");
                        IOException e = assertThrows(IOException.class, () -> commit(fourth, nothing -> null));
                        assertTrue(e.getMessage().contains(HOLDER), e::getMessage);
                        fourth.abort();
                        wasTried[0] = true;
                        return null;
                    });
                    throw new IOException("awake");
                }));

        assertTrue(wasTried[0]);
    }

    /** A statement compares numbers to learn that a table has changed since it began. */
    @Test
    void aLateLockDoesNotRepeatTheNumberOfAJobThatIsOver() throws IOException {
        long[] taken = {0};
        store = new MemoryStore(new MemoryStore.Steps() {
            @Override
            public void before(String step) throws IOException {
                if (step.startsWith("create lock-") && !isHeld) {
                    isHeld = true;
                    try (DirectJob quicker = DirectJob.begin(patient(store), HOLDER, "")) {
                        commit(quicker, nothing -> null);
                    }
                    taken[0] = Journal.of(store).version().changed();
                }
            }

            @Override
            public void after(String step, Object result) {}
        });

        try (DirectJob late = DirectJob.begin(patient(store), LATE, "")) {
            commit(late, nothing -> null);
        }

        assertTrue(taken[0] > 0);
        assertTrue(Journal.of(store).version().changed() > taken[0]);
        assertEquals(List.of(HOLDER, LATE), store.commits());
    }

    @Test
    void aLateJobSeesTheHolderOfALowerLock() throws IOException {
        store = new MemoryStore(new MemoryStore.Steps() {
            @Override
            public void before(String step) throws IOException {
                CommitLockTest.this.before(step);
            }

            @Override
            public void after(String step, Object result) {}
        });
        TableAccess table = impatient(store);
        store.create("lock-1", RESOLVED.getBytes(StandardCharsets.UTF_8));
        StagedFile file = store.putStaged(LATE, "k=1", "late");

        try (DirectJob job = DirectJob.begin(table, LATE, "")) {
            IOException e = assertThrows(
                    IOException.class, () -> job.commit(new CommitPlan(List.of(file), Overwrite.nothing())));
            assertTrue(e.getMessage().contains(HOLDER), e::getMessage);
            job.abort();
        }

        assertEquals(Set.of(), store.rows());
        assertEquals(List.of(), store.commits());
    }
}
