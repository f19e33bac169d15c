"""Concurrency adapts: few workers on a warm disk, a server's worth of them on a slow mount."""

import os
import re
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import tools
from latency_mount import LatencyMount

CPUS = len(os.sched_getaffinity(0))
# pfind needs attributes for -size, so that all three tools call the volume for every entry.
WORK = {"pfind": ["{}", "-size", "+0"], "pls": ["-lR", "{}"], "pdu": ["-s", "{}"]}


def arguments(tool, path):
    return [str(path) if word == "{}" else word for word in WORK[tool]]


class Pace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.tree = Path(cls.scratch.name, "tree")
        subprocess.run([tools.ROOT / "testbed/mktree", "nested", cls.tree, "800", "8000"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_warm_disk_gets_a_worker_a_cpu(self):
        for tool in tools.TOOLS:
            tools.run(tool, *arguments(tool, self.tree))
            # A busy machine makes runs look like waiting; those that it leaves alone must not.
            threads = sorted(tools.threads_used(tool, *arguments(tool, self.tree)) for _ in range(9))
            self.assertLessEqual(threads[2], 2 * CPUS, f"{tool}: {threads}")

    def test_slow_mount_gets_64_workers_and_keeps_the_server_busy(self):
        for tool in tools.TOOLS:
            with LatencyMount(self.tree, delay_us=2000, ttl_s=60) as mount:
                threads = tools.threads_used(tool, *arguments(tool, mount.path))
            self.assertGreaterEqual(threads, 64, tool)
            self.assertGreaterEqual(mount.statistics.max_in_flight, 48, f"{tool}: {mount.statistics.line}")

    def test_the_bound_on_bytes_is_no_slow_storage(self):
        with tempfile.TemporaryDirectory() as scratch:
            source = Path(scratch, "source")
            for i in range(3000):
                directory = source / f"d{i % 30}"
                directory.mkdir(parents=True, exist_ok=True)
                (directory / f"file{i}").write_bytes(b"x" * 1000)
            process = subprocess.Popen(tools.command("pcopy", "-r", "--bwlimit=1M", source, Path(scratch, "copy")))
            threads = []
            while process.poll() is None:
                threads += re.findall(r"Threads:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
                time.sleep(0.01)
        self.assertEqual(process.returncode, 0)
        self.assertLessEqual(max(map(int, threads)), 2 * CPUS + 2)

    def test_no_more_requests_than_the_original(self):
        original = {"pfind": "find", "pls": "ls", "pdu": "du"}
        for tool in tools.TOOLS:
            counts = []
            for command in ([original[tool]], tools.command(tool)):
                with LatencyMount(self.tree, delay_us=0, ttl_s=60) as mount:
                    subprocess.run([*command, *arguments(tool, mount.path)], stdout=subprocess.DEVNULL, check=True)
                counts.append(mount.statistics.total)
            self.assertLessEqual(counts[1], counts[0], tool)

    def test_threads_option_fixes_the_number(self):
        with LatencyMount(self.tree, delay_us=500, ttl_s=60) as mount:
            threads = tools.threads_used("pfind", "--threads", "5", mount.path)
        self.assertEqual(threads, 5)
        self.assertLessEqual(mount.statistics.max_in_flight, 5)


if __name__ == "__main__":
    unittest.main()
