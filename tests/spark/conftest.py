"""One stock session and one with Millstream for all tests, on trees that are created once.

`--share` runs a part of the tests: `make test` has time for some modules only. The selection changes with every commit, so
that a few runs cover all.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import datasets
from remote_places import Places
from sessions import Session
from shares import parts_of

HERE = Path(__file__).resolve().parent
SHARED = HERE, HERE.parents[1] / "python/tests"
# Test sessions are too short for the JVM's second compiler (C2) to pay off; it used half of their CPU time. Options
# that are set in the environment stay: with SPARK_SUBMIT_OPTS= JVMs run as users have them.
for started in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(started, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


# How long the tests of each module take, with what they set up; `--write-seconds` measures it.
SECONDS = HERE / "seconds.json"


def pytest_addoption(parser):
    parser.addoption(
        "--share",
        default="1/1",
        metavar="K/N",
        help="the Kth of N parts that take about as long; auto/N takes K from the number of commits",
    )
    parser.addoption("--write-seconds", action="store_true", help=f"write {SECONDS.name}, by which shares are cut")


def share_of(option):
    """Which part, from 0 on, and of how many, as (0, 3) for 1/3."""
    part, _, parts = option.partition("/")
    if part != "auto":
        return int(part) - 1, int(parts)
    counted = subprocess.run(["git", "-C", HERE, "rev-list", "--count", "HEAD"], capture_output=True, text=True)
    return int(counted.stdout or 0) % int(parts), int(parts)


def pytest_configure(config):
    if config.getoption("--write-seconds"):
        if config.getoption("--share") != "1/1" or config.getoption("keyword"):
            raise pytest.UsageError("--write-seconds measures whole modules: leave out --share and -k")
        config.pluginmanager.register(Stopwatch(), "stopwatch")


class Stopwatch:
    """Measures modules."""

    def __init__(self):
        self.seconds = Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[Path(report.nodeid.partition("::")[0]).name] += report.duration

    def pytest_sessionfinish(self, exitstatus):
        if exitstatus != pytest.ExitCode.OK:
            return
        found = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
        found |= {module: round(seconds, 1) for module, seconds in self.seconds.items()}
        SECONDS.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")


def pytest_report_header(config):
    part, parts = share_of(config.getoption("--share"))
    return f"tests/spark: --share {part + 1}/{parts}"


def pytest_collection_modifyitems(config, items):
    """
    Deselects tests outside the share. All tests, one after the other, are cut into parts that take about as long, so that a
    part has few modules: what a module sets up is set up once or twice in all parts together.
    """
    part, parts = share_of(config.getoption("--share"))
    seconds = json.loads(SECONDS.read_text())
    shared = [item for item in items if item.path.parent in SHARED]
    counts = Counter(item.path.name for item in shared)
    costs = [seconds.get(item.path.name, counts[item.path.name]) / counts[item.path.name] for item in shared]
    left_out = {item for item, part_of_item in zip(shared, parts_of(costs, parts)) if part_of_item != part}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def top(tmp_path_factory):
    top = tmp_path_factory.mktemp("spark")
    yield top
    for locked in ("directory/locked", "partitions/k=2"):
        path = top / "data" / "forbidden" / locked
        if path.exists():
            path.chmod(0o700)
    shutil.rmtree(top)


@pytest.fixture(scope="session")
def stock(top):
    session = Session(top / "stock", millstream=False)
    yield session
    session.close()


@pytest.fixture(scope="session")
def ours(top):
    session = Session(top / "ours", millstream=True)
    yield session
    session.close()


@pytest.fixture(scope="session")
def roomy(top):
    """
    A stock session and one with Millstream, for LZ4 frames and damaged files. Hadoop's codecs take whatever is where
    they expect a size, allocate as much, and a session with little memory ends.
    """
    found = {
        name: Session(top / f"{name}-roomy", millstream=name == "ours", conf={"spark.driver.memory": "6g"})
        for name in ("stock", "ours")
    }
    yield found
    for session in found.values():
        session.close()


@pytest.fixture(scope="session")
def places(tmp_path_factory):
    """S3 and HDFS with sessions (remote_places.py)."""
    found = Places(tmp_path_factory.mktemp)
    yield found
    found.close()


@pytest.fixture
def local(tmp_path):
    """A directory that other users may search."""
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.fixture
def pair(local):
    """Paths of a source and a destination that are not there yet."""
    return local / "source", local / "destination"


@pytest.fixture(scope="session")
def data(top, stock):
    """The directory with the trees of datasets.py."""
    directory = top / "data"
    directory.mkdir()
    assert stock.call("calls:write_templates", data=str(directory)) is None
    datasets.build(directory)
    return directory


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", [int(os.environ.get("MILLSTREAM_SEED") or random.randrange(2**32))])
