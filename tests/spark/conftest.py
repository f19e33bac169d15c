"""One stock session and one with Millstream for all tests, on trees that are created once.

`--share` runs a part of the tests: `make test` has time for only some of each file. The selection
changes with every commit, so that a few runs cover all.
"""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import datasets
from remote_places import Places
from sessions import Session

HERE = Path(__file__).resolve().parent
SHARED = HERE, HERE.parents[1] / "python/tests"
# Test sessions are too short for the JVM's second compiler (C2) to pay off; it used half of their CPU time. Options
# that are set in the environment stay: with SPARK_SUBMIT_OPTS= JVMs run as users have them.
for started in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(started, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_addoption(parser):
    parser.addoption(
        "--share",
        default="1/1",
        metavar="K/N",
        help="of each file every Nth test, from the Kth on; auto/N takes K from the number of commits",
    )


def share_of(option):
    """First and step of a share, as (0, 3) for 1/3."""
    first, _, step = option.partition("/")
    if first != "auto":
        return int(first) - 1, int(step)
    counted = subprocess.run(["git", "-C", HERE, "rev-list", "--count", "HEAD"], capture_output=True, text=True)
    return int(counted.stdout or 0) % int(step), int(step)


def pytest_report_header(config):
    first, step = share_of(config.getoption("--share"))
    return f"tests/spark: --share {first + 1}/{step}"


def pytest_collection_modifyitems(config, items):
    """Deselects tests outside the share. Tests with a random seed differ each time, and always run."""
    first, step = share_of(config.getoption("--share"))
    seen, left_out = {}, []
    for item in items:
        if item.path.parent in SHARED and not any("seed" in name for name in item.fixturenames):
            number = seen[item.path] = seen.get(item.path, -1) + 1
            if (number - first) % step:
                left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


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
