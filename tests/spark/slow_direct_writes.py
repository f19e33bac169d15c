"""The driver is killed while it writes straight into a table: after a recovery the table is exactly old or exactly new.

Killed at its steps (the system calls by which the commit and what follows it are made), and at random moments.
"""

import os
import random
import signal
import subprocess
import threading
import time

import pytest

from sessions import Session

# A single thread publishes and deletes, so that the calls are counted one after the other.
CONF = {
    "spark.millstream.write.enabled": "true",
    "spark.hadoop.fs.millstream.write.lease.ms": "1000",
    "spark.hadoop.fs.millstream.write.threads": "1",
}
PARTITIONS = 6
# The calls of a job: the record of its beginning, its turn and its commit are links; then files are renamed, and others removed.
STEPS = [("link", 1), ("link", 2), ("link", 3), *(("rename", n) for n in (1, 2, 4, 7, 11)), *(("unlink", n) for n in (1, 2, 4, 6, 9, 12))]


@pytest.fixture(scope="module")
def checker(tmp_path_factory):
    session = Session(tmp_path_factory.mktemp("checker") / "home", millstream=True, conf=CONF)
    yield session
    session.close()


def overwritten(home, table, kill):
    """Begins to overwrite a table in a session of its own that `kill` ends, given the driver's process."""
    session = Session(home, millstream=True, conf=CONF)
    pid = session.call("write_calls:fill", path=table, value="old", partitions=PARTITIONS, mode="append")
    session.ask("write_calls:fill", path=table, value="new", partitions=PARTITIONS, mode="overwrite")
    kill(pid)
    try:
        session.answer()
    except RuntimeError:
        pass
    session.process.kill()
    session.process.wait()


def settled(checker, table):
    """What a table holds after the recovery, and what that found."""
    deadline = time.monotonic() + 60
    while True:
        found = checker.call("write_calls:recover", target=table)
        if all(finding["verdict"] != "alive" for finding in found):
            break
        assert time.monotonic() < deadline, found
        time.sleep(0.5)
    names = [name for _, folders, files in os.walk(table) for name in folders + files]
    assert [name for name in names if ".direct-" in name and name != ".direct-writes"] == []
    return checker.call("write_calls:values", path=table), found


@pytest.mark.parametrize("call, count", STEPS)
def test_killed_at_a_step(checker, tmp_path, call, count):
    table = str(tmp_path / "table")

    def kill(pid):
        subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid), "-e", f"trace={call}",
                        "-e", f"inject={call}:signal=KILL:when={count}"], timeout=120, check=False)

    overwritten(tmp_path / "home", table, kill)
    values, _ = settled(checker, table)
    assert values in ([["old", PARTITIONS]], [["new", PARTITIONS]])


def test_killed_at_random_moments(checker, tmp_path, seed):
    print("MILLSTREAM_SEED", seed)
    chance = random.Random(seed)
    for number in range(5):
        table = str(tmp_path / f"table{number}")
        delay = chance.uniform(0, 1.5)

        def kill(pid, delay=delay):
            threading.Timer(delay, os.kill, (pid, signal.SIGKILL)).start()

        overwritten(tmp_path / f"home{number}", table, kill)
        values, _ = settled(checker, table)
        assert values in ([["old", PARTITIONS]], [["new", PARTITIONS]]), delay
