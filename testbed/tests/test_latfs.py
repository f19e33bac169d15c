"""latfs: delays apply and overlap, counters are correct, contents pass through, the mount can hang.

Needs root. This process never accesses a hanging mount itself: a child process does, and is killed.
"""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTBED))
from latency_mount import LatencyMount, SyntheticMount  # noqa: E402

LATFS = TESTBED / "latfs"


def describe(root):
    """Every entry below `root`, with everything that `find` can print about it."""
    fields = r"%P\t%i\t%y\t%m\t%U\t%G\t%s\t%b\t%n\t%l\t%T@\t%C@\0"
    listing = subprocess.run(["find", root, "-mindepth", "1", "-printf", fields], capture_output=True, check=True)
    return sorted(listing.stdout.split(b"\0"))


class WithSource(unittest.TestCase):
    """A separate source directory for each test, on disk, or in tmpfs if the test asks for it."""

    def make_source(self, parent=None):
        source = Path(tempfile.mkdtemp(prefix="latfs-test.", dir=parent))
        self.addCleanup(shutil.rmtree, source)
        return source

    def make_files(self, count):
        source = self.make_source()
        for i in range(count):
            (source / f"file_{i}").write_bytes(b"x" * i)
        return source


class Delays(WithSource):
    def test_each_request_costs_its_delay(self):
        delay_s = 0.005
        with LatencyMount(self.make_files(40), delay_us=5000) as mount:
            took_s = []
            for i in range(40):
                start = time.monotonic()
                os.stat(mount.path / f"file_{i}")
                took_s.append(time.monotonic() - start)
            requests = mount.read_statistics().total
        self.assertGreaterEqual(requests, 40)
        self.assertGreaterEqual(sum(took_s), requests * delay_s)
        # On a busy machine, most take longer.
        self.assertLess(min(took_s), requests / 40 * delay_s * 2)
        self.assertEqual(mount.statistics.max_in_flight, 1)

    def test_requests_in_flight_share_the_delay(self):
        threads_count, stats_each, delay_s = 32, 4, 0.02
        with LatencyMount(self.make_files(threads_count), delay_us=20_000) as mount:

            def stat_one(i):
                for _ in range(stats_each):
                    os.stat(mount.path / f"file_{i}")

            threads = [threading.Thread(target=stat_one, args=(i,)) for i in range(threads_count)]
            start = time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took_s = time.monotonic() - start
        serial_s = mount.statistics.total * delay_s
        self.assertGreaterEqual(mount.statistics.total, threads_count * stats_each)
        self.assertLess(took_s, serial_s / 8)
        self.assertGreater(mount.statistics.max_in_flight, threads_count // 2)
        self.assertLessEqual(mount.statistics.max_in_flight, threads_count)


class Counters(WithSource):
    def make_tree(self):
        source = self.make_source()
        for i in range(10):
            (source / f"dir_{i}").mkdir()
            (source / f"dir_{i}" / "file").write_text("contents")
        return source

    def test_a_listing_is_one_open_and_one_reply_a_directory(self):
        source = self.make_tree()
        for prepared in (False, True):
            for readdirplus, kind in ((True, "READDIRPLUS"), (False, "READDIR")):
                with self.subTest(prepared=prepared, kind=kind):
                    options = {"ttl_s": 60, "readdirplus": readdirplus, "prepared": prepared}
                    with LatencyMount(source, delay_us=0, **options) as mount:
                        self.assertEqual(sum(len(files) for _, _, files in os.walk(mount.path)), 10)
                    self.assertEqual(mount.statistics.by_kind["OPENDIR"], 11)
                    self.assertEqual(mount.statistics.by_kind[kind], 11)
                    self.assertEqual("LOOKUP" in mount.statistics.by_kind, not readdirplus)
                    self.assertEqual(mount.statistics.total, sum(mount.statistics.by_kind.values()))

    def test_attributes_from_a_listing_are_requested_again_only_without_ttl(self):
        source = self.make_tree()
        for ttl_s in (0, 60):
            with self.subTest(ttl_s=ttl_s), LatencyMount(source, delay_us=0, ttl_s=ttl_s) as mount:
                directory = mount.path / "dir_0"
                os.listdir(directory)
                before = mount.read_statistics().total
                os.stat(directory / "file")
                asked = mount.read_statistics().total - before
                self.assertEqual(asked > 0, ttl_s == 0)

    def test_file_requests_are_counted_by_kind(self):
        with LatencyMount(self.make_source(), delay_us=0, ttl_s=60) as mount:
            (mount.path / "a").write_bytes(b"12345")
            os.rename(mount.path / "a", mount.path / "b")
            self.assertEqual((mount.path / "b").read_bytes(), b"12345")
            os.unlink(mount.path / "b")
        for kind in ("CREATE", "WRITE", "OPEN", "READ", "UNLINK"):
            self.assertEqual(mount.statistics.by_kind[kind], 1, kind)
        renames = [count for kind, count in mount.statistics.by_kind.items() if kind.startswith("RENAME")]
        self.assertEqual(renames, [1])


class PassThrough(WithSource):
    def test_awkward_trees_look_the_same(self):
        for parent in (None, "/dev/shm"):  # ext4 (most often) and tmpfs: handles found by rule and by table
            source = self.make_source(parent)
            source.rmdir()
            subprocess.run([TESTBED / "mktree", "random", "7", source], check=True)
            expected = describe(source)
            self.assertGreater(len(expected), 100)
            for options in ({"ttl_s": 60}, {}, {"prepared": True}, {"readdirplus": False}):
                with self.subTest(parent=parent, **options), LatencyMount(source, delay_us=0, **options) as mount:
                    self.assertEqual(describe(mount.path), expected)

    def test_a_directory_larger_than_any_buffer(self):
        source = self.make_source()
        subprocess.run([TESTBED / "mktree", "flat", source, "20000"], check=True)
        for options in ({}, {"prepared": True}, {"readdirplus": False, "prepared": True}):
            with self.subTest(**options), LatencyMount(source, delay_us=0, **options) as mount:
                self.assertEqual(sorted(os.listdir(mount.path)), [f"file_{i:07d}.dat" for i in range(20_000)])

    def test_changes_arrive_in_the_source(self):
        source = self.make_source()
        (source / "old").mkdir()
        with LatencyMount(source, delay_us=0, ttl_s=60, prepared=True) as mount:
            path = mount.path
            self.assertEqual(os.listdir(path), ["old"])
            (path / "dir").mkdir(mode=0o750)
            (path / "dir" / "file").write_bytes(b"0123456789")
            os.truncate(path / "dir" / "file", 4)
            os.chmod(path / "dir" / "file", 0o640)
            os.chown(path / "dir" / "file", 12, 34)
            os.utime(path / "dir" / "file", ns=(10**18 + 1, 10**18 + 2))
            os.link(path / "dir" / "file", path / "hard")
            os.symlink("dir/file", path / "soft")
            os.utime(path / "soft", ns=(5, 6), follow_symlinks=False)
            os.mkfifo(path / "fifo")
            os.mknod(path / "device", 0o020600, os.makedev(300, 70_000))
            self.assertEqual(os.lstat(path / "device").st_rdev, os.makedev(300, 70_000))
            os.rename(path / "old", path / "new")
            with open(path / "hard", "ab") as file:
                file.write(b"tail")
            (path / "gone").mkdir()
            (path / "gone").rmdir()
            self.assertEqual(sorted(os.listdir(path)), ["device", "dir", "fifo", "hard", "new", "soft"])
        self.assertEqual(sorted(os.listdir(source)), ["device", "dir", "fifo", "hard", "new", "soft"])
        self.assertEqual((source / "dir" / "file").read_bytes(), b"0123tail")
        self.assertEqual(os.lstat(source / "device").st_rdev, os.makedev(300, 70_000))
        file = os.stat(source / "hard")
        self.assertEqual((file.st_mode, file.st_uid, file.st_gid, file.st_nlink), (0o100640, 12, 34, 2))
        self.assertEqual(os.lstat(source / "soft").st_mtime_ns, 6)
        self.assertEqual(os.readlink(source / "soft"), "dir/file")

    def test_errors_pass_through(self):
        source = self.make_files(1)
        with LatencyMount(source, delay_us=0) as mount:
            for call, error in (
                (lambda: os.stat(mount.path / "missing"), FileNotFoundError),
                (lambda: os.rmdir(mount.path / "file_0"), NotADirectoryError),
                (lambda: os.mkdir(mount.path / "file_0"), FileExistsError),
                (lambda: os.listdir(mount.path / "file_0"), NotADirectoryError),
                (lambda: os.getxattr(mount.path / "file_0", "user.x"), OSError),
            ):
                self.assertRaises(error, call)


# The server takes note of the switch by then, also on a busy machine.
HANGS_AFTER_S = 0.5


class Hanging(WithSource):
    def stat_in_child(self, path):
        # A script that runs the tests in the background makes them ignore SIGINT.
        child = subprocess.Popen(
            ["env", "--default-signal=INT", "stat", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def assert_blocked(self, child):
        with self.assertRaises(subprocess.TimeoutExpired):
            child.wait(timeout=0.3)

    def test_the_switch_blocks_and_releases_callers(self):
        with LatencyMount(self.make_files(1), delay_us=0) as mount:
            os.kill(mount.server_pid, signal.SIGUSR2)
            time.sleep(HANGS_AFTER_S)
            child = self.stat_in_child(mount.path / "file_0")
            self.assert_blocked(child)
            os.kill(mount.server_pid, signal.SIGUSR2)
            self.assertEqual(child.wait(timeout=5), 0)

    def test_a_blocked_caller_can_be_killed(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number), LatencyMount(self.make_files(1), delay_us=0) as mount:
                os.kill(mount.server_pid, signal.SIGUSR2)
                time.sleep(HANGS_AFTER_S)
                child = self.stat_in_child(mount.path / "file_0")
                self.assert_blocked(child)
                child.send_signal(number)
                self.assertEqual(child.wait(timeout=5), -number)

    def test_unmounting_releases_the_caller_with_an_error(self):
        with LatencyMount(self.make_files(1), delay_us=0) as mount:
            os.kill(mount.server_pid, signal.SIGUSR2)
            time.sleep(HANGS_AFTER_S)
            child = self.stat_in_child(mount.path / "file_0")
            self.assert_blocked(child)
        self.assertEqual(child.wait(timeout=5), 1)

    def test_the_server_of_a_hanging_mount_ends_with_it(self):
        with LatencyMount(self.make_files(1), delay_us=0) as mount:
            os.kill(mount.server_pid, signal.SIGUSR2)
            time.sleep(HANGS_AFTER_S)
            # Without umount(8), which accesses the mount first.
            detach = "import ctypes, sys; sys.exit(ctypes.CDLL(None).umount2(sys.argv[1].encode(), 2))"
            subprocess.run([sys.executable, "-c", detach, mount.path], check=True, timeout=5)
            deadline = time.monotonic() + 5
            while "State:\tZ" not in Path(f"/proc/{mount.server_pid}/status").read_text():
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)

    def test_it_hangs_after_the_given_number_of_requests(self):
        with LatencyMount(self.make_files(50), delay_us=0, hang_after=20) as mount:
            child = subprocess.Popen(["find", mount.path, "-size", "+1"], stdout=subprocess.DEVNULL)
            self.assert_blocked(child)
            self.assertEqual(mount.read_statistics().total, 20)
            child.kill()
            child.wait(timeout=5)

    def test_what_has_the_attribute_fails_when_it_is_read_written_or_listed(self):
        source = self.make_files(3)
        (source / "directory").mkdir()
        for number in range(10):
            (source / "directory" / str(number)).touch()
        (source / "file_0").write_bytes(b"x" * 100_000)
        (source / "file_2").write_bytes(b"x" * 100_000)
        for name in ("file_0", "directory"):
            os.setxattr(source / name, "user.latfs.eio", b"")
        for failures in (False, True):
            with self.subTest(failures=failures), LatencyMount(source, delay_us=0, failures=failures) as mount:
                self.assertEqual((mount.path / "file_2").read_bytes(), b"x" * 100_000)
                self.assertIn("file_1", os.listdir(mount.path))
                for access in (
                    (mount.path / "file_0").read_bytes,
                    lambda: (mount.path / "file_0").write_bytes(b"x" * 100_000),
                    lambda: os.listdir(mount.path / "directory"),
                ):
                    if failures:
                        with self.assertRaises(OSError) as raised:
                            access()
                        self.assertEqual(raised.exception.errno, errno.EIO)
                    else:
                        access()


class CommandLine(WithSource):
    def run_latfs(self, *arguments):
        return subprocess.run([LATFS, *arguments], capture_output=True, text=True)

    def test_status_counters_and_clean_up(self):
        source = self.make_files(3)
        script = 'ls "$MNT" | wc -l; echo "$MNT"; kill -0 $LATFS_PID || exit 1; exit 7'
        result = self.run_latfs("--delay-us", "0", source, "--", "sh", "-c", script)
        count, mount_point = result.stdout.split()
        self.assertEqual((result.returncode, count), (7, "3"))
        self.assertRegex(result.stderr, r"OPENDIR=1 .*total=\d+ max_inflight=1\n$")
        self.assertFalse(os.path.exists(os.path.dirname(mount_point)))

    def test_counters_to_a_file(self):
        counters = self.make_source() / "counters"
        result = self.run_latfs("--stats", counters, self.make_files(1), "--", "true")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(counters.read_text(), r"total=\d+ max_inflight=\d+\n$")

    def test_options_reach_the_mount(self):
        for options, script in (
            ([], 'ln "$MNT/file_0" "$MNT/link"; cp "$MNT/file_0" "$MNT/copy"'),
            (["--no-quota"], '! cp "$MNT/file_0" "$MNT/copy"'),
            (["--failures"], 'cp "$MNT/file_0" "$MNT/copy"'),
            (["--hang-after", "1"], '! timeout 1 ls -l "$MNT"'),
        ):
            with self.subTest(options):
                result = self.run_latfs("--delay-us", "0", *options, self.make_files(1), "--", "sh", "-ec", script)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_bad_use(self):
        source = self.make_source()
        for status, arguments in (
            (2, [source]),
            (2, ["--", "true"]),
            (2, [source, "--"]),
            (2, ["--synthetic", "5", source, "--", "true"]),
            (125, [source / "missing", "--", "true"]),
            (127, [source, "--", source / "missing"]),
            (128 + signal.SIGKILL, [source, "--", "sh", "-c", "kill -9 $$"]),
        ):
            with self.subTest(arguments):
                result = self.run_latfs(*arguments)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertNotEqual(result.stderr, "")

    def test_a_signal_ends_the_command_and_the_mount(self):
        source = self.make_files(1)
        script = 'echo "$MNT"; exec sleep 100'
        process = subprocess.Popen(
            [LATFS, source, "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
        )
        mount_point = process.stdout.readline().strip()
        self.assertIn(f" {mount_point} ", Path("/proc/self/mounts").read_text())
        process.terminate()
        self.assertEqual(process.wait(timeout=10), 128 + signal.SIGTERM)
        process.stdout.close()
        self.assertNotIn(mount_point, Path("/proc/self/mounts").read_text())
        self.assertFalse(os.path.exists(mount_point))


class Synthetic(unittest.TestCase):
    def test_names_are_generated_in_order(self):
        with SyntheticMount(100_000) as mount:
            entries = list(os.scandir(mount.path))
            self.assertEqual([entry.name for entry in entries], [f"file_{i:08d}" for i in range(100_000)])
            self.assertTrue(all(entry.is_file() for entry in entries))
            self.assertEqual(os.stat(mount.path / "file_00099999").st_size, 0)
            for missing in ("file_00100000", "file_1", "other"):
                self.assertFalse(os.path.exists(mount.path / missing))


if __name__ == "__main__":
    unittest.main()
