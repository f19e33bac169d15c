"""Options and seeds of all tests that pytest runs.

`--share` runs a part of the tests: `make test` has time for some modules only. The selection changes with every commit,
so that a few runs cover all.
"""

import json
import os
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from shares import parts_of

HERE = Path(__file__).resolve().parent
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
    return f"share: {part + 1}/{parts}"


def pytest_collection_modifyitems(config, items):
    """
    Deselects tests outside the share. All tests, one after the other, are cut into parts that take about as long, so
    that a part has few modules: what a module sets up is set up once or twice in all parts together.
    """
    part, parts = share_of(config.getoption("--share"))
    seconds = json.loads(SECONDS.read_text())
    counts = Counter(item.path.name for item in items)
    costs = [seconds.get(item.path.name, counts[item.path.name]) / counts[item.path.name] for item in items]
    left_out = {item for item, part_of_item in zip(items, parts_of(costs, parts)) if part_of_item != part}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", [int(os.environ.get("MILLSTREAM_SEED") or random.randrange(2**32))])
