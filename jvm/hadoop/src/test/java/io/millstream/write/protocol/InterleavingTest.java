package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.protocol.Finding.Run;
import io.millstream.write.recovery.Recovery;
import io.millstream.write.recovery.Recovery.Choices;
import io.millstream.write.store.StagedFile;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A model of the protocol whose steps are those of the real code: two jobs commit, each in a thread of its own that makes one call of
 * the store at a time, in every order. At any moment the first of them may die, or be taken for dead and go on. A state (the
 * store's, and all that each job has been told) is gone into once, so the exploration is complete. In the end what is dead is
 * recovered, and then the rows must be those of the jobs that have committed, one after the other.
 */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class InterleavingTest {
  private static final String FIRST = "11111111-1111-1111-1111-111111111111";
  private static final String SECOND = "22222222-2222-2222-2222-222222222222";
  private static final String PARTITION = "k=1";
  private static final String OLD_ROW = "old";
  private static final int FEWEST_STATES = 500;

  private enum Action { FIRST_STEPS, SECOND_STEPS, FIRST_IS_TAKEN_FOR_DEAD, FIRST_DIES }

  private enum Statement { INSERT_INTO, OVERWRITE }

  @Test
  void twoOverwrites() {
    explore(Statement.OVERWRITE, Statement.OVERWRITE);
  }

  @Tag("slow")
  @Test
  void anOverwriteThatMayDieAndAnInsertInto() {
    explore(Statement.OVERWRITE, Statement.INSERT_INTO);
  }

  @Tag("slow")
  @Test
  void anInsertIntoThatMayDieAndAnOverwrite() {
    explore(Statement.INSERT_INTO, Statement.OVERWRITE);
  }

  /** Goes down from a state by the first action, and comes back for the others. */
  private static void explore(Statement first, Statement second) {
    Set<Long> seen = new HashSet<>();
    Set<Set<String>> outcomes = new HashSet<>();
    Deque<List<Action>> open = new ArrayDeque<>(List.of(List.of()));
    while (!open.isEmpty()) {
      List<Action> path = new ArrayList<>(open.pop());
      try (World world = new World(first, second)) {
        path.forEach(world::act);
        while (seen.add(world.state())) {
          EnumSet<Action> actions = world.actions();
          if (actions.isEmpty()) {
            outcomes.add(world.check(path));
            break;
          }
          Action next = actions.iterator().next();
          for (Action other : actions) {
            if (other != next) {
              List<Action> another = new ArrayList<>(path);
              another.add(other);
              open.push(another);
            }
          }
          path.add(next);
          world.act(next);
        }
      }
    }
    assertTrue(seen.size() > FEWEST_STATES, () -> seen.size() + " states");
    // Both orders occur, and so does the death of the first before it has committed.
    assertTrue(outcomes.size() >= 2, outcomes::toString);
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
      table = new TableAccess(new Path("memory:///table"), store, options(), null, millis -> current.get().waits());
      store.putVisible(PARTITION, OLD_ROW, OLD_ROW);
      actors.add(new Actor(begin(FIRST, "first", statements[0])));
      actors.add(new Actor(begin(SECOND, "second", statements[1])));
    }

    private static WriteOptions options() {
      Configuration conf = new Configuration(false);
      conf.setInt(WriteOptions.THREADS, 1);
      conf.setInt(WriteOptions.HELP_AFTER_MILLIS, 0);
      return new WriteOptions(conf);
    }

    private Runnable begin(String id, String row, Statement statement) {
      try {
        DirectJob job = DirectJob.begin(table, id, "");
        StagedFile file = store.putPending(id, PARTITION, row);
        Overwrite overwrite = statement == Statement.OVERWRITE ? Overwrite.touched() : Overwrite.nothing();
        return () -> commit(job, new CommitPlan(List.of(file), overwrite));
      } catch (IOException e) {
        throw new AssertionError(e);
      }
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

    /** Recovers, and compares; the rows. */
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
      assertEquals(Set.of(), store.pendingRows(), what);
      actors.get(0).checkOutcome(store.commits().contains(FIRST), what);
      actors.get(1).checkOutcome(store.commits().contains(SECOND), what);
      return store.rows();
    }

    private Set<String> rowsOf(List<String> commits) {
      Set<String> rows = new TreeSet<>(Set.of(OLD_ROW));
      for (String id : commits) {
        if (statements[id.equals(FIRST) ? 0 : 1] == Statement.OVERWRITE) {
          rows.clear();
        }
        rows.add(id.equals(FIRST) ? "first" : "second");
      }
      return rows;
    }

    @Override
    public void close() {
      actors.forEach(Actor::die);
    }

    private enum Outcome { COMMITTED, NOT_COMMITTED }

    /** A thread that stands still before each of its steps. */
    private final class Actor {
      private final Thread thread;
      private boolean mayGo;
      private boolean stands;
      private boolean isDead;
      private volatile boolean isOver;
      private long told;
      private int sawVersion = -1;
      private int waitsSinceVersion = -1;
      private Outcome outcome;
      private Throwable broken;

      Actor(Runnable work) {
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

      /** In the actor's thread. */
      private synchronized void standStill() {
        if (!isDead) {
          stands = true;
          notifyAll();
          while (!mayGo) {
            await();
          }
          mayGo = false;
        }
        if (isDead) {
          throw new Died();
        }
      }

      private void isTold(String what) {
        told = mixed(told, what);
        if (what.startsWith("journal")) {
          sawVersion = store.version();
        }
      }

      /** What it was told before does not matter for what it does next; and that is the same until something has changed. */
      private void waits() {
        told = 0;
        waitsSinceVersion = sawVersion;
      }

      boolean canStep() {
        return !isOver && waitsSinceVersion != store.version();
      }

      synchronized void step() {
        waitsSinceVersion = -1;
        stands = false;
        mayGo = true;
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
