"""Drivers killed during direct writes to tables: each table is then exactly old or exactly new, and so is its
metastore.

Every driver writes to a table of each kind concurrently, to some of them by exchanging directories, and is killed at
a step (a call that changes one of their directories), or some time after it. The next driver, on the same metastore,
checks the result, and is killed in turn. MILLSTREAM_KILLS is the number of kills.
"""

import os
import random
import signal
import time
from collections import Counter

import pytest
from faults import KINDS, OLD, STATEMENTS, DerbyMetastore, StepTrap, after, check, driver, end, recovered

KILLS = int(os.environ.get("MILLSTREAM_KILLS", "14"))
# Every step except those of leases, whose timing is random.
STEPS = "@(create|link|rename|unlink|mkdir) {location}/!(*.lease*)"
COMMITS = "link {location}/*.commit"
MORE = "insert into {table} partition(k) select id, 'more', '9' from range(2)"
MORE_ROWS = {"9": [[0, "more"], [1, "more"]]}


@pytest.fixture
def bed(tmp_path):
    with DerbyMetastore(tmp_path) as metastore, StepTrap() as trap:
        yield metastore, trap


class Victim:
    """The work of a driver that will be killed, and where it dies."""

    def __init__(self, number, chance, steps):
        self.database = f"d{number}"
        self.statement = ("dynamic", "into", "static", "nothing")[number % 4]
        self.visibility = ("in-place", "exchange")[number // 4 % 2]
        # Before the first, second and third commit, and the steps after each; otherwise at random, spread over all
        # steps.
        if number % 2 == 0:
            self.pattern, self.at = COMMITS, number // 2 % 3 + 1
        else:
            self.pattern, self.at = (
                STEPS,
                max(1, round((number // 2 % (KILLS // 2) + chance.random()) * steps * 2 / KILLS)),
            )
        self.delay_s = chance.choice([0, 0, chance.uniform(0, 0.05), chance.uniform(0, 0.6)])
        self.how = chance.choice(["recover", "write"])

    def __str__(self):
        return f"{self.database}: {self.statement} ({self.visibility}), killed {self.delay_s:.3f} s after step {self.at} of {self.pattern}; then {self.how}"


def run(session, victim, location, trap):
    """Creates tables and writes to them until the driver is dead; returns whether the trap killed it, or it ended by
    itself before.
    """
    pid = session.call("fault_calls:make", database=victim.database, location=location)
    assert isinstance(pid, int), pid
    assert session.call(
        "fault_calls:insert", statements=[f"set fs.millstream.write.visibility={victim.visibility}"]
    ) == [None]
    trap.set(victim.pattern.format(location=location), at=victim.at)
    statements = [STATEMENTS[victim.statement].format(table=f"{victim.database}.{kind}") for kind in KINDS]
    session.ask("fault_calls:insert", statements=statements)
    caught = trap.wait(60)
    if caught:
        os.kill(trap.pid, signal.SIGCONT if victim.delay_s else signal.SIGKILL)
        time.sleep(victim.delay_s)
    os.kill(pid, signal.SIGKILL)
    end(session)
    step = trap.step if caught else None
    # The trap must not catch the next driver, which reads the same tables.
    trap.set("")
    return step


def examine(session, victim, location):
    """The result for each table, after a recovery by the command or by the next write."""
    outcomes = []
    for kind in KINDS:
        table, folder = f"{victim.database}.{kind}", f"{location}/{kind}"
        new = after(victim.statement)
        if victim.how == "recover":
            recovered(session, table, folder)
            allowed = [OLD, new]
        else:
            time.sleep(0.5)
            assert session.call("fault_calls:insert", statements=[MORE.format(table=table)]) == [None]
            allowed = [{**OLD, **MORE_ROWS}, {**new, **MORE_ROWS}]
        outcomes.append(("old", "new")[check(session.call("fault_calls:state", table=table), *allowed)])
        assert recovered(session, table, folder) == []
    session.call("fault_calls:drop", database=victim.database)
    return outcomes


def test_killed_at_any_step(bed, tmp_path, seed):
    print("MILLSTREAM_SEED", seed)
    metastore, trap = bed
    chance = random.Random(seed)
    found = Counter()
    steps = None
    left = None  # by the driver before
    for number in range(KILLS + 1):
        session = driver(tmp_path / f"home{number}", metastore, trap)
        if left:
            outcomes = examine(session, *left)
            print("  ", outcomes, flush=True)
            found.update(outcomes)
        if number == KILLS:
            session.close()
            break
        if steps is None:
            steps = count_steps(session, str(tmp_path / "counted"), trap)
            print("steps:", steps)
        victim, location = Victim(number, chance, steps), str(tmp_path / f"tables {number}")
        print(victim, flush=True)
        left = victim, location
        print("  ", run(session, victim, location, trap), flush=True)
    print(dict(found))
    assert found["old"] > 0 and found["new"] > 0


def count_steps(session, location, trap):
    assert isinstance(session.call("fault_calls:make", database="counted", location=location), int)
    trap.set(STEPS.format(location=location))
    statements = [STATEMENTS["dynamic"].format(table=f"counted.{kind}") for kind in KINDS]
    assert session.call("fault_calls:insert", statements=statements) == [None] * len(KINDS)
    return trap.seen
