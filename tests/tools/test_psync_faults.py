"""psync between mounts that are slow, full, fail, or stop answering.

`PSYNC_PROGRAM=/usr/bin/rsync` runs these tests with rsync instead of psync; IS_RSYNC marks where psync promises more.
"""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import tools
from latency_mount import LatencyMount

PSYNC = os.environ.get("PSYNC_PROGRAM") or tools.command("psync")[0]
IS_RSYNC = Path(PSYNC).name == "rsync"
EIO, EDQUOT = b"Input/output error", b"Disk quota exceeded"


def psync(*arguments):
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    return subprocess.run([PSYNC, *map(str, arguments)], capture_output=True, timeout=120, env=environment)


def left_to_do(source, destination):
    """What rsync would still do, by contents."""
    result = subprocess.run(
        ["rsync", "-aHSnic", "--delete", f"{source}/", f"{destination}/"], capture_output=True, check=True
    )
    return result.stdout.decode()


def grow(root, directories, files, size=1000):
    for directory in range(directories):
        path = Path(root, f"d{directory}")
        path.mkdir(parents=True)
        for file in range(files):
            (path / f"f{file}").write_bytes(bytes([97 + file % 26]) * (size + file))
            os.utime(path / f"f{file}", (1_600_000_000 + file,) * 2)


def names(root):
    return {str(path.relative_to(root)) for path in Path(root).rglob("*")}


class Places(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)
        self.source, self.destination = self.scratch / "src", self.scratch / "dst"
        for place in self.source, self.destination:
            place.mkdir()


class FailingDisks(Places):
    def test_a_source_that_is_listed_in_part_deletes_nothing(self):
        for when in "--delete-after", "--delete-before":
            with self.subTest(when):
                self.setUp()
                grow(self.source, 3, 300, 10)
                grow(self.destination, 4, 310, 20)
                os.setxattr(self.source / "d1", "user.latfs.eio", b"")
                before = names(self.destination)
                with LatencyMount(self.source, delay_us=0, failures=True) as mount:
                    result = psync("-a", when, f"{mount.path}/", f"{self.destination}/")
                self.assertEqual(result.returncode, 23, result)
                self.assertIn(EIO, result.stderr)
                self.assertIn(b"d1", result.stderr)
                self.assertEqual(names(self.destination), before)
                for directory in "d0", "d2":
                    self.assertEqual((self.destination / directory / "f299").stat().st_size, 10 + 299)

    def test_a_destination_that_is_listed_in_part_is_told_of(self):
        grow(self.source, 3, 300, 10)
        grow(self.destination, 4, 310, 20)
        os.setxattr(self.destination / "d1", "user.latfs.eio", b"")
        before = names(self.destination)
        with LatencyMount(self.destination, delay_us=0, failures=True) as mount:
            result = psync("-a", "--delete-after", f"{self.source}/", f"{mount.path}/")
        self.assertEqual(result.returncode, 23, result)
        self.assertIn(EIO, result.stderr)
        self.assertEqual((self.destination / "d0" / "f299").stat().st_size, 10 + 299)
        if not IS_RSYNC:
            self.assertEqual(names(self.destination), before, "a listing that failed suppresses all deletions")

    def test_a_file_that_cannot_be_read_leaves_the_old_one(self):
        for size in 100_000, 12_000_000:
            with self.subTest(size):
                self.setUp()
                grow(self.source, 2, 20)
                grow(self.destination, 1, 20, 500)
                (self.source / "d0" / "bad").write_bytes(b"x" * size)
                (self.destination / "d0" / "bad").write_bytes(b"old")
                os.setxattr(self.source / "d0" / "bad", "user.latfs.eio", b"")
                with LatencyMount(self.source, delay_us=0, failures=True) as mount:
                    result = psync("-a", f"{mount.path}/", f"{self.destination}/")
                self.assertEqual(result.returncode, 23, result)
                self.assertIn(EIO, result.stderr)
                self.assertIn(b"bad", result.stderr)
                self.assertEqual((self.destination / "d0" / "bad").read_bytes(), b"old")
                self.assertEqual(names(self.destination), names(self.source), "no temporary file is left")
                (self.source / "d0" / "bad").unlink()
                (self.destination / "d0" / "bad").unlink()
                for path in (path for path in self.source.rglob("f*")):
                    self.assertEqual(path.read_bytes(), (self.destination / path.relative_to(self.source)).read_bytes())

    def test_what_cannot_be_closed_replaces_nothing(self):
        # A server reports a full quota when the data reaches it, which is when the file is closed.
        (self.source / "new").write_bytes(b"x" * 10_000)
        (self.source / "old").write_bytes(b"y" * 10_000)
        (self.source / "large").write_bytes(b"z" * 20_000_000)
        for name in "old", "extra":
            (self.destination / name).write_bytes(b"old")
        with LatencyMount(self.destination, delay_us=0, quota=False) as mount:
            result = psync("-a", "--delete-after", f"{self.source}/", f"{mount.path}/")
        if IS_RSYNC:
            return  # It does not ask whether closing has failed, and replaces the old file.
        self.assertIn(result.returncode, (11, 23), result)
        self.assertIn(EDQUOT, result.stderr)
        for name in b"new", b"old", b"large":
            self.assertIn(name, result.stderr)
        self.assertEqual(names(self.destination), {"old", "extra"})
        self.assertEqual((self.destination / "old").read_bytes(), b"old")

    def test_links_that_cannot_be_made_are_told_of(self):
        (self.source / "a").write_bytes(b"a")
        os.link(self.source / "a", self.source / "b")
        (self.source / "c").write_bytes(b"c")
        with LatencyMount(self.destination, delay_us=0, links=False) as mount:
            result = psync("-aH", f"{self.source}/", f"{mount.path}/")
        self.assertEqual(result.returncode, 23, result)
        self.assertIn(b"Operation not permitted", result.stderr)
        # Any one of the names is copied.
        self.assertIn(names(self.destination), ({"a", "c"}, {"b", "c"}, {"a", "b", "c"}))


class SlowMounts(Places):
    def test_both_sides_may_be_slow(self):
        grow(self.source, 6, 20)
        grow(self.destination, 8, 25, 500)
        os.link(self.source / "d0" / "f1", self.source / "d3" / "linked")
        with (
            LatencyMount(self.source, delay_us=500) as source,
            LatencyMount(self.destination, delay_us=500) as destination,
        ):
            for _ in range(2):
                result = psync("-aH", "--delete-after", f"{source.path}/", f"{destination.path}/")
                self.assertEqual((result.returncode, result.stderr), (0, b""))
                self.assertEqual(left_to_do(self.source, self.destination), "")

    def test_killed_runs_are_completed_by_the_next(self):
        seed = int(os.environ.get("MILLSTREAM_SEED") or time.time_ns() % 1_000_000)
        print(f"MILLSTREAM_SEED={seed}")
        moments = random.Random(seed)
        grow(self.source, 6, 20)
        (self.source / "large").write_bytes(b"l" * 9_000_000)
        grow(self.destination, 8, 25, 500)
        with (
            LatencyMount(self.source, delay_us=200) as source,
            LatencyMount(self.destination, delay_us=200) as destination,
        ):
            line = [PSYNC, "-aH", "--delete-after", f"{source.path}/", f"{destination.path}/"]
            for _ in range(5):
                run = subprocess.Popen(
                    line, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                time.sleep(moments.uniform(0, 0.3))
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
            result = psync(*line[1:])
            self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(left_to_do(self.source, self.destination), "")

    def test_what_vanishes_meanwhile_is_told_of(self):
        # The source is listed, and its files vanish before all are copied.
        grow(self.source, 8, 400)
        with LatencyMount(self.source, delay_us=1000) as source:

            def remove():
                while not (self.destination / "d0").exists():
                    time.sleep(0.001)
                for directory in self.source.iterdir():
                    for path in sorted(directory.iterdir())[::2]:
                        path.unlink()

            remover = threading.Thread(target=remove)
            remover.start()
            result = psync("-a", "--delete-after", f"{source.path}/", f"{self.destination}/")
            remover.join()
        self.assertEqual(result.returncode, 24, result)
        self.assertIn(b"vanished", result.stderr)
        self.assertLessEqual(names(self.source), names(self.destination))

    def test_a_signal_ends_a_run_whose_mount_does_not_answer(self):
        grow(self.source, 20, 50)
        with LatencyMount(self.source, delay_us=0, hang_after=200) as mount:
            # After the first file the kernel knows that this mount has no FLUSH. Until then an exit sends one for each
            # open file, and not even SIGKILL ends the wait for its answer.
            Path(mount.path, "d0/f0").read_bytes()
            running = subprocess.Popen(
                [PSYNC, "-a", f"{mount.path}/", f"{self.destination}/"],
                stderr=subprocess.DEVNULL,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
            time.sleep(0.5)
            self.assertIsNone(running.poll(), "the run waits for the mount")
            running.send_signal(signal.SIGINT)
            if IS_RSYNC:
                running.kill()  # Its own reaction to the signal waits for the mount, too.
            self.assertIn(running.wait(timeout=5), (-signal.SIGKILL,) if IS_RSYNC else (20, -signal.SIGINT))


if __name__ == "__main__":
    unittest.main()
