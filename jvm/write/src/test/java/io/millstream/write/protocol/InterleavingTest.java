package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.recovery.Recovery;
import io.millstream.write.recovery.Recovery.Choices;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A model check of the protocol that runs the real code: two statements run in separate threads, which make one store
 * call at a time, in every order. At any point the first of them may die, or be taken for dead and continue. A
 * statement that finds the other committed finishes it. Each state (the store's, and all results that each statement
 * has received) is explored once, so an exploration that ends is complete; those of {@code make test} stop after a
 * random sample of states. At the end, the rest is recovered, and the rows must be those of the committed statements
 * run one after the other; a statement that reads the table must have used the rows before it.
 */
@Timeout(value = 60, unit = TimeUnit.MINUTES)
class InterleavingTest {
    private static final String FIRST = "11111111-1111-1111-1111-111111111111";
    private static final String SECOND = "22222222-2222-2222-2222-222222222222";
    private static final String PARTITION = "k=1";
    private static final String OLD_ROW = "old";
    private static final int FEWEST_STATES = 500;
    private static final int MOST_STATES = Integer.MAX_VALUE;
    private static final int SAMPLE_STATES = 4000;

    private enum Action {
        FIRST_STEPS,
        SECOND_STEPS,
        FIRST_IS_TAKEN_FOR_DEAD,
        FIRST_DIES
    }

    /** What the statements write: one row each; two rows; a row computed from the rows that they have read. */
    private enum Statement {
        INSERT_INTO,
        INSERT_TWO,
        OVERWRITE,
        OVERWRITE_BY_ITSELF
    }

    @Test
    void aSampleOfTwoOverwrites() {
        explore(Statement.OVERWRITE, Statement.OVERWRITE, SAMPLE_STATES);
    }

    @Test
    void aSampleOfAnInsertThatMayDieAndAnOverwriteThatReadsTheTable() {
        explore(Statement.INSERT_TWO, Statement.OVERWRITE_BY_ITSELF, SAMPLE_STATES);
    }

    @Tag("slow")
    @Test
    void twoOverwrites() {
        explore(Statement.OVERWRITE, Statement.OVERWRITE, MOST_STATES);
    }

    @Tag("slow")
    @Test
    void anOverwriteThatMayDieAndAnInsertInto() {
        explore(Statement.OVERWRITE, Statement.INSERT_INTO, MOST_STATES);
    }

    @Tag("slow")
    @Test
    void anInsertIntoThatMayDieAndAnOverwrite() {
        explore(Statement.INSERT_INTO, Statement.OVERWRITE, MOST_STATES);
    }

    @Tag("slow")
    @Test
    void anInsertThatMayDieAndAnOverwriteThatReadsTheTable() {
        explore(Statement.INSERT_TWO, Statement.OVERWRITE_BY_ITSELF, MOST_STATES);
    }

    @Tag("slow")
    @Test
    void anOverwriteThatReadsTheTableAndMayDieAndAnInsert() {
        explore(Statement.OVERWRITE_BY_ITSELF, Statement.INSERT_TWO, MOST_STATES);
    }

    @Tag("slow")
    @Test
    void twoOverwritesThatReadTheTable() {
        explore(Statement.OVERWRITE_BY_ITSELF, Statement.OVERWRITE_BY_ITSELF, MOST_STATES);
    }

    /** Explores the actions of a state depth first; in random order if not all are explored. */
    private static void explore(Statement first, Statement second, int mostStates) {
        long seed = Optional.ofNullable(System.getenv("MILLSTREAM_SEED"))
                .map(Long::parseLong)
                .orElseGet(System::nanoTime);
        System.out.println("MILLSTREAM_SEED=" + seed);
        Random chance = new Random(seed);
        Set<Long> seen = new HashSet<>();
        Set<Set<String>> outcomes = new HashSet<>();
        List<List<Action>> open = new ArrayList<>(List.of(List.of()));
        while (!open.isEmpty() && seen.size() < mostStates) {
            Collections.swap(open, chance.nextInt(mostStates == MOST_STATES ? 1 : open.size()), open.size() - 1);
            List<Action> path = new ArrayList<>(open.remove(open.size() - 1));
            try (World world = new World(first, second)) {
                path.forEach(world::act);
                while (seen.add(world.state())) {
                    EnumSet<Action> actions = world.actions();
                    if (actions.isEmpty()) {
                        outcomes.add(world.check(path));
                        break;
                    }
                    List<Action> choices = List.copyOf(actions);
                    Action next = choices.get(mostStates == MOST_STATES ? 0 : chance.nextInt(choices.size()));
                    for (Action other : actions) {
                        if (other != next) {
                            List<Action> another = new ArrayList<>(path);
                            another.add(other);
                            open.add(another);
                        }
                    }
                    path.add(next);
                    world.act(next);
                }
            }
        }
        System.out.println(
                first + " and " + second + ": " + seen.size() + " states, " + open.size() + " ways not gone");
        assertTrue(seen.size() > FEWEST_STATES, () -> seen.size() + " states");
        if (mostStates == MOST_STATES) {
            // Both orders occur, and so does the death of the first statement before its commit.
            assertTrue(outcomes.size() >= 2, outcomes::toString);
        }
    }

    /** A table and two jobs that are about to commit. */
    private static final class World implements MemoryStore.Steps, AutoCloseable {
        private final ThreadLocal<Actor> current = new ThreadLocal<>();
        private final MemoryStore store = new MemoryStore(this);
        private final TableAccess table;
        private final Statement[] statements;
        private final List<Actor> actors = new ArrayList<>();
        private boolean isTakenForDead;

        World(Statement... statements) {
            this.statements = statements;
            table = new TableAccess(
                    new Path("memory:///table"),
                    store,
                    options(),
                    null,
                    millis -> current.get().waits(millis));
            store.putVisible(PARTITION, OLD_ROW, OLD_ROW);
            actors.add(new Actor(FIRST, begin(FIRST, statements[0])));
            actors.add(new Actor(SECOND, begin(SECOND, statements[1])));
        }

        private static WriteOptions options() {
            Configuration conf = new Configuration(false);
            conf.setInt(WriteOptions.THREADS, 1);
            conf.setInt(WriteOptions.HELP_AFTER_MILLIS, 0);
            return new WriteOptions(conf);
        }

        private Runnable begin(String id, Statement statement) {
            if (statement == Statement.OVERWRITE_BY_ITSELF) {
                return () -> copy(id);
            }
            try {
                DirectJob job = DirectJob.begin(table, id, "");
                List<StagedFile> files = rowsOf(id, statement, Set.of()).stream()
                        .map(each -> store.putStaged(id, PARTITION, each))
                        .toList();
                Overwrite overwrite = statement == Statement.OVERWRITE ? Overwrite.touched() : Overwrite.nothing();
                return () -> commit(job, new CommitPlan(files, overwrite));
            } catch (IOException e) {
                throw new AssertionError(e);
            }
        }

        private void copy(String id) {
            try {
                ReadGuard guard = ReadGuard.of(table);
                Set<String> rows = store.readRows();
                current.get().knowsNoMoreThan("has read " + rows + " at " + guard.version());
                DirectJob job = DirectJob.begin(table, id, "");
                current.get().knowsNoMoreThan("has begun with " + rows + " of " + guard.version());
                List<StagedFile> files = rowsOf(id, Statement.OVERWRITE_BY_ITSELF, rows).stream()
                        .map(each -> store.putStaged(id, PARTITION, each))
                        .toList();
                commit(job, new CommitPlan(files, Overwrite.touched()).hasRead(guard.version()));
            } catch (IOException e) {
                throw new AssertionError("nothing fails here", e);
            }
        }

        private static List<String> rowsOf(String id, Statement statement, Set<String> read) {
            String row = id.equals(FIRST) ? "first" : "second";
            return switch (statement) {
                case INSERT_TWO -> List.of(row, row + " more");
                case OVERWRITE_BY_ITSELF -> List.of(row + " of " + read);
                default -> List.of(row);
            };
        }

        private void commit(DirectJob job, CommitPlan plan) {
            try (job) {
                try {
                    job.commit(plan);
                    current.get().outcome = Outcome.COMMITTED;
                } catch (CommittedException e) {
                    throw new AssertionError("nothing fails here", e);
                } catch (IOException e) {
                    current.get().outcome = Outcome.NOT_COMMITTED;
                    job.abort();
                }
            }
        }

        @Override
        public void before(String step) {
            if (current.get() != null) {
                current.get().standStill();
            }
        }

        @Override
        public void after(String step, Object result) {
            if (current.get() != null) {
                current.get().isTold(step + "->" + result);
            }
        }

        EnumSet<Action> actions() {
            EnumSet<Action> actions = EnumSet.noneOf(Action.class);
            if (actors.get(0).canStep()) {
                actions.add(Action.FIRST_STEPS);
            }
            if (actors.get(1).canStep()) {
                actions.add(Action.SECOND_STEPS);
            }
            if (!isTakenForDead && !actors.get(0).isOver) {
                actions.add(Action.FIRST_IS_TAKEN_FOR_DEAD);
            }
            if (!actors.get(0).isOver) {
                actions.add(Action.FIRST_DIES);
            }
            return actions;
        }

        void act(Action action) {
            switch (action) {
                case FIRST_STEPS -> actors.get(0).step();
                case SECOND_STEPS -> actors.get(1).step();
                case FIRST_IS_TAKEN_FOR_DEAD -> takeForDead();
                case FIRST_DIES -> {
                    actors.get(0).die();
                    takeForDead();
                }
            }
        }

        private void takeForDead() {
            isTakenForDead = true;
            store.putAbandoned(FIRST);
        }

        long state() {
            long state = mixed(isTakenForDead ? 1 : 2, store.state());
            for (Actor actor : actors) {
                state = mixed(mixed(state, String.valueOf(actor.isOver)), String.valueOf(actor.told));
            }
            return state;
        }

        /** Recovers, compares, and returns the rows. */
        Set<String> check(List<Action> path) {
            String what = path + ", commits " + store.commits() + ", in the end " + store.state();
            for (Actor actor : actors) {
                assertTrue(actor.isOver, () -> "nobody can go on: " + what);
                if (actor.broken != null) {
                    throw new AssertionError(what, actor.broken);
                }
            }
            try {
                store.putAbandoned(FIRST);
                store.putAbandoned(SECOND);
                Recovery.recover(table, Choices.of(Run.REAL));
            } catch (IOException e) {
                throw new AssertionError(what, e);
            }
            assertEquals(rowsOf(store.commits()), store.rows(), what);
            assertEquals(Set.of(), store.stagedRows(), what);
            actors.get(0).checkOutcome(store.commits().contains(FIRST), what);
            actors.get(1).checkOutcome(store.commits().contains(SECOND), what);
            return store.rows();
        }

        private Set<String> rowsOf(List<String> commits) {
            Set<String> rows = new TreeSet<>(Set.of(OLD_ROW));
            for (String id : commits) {
                Statement statement = statements[id.equals(FIRST) ? 0 : 1];
                List<String> written = rowsOf(id, statement, rows);
                if (statement == Statement.OVERWRITE || statement == Statement.OVERWRITE_BY_ITSELF) {
                    rows.clear();
                }
                rows.addAll(written);
            }
            return rows;
        }

        @Override
        public void close() {
            actors.forEach(Actor::die);
        }

        private enum Outcome {
            COMMITTED,
            NOT_COMMITTED
        }

        /** A thread that stops before each of its steps. */
        private final class Actor {
            private final String id;
            private final Thread thread;
            private boolean mayProceed;
            private boolean stands;
            private boolean isDead;
            private volatile boolean isOver;
            private long told;
            private int sawVersion = -1;
            private int waitsSinceVersion = -1;
            private Outcome outcome;
            private Throwable broken;

            Actor(String id, Runnable work) {
                this.id = id;
                thread = new Thread(() -> {
                    current.set(this);
                    try {
                        work.run();
                    } catch (Died e) {
                        outcome = null;
                    } catch (Throwable e) {
                        broken = e;
                    }
                    synchronized (this) {
                        isOver = true;
                        stands = true;
                        notifyAll();
                    }
                });
                thread.setDaemon(true);
                thread.start();
                awaitStanding();
            }

            /** Called in the actor's thread. */
            private synchronized void standStill() {
                if (!isDead) {
                    stands = true;
                    notifyAll();
                    while (!mayProceed) {
                        await();
                    }
                    mayProceed = false;
                }
                if (isDead) {
                    throw new Died();
                }
            }

            private void isTold(String what) {
                told = mixed(told, what);
                if (what.startsWith("journal")) {
                    sawVersion = store.version();
                } else if (what.startsWith("create " + id + ".commit")) {
                    told = mixed(0, what); // only the record matters from here on
                }
            }

            /** Only this result matters for the next steps, so states that differ only in earlier results are equal. */
            private void knowsNoMoreThan(String what) {
                told = mixed(0, what);
            }

            /**
             * Earlier results do not matter for the next steps, and the next steps stay the same until something
             * changes.
             */
            private void waits(long millis) {
                told = 0;
                if (millis > 0) {
                    waitsSinceVersion = sawVersion;
                }
            }

            boolean canStep() {
                return !isOver && waitsSinceVersion != store.version();
            }

            synchronized void step() {
                waitsSinceVersion = -1;
                stands = false;
                mayProceed = true;
                notifyAll();
                awaitStanding();
            }

            void die() {
                if (!isOver) {
                    synchronized (this) {
                        isDead = true;
                        step();
                    }
                }
            }

            private synchronized void awaitStanding() {
                while (!stands) {
                    await();
                }
            }

            private void await() {
                try {
                    wait();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            }

            void checkOutcome(boolean committed, String what) {
                if (outcome != null) {
                    assertEquals(committed ? Outcome.COMMITTED : Outcome.NOT_COMMITTED, outcome, what);
                }
            }
        }
    }

    private static long mixed(long state, String more) {
        long mixed = state;
        for (int i = 0; i < more.length(); i++) {
            mixed = (mixed ^ more.charAt(i)) * 0x100000001b3L;
        }
        return (mixed ^ more.length()) * 0x9E3779B97F4A7C15L;
    }

    /** Ends the thread of an actor that has died. */
    private static final class Died extends Error {
        private static final long serialVersionUID = 1;
    }
}
