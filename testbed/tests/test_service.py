"""Test environments that are servers: their settings, that they end with their parent, and the message of a failed
start.
"""

import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTBED))
from service import Server, ServiceError  # noqa: E402

# A service that is a sleeping process, whose PID is in $PID.
BED = f"""
import pathlib, sys
sys.path.insert(0, {str(TESTBED)!r})
from service import Server, serve, split_command
class Bed:
    def __enter__(self):
        self.server = Server(["sleep", "1000"], pathlib.Path("/dev/null"))
        self.server.wait_until(lambda: True, 1)
        return self
    def settings(self):
        return {{"PID": str(self.server.process.pid)}}
    def __exit__(self, *_):
        self.server.stop()
sys.exit(serve(Bed(), split_command(sys.argv[1:])[1], "bed", lambda bed: print("after", bed.settings()["PID"])))
"""


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends_soon(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not runs(pid)


class CommandLine(unittest.TestCase):
    def start(self, *prefix):
        process = subprocess.Popen([*prefix, sys.executable, "-c", BED], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        name, _, pid = process.stdout.readline().strip().partition("=")
        self.assertEqual(name, "PID")
        return process, int(pid)

    def test_a_command_gets_the_settings_and_determines_the_status(self):
        done = subprocess.run(
            [sys.executable, "-c", BED, "--", "sh", "-c", "echo pid $PID; exit 3"], capture_output=True, text=True
        )
        pid = done.stdout.split()[1]
        self.assertEqual((done.returncode, done.stdout), (3, f"pid {pid}\nafter {pid}\n"))
        self.assertFalse(runs(int(pid)))

    def test_a_server_that_dies_ends_the_command_with_the_cause(self):
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", BED, "--", "sh", "-c", "kill $PID; exec sleep 60"], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 125)
        self.assertIn(f"sleep: died with status {-signal.SIGTERM}", done.stderr)
        self.assertLess(time.monotonic() - started, 30)

    def test_without_a_command_it_serves_until_a_signal(self):
        process, pid = self.start()
        self.assertTrue(runs(pid))
        process.terminate()
        self.assertEqual(process.wait(10), 128 + signal.SIGTERM)
        self.assertFalse(runs(pid))

    def test_a_killed_service_leaves_no_processes(self):
        process, pid = self.start()
        process.kill()
        self.assertTrue(ends_soon(pid))

    def test_a_killed_parent_leaves_no_processes(self):
        parent, pid = self.start("sh", "-c", '"$@" & wait', "sh")
        self.assertTrue(runs(pid))
        parent.kill()
        self.assertTrue(ends_soon(pid))


class Starting(unittest.TestCase):
    def wait_for(self, command, within_s):
        with tempfile.TemporaryDirectory() as scratch:
            server = Server(command, Path(scratch, "log"))
            try:
                server.wait_until(lambda: False, within_s)
            finally:
                server.stop()

    def test_a_process_that_ends_is_an_error_with_its_log(self):
        with self.assertRaisesRegex(ServiceError, "sh: ended with status 7\nno such port"):
            self.wait_for(["sh", "-c", "echo no such port; exit 7"], 60)

    def test_a_process_that_takes_too_long_is_an_error(self):
        with self.assertRaisesRegex(ServiceError, "sleep: not ready in 0.1 s"):
            self.wait_for(["sleep", "60"], 0.1)


if __name__ == "__main__":
    unittest.main()
