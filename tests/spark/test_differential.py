"""Spark with Millstream gives what stock Spark gives: rows, schema, partition columns, file names, errors.

Each side runs all scenarios in a JVM of its own over the same files; here the outcomes are compared one by one.
Run it with the Python of each supported PySpark: `$(testbed/pyspark 4.3.0) -m pytest tests/spark`. The seed of the random
tree is in the test's output; `MILLSTREAM_TEST_SEED` repeats it.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import dataset
import pytest
import scenarios

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory, jar):
    seed = int(os.environ.get("MILLSTREAM_TEST_SEED") or random.randrange(1 << 32))
    print(f"MILLSTREAM_TEST_SEED={seed}")
    work = tmp_path_factory.mktemp("differential")
    root = work / "data"
    root.mkdir()
    dataset.make(root, seed)
    both = {}
    for side, arguments in (("stock", []), ("millstream", [str(jar)])):
        result = work / f"{side}.json"
        command = [sys.executable, str(HERE / "run_scenarios.py"), str(root), str(result), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr[-4000:]
        both[side] = json.loads(result.read_text())
    return both


@pytest.mark.parametrize("name", sorted(scenarios.SCENARIOS))
def test_same_as_stock(outcomes, name):
    stock, ours = dict(outcomes["stock"][name]), dict(outcomes["millstream"][name])
    stock.pop("trace", None), ours.pop("trace", None)
    assert not stock.pop("indexed")
    indexed = ours.pop("indexed")
    assert ours == stock
    if name.endswith("_indexed"):
        assert indexed, "the compact index was not used"
