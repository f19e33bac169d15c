"""Drivers killed during their commits, on local files, S3 and HDFS, while another driver reads the table continuously.

The table is in the catalog, and afterwards exactly old or exactly new, whether the next statement
or a recovery finishes it. Most drivers are killed between the commit record and the done mark; the
number is printed. Readers see an overwrite with `metastore-swap` as a whole, and one with
`exchange` partition by partition. MILLSTREAM_KILLS is the number of drivers killed on each of the
three stores; MILLSTREAM_SEED repeats the same kills. Run with `make test-group GROUP=kills`.
"""

import os
import random
import select
import signal
import time
from collections import Counter
from pathlib import Path

import pyspark
import pytest
from bed_jars import s3a_jars
from fault_calls import CREATIONS
from faults import KINDS, OLD, STATEMENTS, PostgresMetastore, StepTrap, after, check, driver, rows
from hdfs_bed import HdfsBed
from s3_bed import BUCKET, S3Bed
from slow_direct_writes import MORE, MORE_ROWS, STEPS

KILLS = int(os.environ.get("MILLSTREAM_KILLS", "16"))
PATIENCE_S = int(os.environ.get("MILLSTREAM_PATIENCE_S", "180"))
RANDOM_EVERY = 5
CREATE = "create table {table} {creation} as select id a, 'new' v, cast(id % 4 + 3 as string) k from range(0, 8, 1, 2)"
OVERWRITES = ("dynamic", "static")
CONF = {
    "spark.hadoop.fs.millstream.write.lease.ms": "1500",
    "spark.hadoop.fs.millstream.write.help.after.ms": "500",
    # Steps run one after the other, so that they can be distinguished.
    "spark.hadoop.fs.millstream.write.threads": "1",
}
CREATED = {
    "text": "stored as textfile",
    "parquet": "stored as parquet",
    "datasource": "using parquet partitioned by (k)",
}


class Victim:
    """The work of a driver that will be killed."""

    def __init__(self, number, chance, root, visibilities):
        self.database = f"d{number}"
        self.statement = ("dynamic", "into", "static", "ctas")[number % 4]
        self.visibility = (
            visibilities[number // 4 % len(visibilities)]
            if self.statement in OVERWRITES
            else chance.choice(visibilities)
        )
        self.kind = chance.choice(KINDS)
        self.table = f"{self.database}.{self.kind}"
        self.root = f"{root}/{self.database}.db"
        self.location = f"{self.root}/{self.kind}"
        self.is_random = number % RANDOM_EVERY == RANDOM_EVERY - 1
        self.part = chance.random()  # of the way from the record to the end
        self.is_after = chance.random() < 0.5  # the request at which it dies has been executed
        self.delay = chance.uniform(0.2, 1.4)  # fraction of the time after which the last driver died
        self.how = chance.choice(["recover", "write"])

    def __str__(self):
        where = "by chance" if self.is_random else f"at {self.part:.0%} of its commit"
        return f"{self.table}: {self.statement} ({self.visibility}), killed {where}; then {self.how}"

    @property
    def is_new(self):
        return self.statement == "ctas"

    @property
    def files(self):
        """The number of files: two tasks, and four partitions unless there are none, or one."""
        return 8 if self.statement in ("dynamic", "into") or (self.is_new and self.kind == "datasource") else 2

    @property
    def deletes(self):
        return self.statement in OVERWRITES and self.visibility == "in-place"

    def preparation(self):
        database = f"create database {self.database} location '{self.root}'"
        if self.is_new:
            return [database]
        columns = (
            "(a bigint, v string, k string) using parquet partitioned by (k)"
            if self.kind == "datasource"
            else f"(a bigint, v string) partitioned by (k string) {CREATIONS[self.kind]}"
        )
        old = (
            f"insert into {self.table} partition(k) select id, 'old', cast(id % 4 + 1 as string) from range(0, 8, 1, 2)"
        )
        return [database, f"create table {self.table} {columns}", old]

    def statements(self):
        statement = CREATE if self.is_new else STATEMENTS[self.statement]
        statement = statement.format(table=self.table, creation=CREATED[self.kind])
        return [f"set fs.millstream.write.visibility={self.visibility}", statement]

    def states(self):
        """The rows before and after."""
        return [{}, rows("new", 3)] if self.is_new else [OLD, after(self.statement)]


class Local:
    """Drivers stopped and killed before a call that changes a directory."""

    visibilities = ("in-place", "exchange", "metastore-swap")

    def __init__(self, top, trap):
        self.root, self.environment = str(top), trap

    @property
    def trap(self):
        return self.environment

    def run_to(self, session, victim):
        """Runs a statement until it stops at a step of its commit, or ends."""
        self.trap.set(f"link {victim.location}/*.commit", at=1)
        session.ask("lost_row_calls:run", statements=victim.statements())
        if waited(lambda: self.trap.pid, session):
            pid = self.trap.pid
            # Files and their checksums, and the temporary files of journal entries.
            self.trap.set(STEPS.format(location=victim.location), at=1 + int(victim.part * (2 * victim.files + 4)))
            os.kill(pid, signal.SIGCONT)
            waited(lambda: self.trap.pid, session)

    def release(self):
        self.trap.set("")


class S3:
    """Drivers killed while a request that changes something is held, before or after the server has executed it."""

    visibilities = ("in-place", "metastore-swap")
    environment = None

    def __init__(self, bed):
        self.bed = bed
        self.root = f"s3a://{BUCKET}"

    def run_to(self, session, victim):
        place = victim.location.removeprefix("s3a:/")
        requests = [("CompleteMultipartUpload", place, number) for number in range(victim.files)] + [
            ("PutObject", ".published", 0)
        ]
        if victim.deletes:
            requests.append(("DeleteObjects", "", 0))
        requests.append(("PutObject", "/_done-", 0))
        operation, part, skip = requests[int(victim.part * len(requests))]
        self.bed.inject({"operation": "PutObject", "path": ".commit", "count": 1, "do": "hold"})
        session.ask("lost_row_calls:run", statements=victim.statements())
        if waited(self.bed.held, session):
            # Only victims write now.
            self.bed.inject(
                {"operation": operation, "path": part, "skip": skip, "count": 1, "do": "hold", "after": victim.is_after}
            )
            waited(lambda: self.bed.struck, session)

    def release(self):
        self.bed.inject()


class Hdfs:
    """Drivers killed at a call of the name node's protocol, which the name node does not receive."""

    visibilities = ("in-place", "metastore-swap")
    environment = None
    RENAMES_BEFORE = 3  # of the begin entry, the commit lock and the record

    def __init__(self, bed):
        self.bed = bed
        self.root = bed.url
        self.caught = []

    def run_to(self, session, victim):
        # Of the files, of the published entry, and of the done mark.
        renames = victim.files + 2
        caught = []

        def hold():
            """The connection, and with it the driver, waits until this returns."""
            caught.append(True)
            while caught:
                time.sleep(0.02)

        self.bed.at_call("rename", self.RENAMES_BEFORE + int(victim.part * renames), hold)
        self.caught = caught
        session.ask("lost_row_calls:run", statements=victim.statements())
        waited(lambda: caught, session)

    def release(self):
        self.bed.at_no_call()
        self.caught.clear()


def waited(holds, session, within_s=PATIENCE_S):
    """Waits until a condition holds; returns false if the session's statement has ended before."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        if select.select([session.process.stdout], [], [], 0.02)[0]:
            return bool(holds())
    return True


class Bed:
    """A metastore, the reading driver, and the drivers to be killed, of which one starts while another is working."""

    def __init__(self, top, metastore, conf, reader_within=()):
        self.top, self.metastore, self.conf = top, metastore, {**CONF, **conf}
        self.started = 0
        self.usual_s = 4
        self.reader = self.start(None, reader_within)
        self.call("run", statements=["show databases"])
        self.spare = None

    def start(self, trap, within=()):
        self.started += 1
        return driver(self.top / f"driver{self.started}", self.metastore, trap, within, **self.conf)

    def next_victim(self, place):
        found, self.spare = self.spare or self.start(place.environment), self.start(place.environment)
        return found

    def drop_spare(self):
        if self.spare:
            self.spare.process.kill()
            self.spare.process.wait()
            self.spare = None

    def call(self, what, **arguments):
        answer = self.reader.call(f"lost_row_calls:{what}", **arguments)
        assert not isinstance(answer, dict) or "crash" not in answer, answer["crash"]
        return answer


@pytest.fixture(scope="module")
def servers():
    with S3Bed() as s3, HdfsBed() as hdfs:
        yield {"s3": S3(s3), "hdfs": Hdfs(hdfs)}


@pytest.fixture(scope="module")
def bed(servers, tmp_path_factory):
    with PostgresMetastore() as metastore:
        conf = {
            **servers["s3"].bed.spark_conf(),
            "spark.driver.extraClassPath": ":".join(map(str, [metastore.driver_jar(), *s3a_jars(pyspark.__version__)])),
        }
        found = Bed(tmp_path_factory.mktemp("drivers"), metastore, conf)
        yield found
        found.drop_spare()
        found.reader.close()


def run_and_kill(bed, place, victim, stop):
    """Runs the victim's statement until its driver is dead, with a concurrent reader; returns when it died, and what
    the reader has read.
    """
    session = bed.next_victim(place)
    pid = session.call("write_calls:driver")
    assert not any(bed.call("run", statements=victim.preparation()))
    earlier = bed.call("journal", root=victim.location)
    bed.reader.ask("lost_row_calls:read_until", table=victim.table, stop=str(stop))
    try:
        if victim.is_random:
            session.ask("lost_row_calls:run", statements=victim.statements())
            select.select([session.process.stdout], [], [], victim.delay * bed.usual_s)
        else:
            started = time.monotonic()
            place.run_to(session, victim)
            bed.usual_s = time.monotonic() - started
            read_more(stop)
        os.kill(pid, signal.SIGKILL)
        session.process.kill()
        session.process.wait()
        place.release()
        read_more(stop)
    finally:
        stop.touch()
        seen = bed.reader.answer()
    assert "crash" not in seen, seen
    return moment(bed, victim, earlier), seen


def read_more(stop):
    """Waits until a read has begun and ended."""
    count, deadline = reads(stop), time.monotonic() + PATIENCE_S
    while reads(stop) < count + 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def reads(stop):
    text = Path(f"{stop}.reads")
    return int((text.read_text() or 0) if text.exists() else 0)


def moment(bed, victim, earlier):
    """The stage at which the driver died, according to the new journal entries."""
    names = set(bed.call("journal", root=victim.location)) - set(earlier)
    if any(name.startswith("done-") for name in names):
        return "over"
    if any(name.endswith(".commit") for name in names):
        return "between"
    return "not committed" if any(name.endswith(".begin") for name in names) else "not begun"


def check_reads(victim, seen):
    """Checks that readers saw only old or new rows, as far as the visibility guarantees it."""
    old, new = victim.states()
    if victim.statement not in OVERWRITES:
        return
    for state in seen["states"]:
        if victim.visibility == "metastore-swap":
            assert state in (old, new), (str(victim), state)
        elif victim.visibility == "exchange":
            assert all(state.get(k) in (old.get(k), new.get(k)) for k in old.keys() | new.keys() | state.keys()), (
                str(victim),
                state,
            )
    assert victim.visibility != "metastore-swap" or seen["errors"] == [], (str(victim), seen["errors"])


def examine(bed, place, victim, when):
    """The resulting table: old or new."""
    old, new = victim.states()
    if victim.is_new and not bed.call("has_table", table=victim.table):
        if bed.call("exists", path=victim.location):
            recover_until_resolved(bed, victim.location)
        return "old"
    if victim.how == "recover" or victim.is_new:
        recover_until_resolved(bed, victim.table)
    else:
        assert bed.call("run", statements=[MORE.format(table=victim.table)]) == [None]
        old, new = {**old, **MORE_ROWS}, {**new, **MORE_ROWS}
    found = bed.call("partitions", table=victim.table)
    assert found in (old, new), (str(victim), when, found)
    if isinstance(place, Local) and not victim.is_new and victim.visibility != "metastore-swap":
        check(bed.reader.call("fault_calls:state", table=victim.table), old, new)
    assert found == new or when not in ("between", "over"), (str(victim), when, found)
    assert found == old or when not in ("not begun", "not committed"), (str(victim), when, found)
    recover_until_resolved(bed, victim.table)
    return "old" if found == old else "new"


def recover_until_resolved(bed, target):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = bed.call("recover", target=target)
        assert isinstance(found, list), found
        if all(finding["verdict"] != "alive" for finding in found):
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def kill_many(bed, place, tmp_path, seed):
    print("MILLSTREAM_SEED", seed)
    chance = random.Random(seed)
    moments, outcomes = Counter(), Counter()
    try:
        for number in range(KILLS):
            victim = Victim(number, chance, f"{place.root}/{tmp_path.name}", place.visibilities)
            print(victim, flush=True)
            when, seen = run_and_kill(bed, place, victim, tmp_path / f"stop{number}")
            moments[when] += 1
            check_reads(victim, seen)
            outcome = examine(bed, place, victim, when)
            outcomes[outcome] += 1
            print(
                f"    {when}: {outcome}; {seen['count']} reads, {len(seen['states'])} states, {len(seen['errors'])} errors",
                flush=True,
            )
            bed.call("run", statements=[f"drop database {victim.database} cascade"])
    finally:
        bed.drop_spare()
    share = moments["between"] / KILLS
    print(f"{KILLS} kills: {dict(moments)}, {share:.0%} between record and mark; {dict(outcomes)}")
    assert share >= 0.5


def test_on_local_files(bed, tmp_path, seed):
    with StepTrap() as trap:
        kill_many(bed, Local(tmp_path.parent, trap), tmp_path, seed)


@pytest.mark.parametrize("where", ["s3", "hdfs"])
def test_on_servers(bed, servers, tmp_path, seed, where):
    kill_many(bed, servers[where], tmp_path, seed)
