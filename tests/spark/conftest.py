"""One stock session and one with Millstream for all tests, on trees that are created once."""

import os
import shutil

import datasets
import pytest
from remote_places import Places
from sessions import Session

# Test sessions are too short for the JVM's second compiler (C2) to pay off; it used half of their CPU time. Options
# that are set in the environment stay: with SPARK_SUBMIT_OPTS= JVMs run as users have them.
for started in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(started, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


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
    A stock session and one with Millstream, for LZ4 frames and damaged files. Hadoop's codecs take any bytes
    where they expect a size as one, allocate that much, and a session with little memory dies.
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
    """Paths of a source and a destination that do not exist yet."""
    return local / "source", local / "destination"


@pytest.fixture(scope="session")
def data(top, stock):
    """The directory with the trees of datasets.py."""
    directory = top / "data"
    directory.mkdir()
    assert stock.call("session_calls:write_templates", data=str(directory)) is None
    datasets.build(directory)
    return directory
