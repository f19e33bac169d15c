"""Runs the S3 proxy's own tests, which need no S3 server."""

import subprocess
import sys
import unittest
from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTBED))
from s3_bed import PROXY_SOURCES, go_command  # noqa: E402


class Proxy(unittest.TestCase):
    def go(self, *arguments):
        done = subprocess.run([go_command(), *arguments], cwd=PROXY_SOURCES, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr}")

    def test_go_vet(self):
        self.go("vet", "./...")

    def test_go_test(self):
        self.go("test", "./...")


if __name__ == "__main__":
    unittest.main()
