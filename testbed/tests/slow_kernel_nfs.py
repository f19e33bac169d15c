"""kernel-nfs: a real kernel NFS mount from either server, cold after `remount`, its RPCs counted.

Boots User-Mode Linux and QEMU, so it is in the group `beds` of tests/groups and not found with the others. Needs root
and `testbed/setup slow qemu`.
"""

import itertools
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
DIRECTORIES, FILES = 20, 200
AMX = "amx_tile" in Path("/proc/cpuinfo").read_text()
KINDS = ["qemu"] if AMX else ["uml", "qemu"]


def descendants(pid, *programs):
    """Processes of some programs below one."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        name, _, rest = status.read_text().partition(" (")[2].rpartition(") ")
        parents[int(status.parent.name)] = (int(rest.split()[1]), name)
    below = {pid}
    while more := {child for child, (parent, _) in parents.items() if parent in below} - below:
        below |= more
    return [child for child in below if parents[child][1] in {program[:15] for program in programs}]


class KernelNfs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.tree = Path(scratch.name, "tree")
        subprocess.run([TESTBED / "mktree", "nested", cls.tree, str(DIRECTORIES), str(FILES)], check=True)

    def run_in_guest(self, script, *options):
        with tempfile.TemporaryDirectory() as out:
            command = [TESTBED / "kernel-nfs", *options, "-e", self.tree, "-O", out, "--", "bash", "-c", script]
            result = subprocess.run(command, capture_output=True, text=True, timeout=120)
            files = {path.name: path.read_text() for path in Path(out).iterdir()}
        return result, files

    def test_both_servers(self):
        for kind, server in itertools.product(KINDS, ("knfsd", "ganesha")):
            with self.subTest(kind=kind, server=server):
                script = (
                    'findmnt -no FSTYPE "$MNT" > $OUT/type; find "$MNT" -mindepth 1 | wc -l > $OUT/count; '
                    "rpc_counts > $OUT/first; remount && find $MNT > /dev/null; rpc_counts > $OUT/second; exit 5"
                )
                result, files = self.run_in_guest(script, "-k", kind, "-s", server)
                self.assertEqual(result.returncode, 5, result.stdout + result.stderr)
                self.assertEqual(files["type"].strip(), "nfs")
                self.assertEqual(int(files["count"]), DIRECTORIES - 1 + FILES)
                for name in ("first", "second"):  # the second is as cold as the first
                    counts = dict(word.split("=") for word in files[name].split())
                    self.assertEqual(int(counts["READDIRPLUS"]) // DIRECTORIES, 1)
                    self.assertEqual(int(counts["total"]), sum(int(n) for kind, n in counts.items() if kind != "total"))

    def test_the_round_trip_time_is_paid(self):
        script = 'TIMEFORMAT=%R; { time find "$MNT" > /dev/null; } 2> $OUT/seconds; rpc_counts > $OUT/rpcs'
        _, files = self.run_in_guest(script, "-r", "20")
        round_trips = 2 * DIRECTORIES  # at least: permission and listing, one after the other
        self.assertGreater(float(files["seconds"]), round_trips * 0.020)

    def test_another_client_has_caches_of_its_own(self):
        script = (
            'stat -c %d "$MNT" > $OUT/first; (exec_as_another_client stat -c %d "$MNT") > $OUT/second; echo 1 > "$MNT/new"; '
            '(exec_as_another_client bash -c \'cat "$MNT/new"; echo 2 > "$MNT/new"\') > $OUT/read; cat "$MNT/new" >> $OUT/read'
        )
        _, files = self.run_in_guest(script)
        self.assertNotEqual(files["first"], files["second"])
        self.assertEqual(files["read"], "1\n2\n")

    def test_the_guest_cannot_change_the_host(self):
        script = 'touch "$MNT/new" && ! touch /usr/new 2> /dev/null'
        result, _ = self.run_in_guest(script)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertFalse((self.tree / "new").exists())

    def test_a_guest_that_does_not_respond_is_ended(self):
        """Simulates a guest whose kernel spins."""
        command = [TESTBED / "kernel-nfs", "-e", self.tree, "--", "sleep", "600"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as bed:
            self.addCleanup(bed.kill)
            said = next((line for line in bed.stdout if "mounted" in line), None)
            self.assertIsNotNone(said)
            started = time.monotonic()
            guests = descendants(bed.pid, "linux.uml", "qemu-system-x86_64")
            self.assertNotEqual(guests, [])
            for guest in guests:
                os.kill(guest, signal.SIGSTOP)
            _, said = bed.communicate(timeout=100)
        self.assertEqual(bed.returncode, 98)
        self.assertIn("has not responded", said)
        self.assertLess(time.monotonic() - started, 80)

    def test_bad_use(self):
        for options in (
            ["--", "true"],
            ["-s", "ganesha", "--", "true"],
            ["-s", "other", "-e", "/", "--", "true"],
            ["-e", "/"],
        ):
            with self.subTest(options):
                result = subprocess.run([TESTBED / "kernel-nfs", *options], capture_output=True, text=True)
                self.assertIn(result.returncode, (2, 99))
                self.assertNotEqual(result.stderr, "")


if __name__ == "__main__":
    unittest.main()
