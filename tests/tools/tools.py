"""The paths of the tools, and how the tests in this directory run them."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "checked"
sys.path.insert(0, str(ROOT / "testbed"))

TOOLS = ("pfind", "pls", "pdu")


def command(tool, *arguments):
    """The command line of one of our tools."""
    return [str(BINARIES / tool), *map(str, arguments)]


def run(tool, *arguments, **options):
    """Runs a tool to its end; output as bytes."""
    return subprocess.run(command(tool, *arguments), capture_output=True, timeout=120, **options)


def threads_used(tool, *arguments):
    """The maximum number of workers in a run, from its --verbose report."""
    result = run(tool, "--verbose", *arguments)
    found = re.search(rb"(\d+) threads?", result.stderr)
    assert result.returncode == 0 and found, result.stderr
    return int(found[1])
