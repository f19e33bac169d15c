"""Rows that were once lost or silently missing (issue 13, rows F1 to F7), on S3, with two concurrent drivers on a
PostgreSQL metastore.

A commit is held at one of its requests while another program works on the same table. On local files:
test_lost_rows.py. Run with `make test-group GROUP=lost-rows-s3`.
"""

import os
import signal
import time
from itertools import count

import pyspark
import pytest
from bed_jars import hadoop_cloud_jar, s3a_jars
from faults import PostgresMetastore, driver
from s3_bed import S3Bed
from slow_direct_writes_servers import PATIENCE_S, S3

LEASE_MS = 120_000
NUMBERS = count()
SWAP = {"fs.millstream.write.visibility": "metastore-swap"}
COMMITTERS = {
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    "spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a": "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory",
    "spark.hadoop.fs.s3a.committer.staging.conflict-mode": "append",
}


@pytest.fixture(scope="module")
def s3():
    with S3Bed() as bed:
        yield S3(bed)


@pytest.fixture(scope="module")
def start(s3, tmp_path_factory):
    """Starts a driver; all have one metastore."""
    with PostgresMetastore() as metastore:

        def started(*more_jars, **more):
            jars = [metastore.driver_jar(), *s3a_jars(pyspark.__version__), *more_jars]
            conf = {
                **s3.bed.spark_conf(),
                "spark.driver.extraClassPath": ":".join(map(str, jars)),
                "spark.hadoop.fs.millstream.write.lease.ms": str(LEASE_MS),
                # The steps of a commit come one after the other.
                "spark.hadoop.fs.millstream.write.threads": "1",
                **more,
            }
            session = driver(tmp_path_factory.mktemp("driver") / "home", metastore, **conf)
            assert session.call("lost_row_calls:run", statements=["show databases"]) == [None]
            return session

        yield started


@pytest.fixture(scope="module")
def ours(start):
    """The driver whose commits are held. If its journal is gone, others wait for it only briefly."""
    session = start(**{"spark.hadoop.fs.millstream.write.lease.ms": "5000"})
    yield session
    session.close()


@pytest.fixture(scope="module")
def other(start):
    """The concurrent driver, with or without direct writes."""
    session = start()
    yield session
    session.close()


@pytest.fixture(scope="module")
def foreign(start):
    """A driver with S3A's committers."""
    session = start(hadoop_cloud_jar(pyspark.__version__), **COMMITTERS)
    yield session
    session.close()


def call(session, what, **arguments):
    answer = session.call(f"lost_row_calls:{what}", **arguments)
    assert not isinstance(answer, dict) or "crash" not in answer, answer["crash"]
    return answer


def run(session, *statements, **conf):
    assert call(session, "run", statements=statements, conf=conf) == [None] * len(statements)


def run_stock(session, *statements, **conf):
    assert call(session, "run_stock", statements=statements, conf=conf) == [None] * len(statements)


class Table:
    """A new table in a separate database, whose directory is on S3."""

    def __init__(
        self, session, root, columns="(a int) partitioned by (p string) stored as textfile", is_external=False
    ):
        self.database = f"d{next(NUMBERS)}"
        self.name, self.renamed = f"{self.database}.t", f"{self.database}.u"
        self.place = f"{root}/{self.database}.db/t"
        external = "external" if is_external else ""
        where = f"location '{self.place}'" if is_external else ""
        self.creation = f"create {external} table {self.name} {columns} {where}"
        run(session, f"create database {self.database} location '{root}/{self.database}.db'", self.creation)

    def insert(self, how, partition, values):
        """Written by eight tasks if there are enough rows."""
        numbers = ", ".join(map(str, values))
        return f"insert {how} {self.name} partition(p='{partition}') select /*+ repartition({min(8, len(values))}, a) */ a from values {numbers} v(a)"


def in_partition(partition, *values):
    return [[value, partition] for value in sorted(values)]


def rows(session, table):
    return call(session, "rows", table=table)


def recovered(session, target):
    """Recovers, as a last resort with loss; returns whether that was needed."""
    found = call(session, "recover", target=target)
    if isinstance(found, str):
        assert "--accept-loss" in found, found
        findings = call(session, "recover", target=target, accept_loss=True)
        print("    recover:", found, "\n    recover --accept-loss:", findings)
        assert any(finding["verdict"] == "lost" and finding["steps"] for finding in findings), findings
        return True
    print("    recover:", found)
    return False


def report(step, what, error, session, place):
    """Prints the result of a statement, and the journal that it has left."""
    print(
        f"{step}, {what}: {error and error.split(chr(10) + chr(9) + 'at ')[0]}\n    journal: {call(session, 'journal', root=place)}",
        flush=True,
    )


class Held:
    """Holds one request of a commit. If several faults are given, each waits for the one before."""

    def __init__(self, bed, *faults):
        self.bed, self.faults = bed, faults

    def during(self, session, statement, meanwhile, **conf):
        """Runs a statement, and a function while its request is held; returns the statement's error."""
        self.bed.inject(self.fault(0))
        try:
            session.ask("lost_row_calls:run", statements=[statement], conf=conf)
            self.wait()
            for number in range(1, len(self.faults)):
                self.bed.inject(self.fault(number))
                self.wait()
            meanwhile()
        finally:
            self.bed.inject()
        (error,) = session.answer()
        return error

    def fault(self, number):
        operation, part, skip, after = self.faults[number]
        return {"operation": operation, "path": part, "skip": skip, "count": 1, "do": "hold", "after": after}

    def wait(self):
        deadline = time.monotonic() + PATIENCE_S
        while not self.bed.struck:
            assert time.monotonic() < deadline, self.faults
            time.sleep(0.02)


RECORD, RECORD_WRITTEN = ("PutObject", ".commit", 0, False), ("PutObject", ".commit", 0, True)
COMPLETION, DELETE, DONE = (
    ("CompleteMultipartUpload", "", 2, False),
    ("DeleteObjects", "", 0, False),
    ("PutObject", "done-", 0, False),
)
STEPS = {
    "record": [RECORD],
    "recorded": [RECORD_WRITTEN],
    "completion": [COMPLETION],
    "delete": [RECORD, DELETE],
    "done": [DONE],
}


def kill_at(s3, session, step, table, statement, **conf):
    pid = session.call("write_calls:driver")
    session.ask("lost_row_calls:run", statements=[statement], conf=conf)
    try:
        s3.end_at(step, table.place, lambda: os.kill(pid, signal.SIGKILL))
    finally:
        session.process.kill()
        session.process.wait()


def test_f1_a_retry_within_the_lease_reads_all_rows_of_a_torn_commit(s3, start, other):
    table = Table(other, s3.root)
    kill_at(s3, start(), COMPLETION, table, table.insert("into", 1, range(40)))
    before = call(other, "journal", root=table.place)
    assert not any(name.startswith("done-") for name in before) and any(name.endswith(".commit") for name in before), (
        before
    )
    started = time.monotonic()

    run(other, f"insert overwrite {table.name} partition(p) select a + 100, p from {table.name}")

    assert time.monotonic() - started < LEASE_MS / 2000, "it has waited for the lease to run out"
    assert rows(other, table.name) == in_partition("1", *range(100, 140))
    assert call(other, "recover", target=table.name) == []


@pytest.mark.parametrize("way", ["an external table", "a partition of another table", "a source of version 2"])
def test_w1_a_part_of_a_torn_table_is_read_completely_by_another_way_than_its_name(s3, start, other, way):
    table = Table(other, s3.root)
    kill_at(s3, start(), COMPLETION, table, table.insert("into", 1, range(40)))

    found = other.call("guard_calls:copy", way=way, folder=table.place, name=f"r{next(NUMBERS)}")

    assert found == [None, list(range(40))]


# An INSERT INTO deletes nothing.
HELD = [(step, how) for step in STEPS for how in ("into", "overwrite") if (step, how) != ("delete", "into")]
OLD, NEW, THEIRS = [1, 2, 3], list(range(10, 18)), [7]


def before_f2(other, s3):
    table = Table(other, s3.root)
    run(other, table.insert("into", 1, OLD), table.insert("into", 2, [20]))
    return table


@pytest.mark.parametrize("step, how", HELD)
def test_f2_a_table_that_is_renamed_during_a_commit(s3, ours, other, step, how):
    table = before_f2(other, s3)
    old, new = in_partition("1", *OLD), in_partition("1", *(OLD if how == "into" else []), *NEW)

    rename = f"alter table {table.name} rename to {table.renamed}"
    error = Held(s3.bed, *STEPS[step]).during(ours, table.insert(how, 1, NEW), lambda: run_stock(other, rename))

    report(step, how, error, other, f"{table.place[:-1]}u")
    if error is None:
        assert rows(other, table.renamed) == new + in_partition("2", 20)
    is_lossy = recovered(other, table.renamed)
    found = rows(other, table.renamed)
    assert found in (sorted(old + in_partition("2", 20)), sorted(new + in_partition("2", 20))) or (
        is_lossy and how == "into"
    ), found
    assert error is not None or not is_lossy
    run(other, table.insert("into", 9, [90]).replace(table.name, table.renamed))
    assert rows(other, table.renamed) == sorted(found + in_partition("9", 90))
    # The error message is true.
    assert (
        is_lossy
        or "finishes it once the cause is gone" not in (error or "")
        or found == sorted(new + in_partition("2", 20))
    ), error


@pytest.mark.parametrize("step, how", HELD)
def test_f2_a_table_that_is_dropped_and_recreated_during_a_commit(s3, ours, other, step, how):
    table = before_f2(other, s3)

    error = Held(s3.bed, *STEPS[step]).during(
        ours, table.insert(how, 1, NEW), lambda: run_stock(other, f"drop table {table.name}", table.creation)
    )

    report(step, how, error, other, table.place)
    # At its last step a statement has written all its rows, and they were dropped with the table.
    assert error or step == "done", rows(other, table.name)
    recovered(other, table.name)
    run(other, table.insert("into", 1, [90]))
    assert rows(other, table.name) == in_partition("1", 90)


@pytest.mark.parametrize("step, how", HELD)
def test_f2_a_partition_that_stock_overwrites_during_a_commit(s3, ours, other, step, how):
    table = before_f2(other, s3)
    theirs_first = in_partition("1", *(THEIRS if how == "into" else []), *NEW)

    error = Held(s3.bed, *STEPS[step]).during(
        ours, table.insert(how, 1, NEW), lambda: run_stock(other, table.insert("overwrite", 1, THEIRS))
    )

    found = [row for row in rows(other, table.name) if row[1] == "1"]
    report(step, how, error, other, table.place)
    if error is None:
        # Once all its rows were there, the other statement may have replaced them.
        assert found == theirs_first or (step in ("delete", "done") and found == in_partition("1", *THEIRS)), found
    recovered(other, table.name)
    found = rows(other, table.name)
    both = [value for value, partition in found if partition == "1"]
    assert set(both) & set(THEIRS) or set(both) >= set(NEW), found
    assert not (how == "overwrite" and set(both) & set(OLD)), found
    run(other, table.insert("into", 9, [90]))
    assert rows(other, table.name) == sorted(found + in_partition("9", 90))


@pytest.mark.parametrize("marks", ["true", "false"])
def test_f5_an_empty_overwrite_of_partitions_of_a_new_path_leaves_a_path_without_rows(s3, other, marks):
    path = f"{s3.root}/empty/{next(NUMBERS)}"
    assert call(other, "write_empty", path=path, conf={"mapreduce.fileoutputcommitter.marksuccessfuljobs": marks}) == 0
    assert call(other, "recover", target=path) == []


@pytest.mark.parametrize("committer", ["magic", "directory"])
@pytest.mark.parametrize("step", ["record", "recorded", "completion"])
def test_f6_an_s3a_committer_during_a_commit_is_an_error_and_the_table_is_unchanged(
    s3, ours, other, foreign, step, committer
):
    table = Table(other, s3.root, "(a int, p string) using csv partitioned by (p)")
    run(other, table.insert("into", 1, OLD))
    conf = {"fs.s3a.committer.name": committer}

    error = Held(s3.bed, *STEPS[step]).during(
        ours, table.insert("into", 1, NEW), lambda: run_stock(foreign, table.insert("into", 2, [20]), **conf)
    )

    report(step, committer, error, other, table.place)
    assert error and "removed by another program" in error and "nothing is written" in error, error
    expected = in_partition("1", *OLD) + in_partition("2", 20)
    assert rows(other, table.name) == expected
    run(other, table.insert("into", 1, NEW))
    assert rows(other, table.name) == sorted(expected + in_partition("1", *NEW))
    assert call(other, "recover", target=table.name) == []


def test_f7_an_insert_that_finishes_a_killed_swap_of_a_table_without_partitions_succeeds(s3, start, other):
    table = Table(other, s3.root, "(a int) stored as textfile", is_external=True)
    run(other, f"insert into {table.name} select 1")
    step = ("PutObject", ".published", 0, False)
    kill_at(
        s3,
        start(**{"spark.hadoop.fs.millstream.write.lease.ms": "3000"}),
        step,
        table,
        f"insert overwrite {table.name} select 2",
        **SWAP,
    )

    report("published", "swap", "killed", other, table.place)
    run(other, f"insert into {table.name} select 3", **SWAP)

    assert rows(other, table.name) == [[2], [3]]
    assert call(other, "recover", target=table.name) == []
