"""A mount that does not answer blocks its callers, but they can be interrupted."""

import subprocess
from pathlib import Path

import pytest
from latency_mount import LatencyMount

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    tree = tmp_path_factory.mktemp("hanging") / "tree"
    subprocess.run([ROOT / "testbed" / "mktree", "nested", tree, "200", "2000"], check=True)
    return tree


@pytest.mark.parametrize("what", ["DataFrame", "textFile", "listFiles"])
def test_an_interrupted_thread_returns(ours, tree, what):
    with LatencyMount(tree, delay_us=0, hang_after=100) as mount:
        back = ours.call("session_calls:interrupted", path=str(mount.path), what=what)
    assert back["answers"] == [
        {"error": "java.io.InterruptedIOException", "message": "Interrupted while listing directories"}
    ]
    assert back["seconds"] < 5
