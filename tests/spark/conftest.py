"""One stock session and one with Millstream for all tests, over trees that are made once."""

import os
import random
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import datasets  # noqa: E402
from sessions import Session  # noqa: E402


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
def data(top, stock):
    """The directory with the trees of datasets.py."""
    directory = top / "data"
    directory.mkdir()
    stock.call("calls:write_templates", data=str(directory))
    datasets.build(directory)
    return directory


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", [int(os.environ.get("MILLSTREAM_SEED") or random.randrange(2**32))])
