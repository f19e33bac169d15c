"""A driver is killed while its overwrite switches locations: until the recovery, readers in another driver always see
exactly the old rows or exactly the new ones. Several drivers share the metastore, which uses PostgreSQL.
"""

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from faults import PostgresMetastore, settle
from sessions import Session

PARTITIONS = 6
KINDS = ["using parquet", "stored as textfile"]
# The job's begin entry, its lock and its commit record are hard links; files and their checksums are renamed, then
# journal entries.
STEPS = [
    ("link", 1),
    ("link", 2),
    ("link", 3),
    ("rename", 1),
    ("rename", 2 * PARTITIONS),
    ("rename", 2 * PARTITIONS + 1),
    ("unlink", 4),
]


@pytest.fixture(scope="module")
def conf():
    with PostgresMetastore() as metastore:
        yield {
            **metastore.spark_conf(),
            "spark.driver.extraClassPath": str(metastore.driver_jar()),
            "spark.millstream.write.enabled": "true",
            "spark.sql.sources.partitionOverwriteMode": "dynamic",
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
            "spark.hadoop.fs.millstream.write.visibility": "metastore-swap",
            "spark.hadoop.fs.millstream.write.lease.ms": "1000",
            "spark.hadoop.fs.millstream.write.threads": "1",
        }


@pytest.fixture(scope="module")
def reader(tmp_path_factory, conf):
    session = Session(tmp_path_factory.mktemp("reader") / "home", millstream=True, conf=conf)
    yield session
    session.close()


def overwrite_and_kill(home, conf, table, killer):
    """Writes one new row to each partition in a session that `killer`, a context that gets the driver's process, kills.
    Returns whether it did.
    """
    session = Session(home, millstream=True, conf=conf)
    try:
        with killer(session.call("write_calls:driver")):
            session.ask("swap_calls:fill", table=table, value="new", partitions=PARTITIONS)
            try:
                answer = session.answer()
                return isinstance(answer, dict) and "crash" in answer
            except RuntimeError:
                return True
    finally:
        session.process.kill()
        session.process.wait()


@contextlib.contextmanager
def at_call(pid, name, count):
    """Kills a process at the count-th call of that name by any of its threads."""
    tracer = subprocess.Popen(
        [
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-p",
            str(pid),
            "-e",
            f"trace={name}",
            "-e",
            f"inject={name}:signal=KILL:when={count}",
        ]
    )
    while tracer.poll() is None and "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text():
        time.sleep(0.1)
    threading.Thread(target=release, args=(tracer, pid), daemon=True).start()
    try:
        yield
    finally:
        tracer.terminate()
        tracer.wait()


def release(tracer, pid):
    """While the tracer of a dead process waits for another of its threads, the parent does not notice its death."""
    status = Path(f"/proc/{pid}/status")
    with contextlib.suppress(FileNotFoundError):
        while tracer.poll() is None:
            if "State:\tZ" in status.read_text():
                time.sleep(1)
                tracer.kill()
            time.sleep(0.2)


@contextlib.contextmanager
def after(pid, seconds):
    timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def check(reader, tmp_path, conf, kind, killer):
    table, home, stop = "s.t", str(tmp_path / "t"), tmp_path / "stop"
    reader.call("swap_calls:make", table=table, kind=kind, location=home, partitions=PARTITIONS)
    reader.ask("swap_calls:read_until", table=table, stop=str(stop))
    try:
        died = overwrite_and_kill(tmp_path / "writer", conf, table, killer)
        time.sleep(1)
    finally:
        stop.touch()
        seen = reader.answer()
    states = [[["old", PARTITIONS]], [["new", PARTITIONS + 1]]]
    assert [state for state in seen["rows"] if state not in states] == [], seen
    assert seen["errors"] == [] and seen["count"] > 0
    settle(reader, table)
    assert reader.call("swap_calls:values", table=table) in states
    return {**seen, "died": died}


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_killed_at_a_step(reader, tmp_path, conf, number):
    call, count = STEPS[number]
    assert check(reader, tmp_path, conf, KINDS[number % 2], lambda pid: at_call(pid, call, count))["died"]


def test_killed_at_random_moments(reader, tmp_path, conf, seed):
    print("MILLSTREAM_SEED", seed)
    chance = random.Random(seed)
    for number in range(4):
        run = tmp_path / str(number)
        run.mkdir()
        seconds = chance.uniform(0, 6)
        check(reader, run, conf, KINDS[number % 2], lambda pid, seconds=seconds: after(pid, seconds))


def test_not_killed(reader, tmp_path, conf):
    seen = check(reader, tmp_path, conf, KINDS[0], lambda pid: contextlib.nullcontext())
    assert seen["rows"][-1] == [["new", PARTITIONS + 1]]
