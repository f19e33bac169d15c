"""Direct writes during failures: metastore, disk, tasks, executors, concurrent writers, cancelled statements. Run with
`make test-group GROUP=faults`.

The drivers share a PostgreSQL metastore (testbed/metastore). After each failure, and a recovery if
necessary, each table is exactly old or exactly new, and so is its metastore.
"""

import os
import signal
import subprocess
import time
from itertools import count
from pathlib import Path

import pytest
from clusters import SPECULATION, two_hosts, wait_for
from faults import KINDS, OLD, STATEMENTS, PostgresMetastore, StepTrap, after, check, driver, end, leftovers, recovered

PATIENCE_S = 120
LEASE = "fs.millstream.write.lease.ms"
LONG_LEASE = {f"spark.hadoop.{LEASE}": "120000"}  # no driver counts as dead, however slow the machine is
NUMBERS = count()
BEGIN, DRAFT, COMMIT, PUBLISH = "link {}/*.begin", "create {}/*/.*.commit.*", "link {}/*.commit", "rename {}/k=*"


@pytest.fixture(scope="module")
def metastore():
    with PostgresMetastore() as metastore:
        yield metastore


@pytest.fixture(scope="module")
def trap():
    with StepTrap() as trap:
        yield trap


@pytest.fixture(scope="module")
def ours(metastore, trap, tmp_path_factory):
    """The driver for the trap."""
    session = driver(tmp_path_factory.mktemp("driver") / "home", metastore, trap, **LONG_LEASE)
    yield session
    session.close()


@pytest.fixture(scope="module")
def others(ours, metastore, tmp_path_factory):
    # Not before the first driver has created the metastore's tables.
    assert ours.call("fault_calls:insert", statements=["show databases"]) == [None]
    sessions = [driver(tmp_path_factory.mktemp("driver") / "home", metastore, **LONG_LEASE) for _ in range(2)]
    yield sessions
    for session in sessions:
        session.close()


class Tables:
    """New tables of each kind with the old rows, and checks of the results."""

    def __init__(self, session, directory):
        self.database = f"d{next(NUMBERS)}"
        self.location = str(directory / "tables here")
        self.driver_pid = session.call("fault_calls:make", database=self.database, location=self.location)
        assert isinstance(self.driver_pid, int), self.driver_pid

    def name(self, kind):
        return f"{self.database}.{kind}"

    def folder(self, kind="text"):
        return f"{self.location}/{kind}"

    def statements(self, which="dynamic", kinds=KINDS):
        return [STATEMENTS[which].format(table=self.name(kind)) for kind in kinds]

    def rows(self, session, *allowed, kinds=KINDS):
        """Which of the allowed sets of rows each table has."""
        return [check(session.call("fault_calls:state", table=self.name(kind)), *allowed) for kind in kinds]

    def recovered(self, session):
        return [recovered(session, self.name(kind), self.folder(kind)) for kind in KINDS]


def stopped_at(trap, session, pattern, statements, at=1):
    """Runs statements until the driver is stopped at a step."""
    trap.set(pattern, at=at)
    session.ask("fault_calls:insert", statements=statements)
    assert trap.wait(PATIENCE_S), pattern
    return trap.pid


@pytest.mark.parametrize("step", [BEGIN, COMMIT, PUBLISH])
def test_a_stopped_metastore_is_updated_later(ours, others, metastore, trap, tmp_path, step):
    tables = Tables(ours, tmp_path)
    pid = stopped_at(trap, ours, step.format(tables.folder("parquet")), tables.statements())
    metastore.stop()
    os.kill(pid, signal.SIGCONT)
    try:
        errors = ours.answer()
    finally:
        metastore.start()
    this = KINDS.index("parquet")
    assert errors[this] and (step != PUBLISH or "is committed, but is not finished yet" in errors[this]), errors
    found = tables.recovered(others[0])
    outcomes = tables.rows(others[0], OLD, after("dynamic"))
    for error, verdicts, outcome in zip(errors, found, outcomes, strict=True):
        assert (
            outcome == 1 if error is None or "roll-forward" in verdicts else "roll-back" not in verdicts or outcome == 0
        )
    assert outcomes[this] == 1 or step == BEGIN
    # It continues once the metastore is back.
    assert after_reconnecting(ours, tables.statements("static")) == [None] * len(KINDS)
    tables.rows(ours, *[after("static", rows) for rows in (OLD, after("dynamic"))])


def after_reconnecting(session, statements):
    """The metastore's client has dead connections, and tries each of them once."""
    deadline = time.monotonic() + PATIENCE_S
    while any(errors := session.call("fault_calls:insert", statements=statements)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return errors


@pytest.fixture
def small_disk(tmp_path):
    assert os.geteuid() == 0, "run as root: a small file system is mounted"
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", path], check=True)
    yield path
    subprocess.run(["umount", path], check=True)


def fill(disk):
    with open(disk / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert "No space left" in str(error)


@pytest.mark.parametrize(
    "step, outcome", [("create {}/k=*", 0), (DRAFT, 0), (PUBLISH, 1)], ids=["tasks", "record", "apply"]
)
def test_a_full_disk(ours, trap, small_disk, step, outcome):
    tables = Tables(ours, small_disk)
    pid = stopped_at(trap, ours, step.format(tables.folder()), tables.statements(kinds=["text"]))
    fill(small_disk)
    os.kill(pid, signal.SIGCONT)
    (error,) = ours.answer()
    assert error is None if outcome else "No space left on device" in error and "not known whether" not in error, error
    # Readers need no recovery, although recovery finds files to remove.
    assert tables.rows(ours, OLD, after("dynamic"), kinds=["text"]) == [outcome]
    (small_disk / "filler").unlink()
    recovered(ours, tables.name("text"), tables.folder())
    assert tables.rows(ours, OLD, after("dynamic"), kinds=["text"]) == [outcome]
    assert ours.call("fault_calls:insert", statements=tables.statements("into", ["text"])) == [None]


def overwrite(table, value):
    return (
        f"insert overwrite {table} partition(k) select id, '{value}', cast(id % 4 + 3 as string) from range(0, 8, 1, 2)"
    )


def into(table, value):
    return overwrite(table, value).replace("insert overwrite", "insert into")


def serial(*statements):
    """The rows after statements on the old ones, one after the other."""
    found = dict(OLD)
    for how, value in statements:
        for k in map(str, range(3, 7)):
            new = [[a, value] for a in range(8) if a % 4 + 3 == int(k)]
            found[k] = sorted(found.get(k, []) + new) if how == "into" else new
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_two_overwrites_and_an_insert_of_three_drivers(ours, others, trap, tmp_path, kind):
    """The first holds the commit lock when the others arrive."""
    tables = Tables(ours, tmp_path)
    pid = stopped_at(trap, ours, COMMIT.format(tables.folder(kind)), [overwrite(tables.name(kind), "a")])
    for session, statement in zip(others, (overwrite, into), strict=True):
        session.ask(
            "fault_calls:insert", statements=[statement(tables.name(kind), "b" if statement is overwrite else "c")]
        )
    wait_for(lambda: len(list(Path(tables.folder(kind), ".direct-writes").glob("*.begin"))) == 3, "they do not meet")
    os.kill(pid, signal.SIGCONT)
    assert [session.answer() for session in (ours, *others)] == [[None]] * 3
    a, b, c = ("overwrite", "a"), ("overwrite", "b"), ("into", "c")
    tables.rows(ours, serial(a, b, c), serial(a, c, b), kinds=[kind])
    assert leftovers(tables.location) == []


def test_a_driver_whose_lease_expired_cannot_commit(ours, others, trap, tmp_path):
    tables = Tables(ours, tmp_path)
    ours.call("fault_calls:configure", settings={LEASE: "3000"})
    pid = stopped_at(trap, ours, COMMIT.format(tables.folder()), [overwrite(tables.name("text"), "late")])
    try:
        assert others[0].call("fault_calls:insert", statements=[overwrite(tables.name("text"), "b")]) == [None]
        tables.rows(others[0], serial(("overwrite", "b")), kinds=["text"])
    finally:
        os.kill(pid, signal.SIGCONT)
    (error,) = ours.answer()
    ours.call("fault_calls:configure", settings={LEASE: LONG_LEASE[f"spark.hadoop.{LEASE}"]})
    assert "did not renew its lease" in error, error
    tables.rows(others[0], serial(("overwrite", "b")), kinds=["text"])
    assert leftovers(tables.location) == []


def test_a_partition_that_is_moved_before_the_recovery_stays_there(ours, others, trap, tmp_path):
    tables = Tables(ours, tmp_path)
    ours.call("fault_calls:configure", settings={LEASE: "3000"})
    pid = stopped_at(trap, ours, PUBLISH.format(tables.folder()), tables.statements("dynamic", kinds=["text"]))
    place = f"{tmp_path}/elsewhere"
    try:
        # By a program that does not know what is unfinished.
        others[0].call("fault_calls:configure", settings={"spark.millstream.write.enabled": "false"})
        assert others[0].call(
            "fault_calls:insert",
            statements=[f"alter table {tables.name('text')} partition(k='3') set location '{place}'"],
        ) == [None]
        others[0].call("fault_calls:configure", settings={"spark.millstream.write.enabled": "true"})
        assert recovered(others[0], tables.name("text"), tables.folder()) == ["roll-forward"]
    finally:
        os.kill(pid, signal.SIGCONT)
    assert ours.answer() == [None]
    ours.call("fault_calls:configure", settings={LEASE: LONG_LEASE[f"spark.hadoop.{LEASE}"]})
    places = others[0].call("swap_calls:places", name=tables.name("text"))
    assert {name: found["location"] for name, found in places.items()} == {
        f"k={k}": place if k == 3 else f"{tables.folder()}/k={k}" for k in range(1, 7)
    }


@pytest.fixture(scope="module")
def cluster(ours, metastore, tmp_path_factory):
    assert ours.call("fault_calls:insert", statements=["show databases"]) == [None]
    top = tmp_path_factory.mktemp("cluster")
    with two_hosts(top) as master:
        session = driver(top / "home", metastore, **SPECULATION, **{"spark.master": master})
        yield session
        session.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_fails_and_a_twin_is_faster_than_a_zombie(cluster, tmp_path, kind):
    """A task's speculative attempt is committed long before the first attempt, in a sleeping executor, wakes up and
    continues to write.
    """
    tables, marks = Tables(cluster, tmp_path), tmp_path / "marks"
    marks.mkdir()
    cluster.ask("fault_calls:attempts", table=tables.name(kind), marks=str(marks))
    wait_for((marks / "slow").exists, "no task waits")
    executor = int((marks / "slow").read_text())
    os.kill(executor, signal.SIGSTOP)
    try:
        assert cluster.answer() is None
        tables.rows(cluster, after("dynamic"), kinds=[kind])
    finally:
        (marks / "go").touch()
        os.kill(executor, signal.SIGCONT)
    wait_for(lambda: cluster.call("fault_calls:running_tasks") == 0, "the zombie does not end")
    recovered(cluster, tables.name(kind), tables.folder(kind))
    tables.rows(cluster, after("dynamic"), kinds=[kind])


@pytest.mark.parametrize(
    "step, whom, number",
    [
        ("create {}/k=*", "driver", signal.SIGTERM),
        (COMMIT, "driver", signal.SIGTERM),
        ("create {}/k=*", "user", signal.SIGINT),
    ],
    ids=["SIGTERM in tasks", "SIGTERM at commit", "Ctrl-C"],
)
def test_a_driver_is_terminated(ours, metastore, tmp_path, step, whom, number):
    with StepTrap() as trap:
        victim = driver(tmp_path / "victim", metastore, trap)
        tables = Tables(victim, tmp_path)
        pid = stopped_at(trap, victim, step.format(tables.folder()), tables.statements("static"))
        os.kill(pid if whom == "driver" else victim.process.pid, number)
        os.kill(pid, signal.SIGCONT)
        end(victim, within_s=60)
        wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the driver continues")
    # It may have been terminated too late; the table must be consistent in any case.
    tables.recovered(ours)
    tables.rows(ours, OLD, after("static"))
