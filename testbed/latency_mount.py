"""Mounts with latency, as context managers.

`LatencyMount` (latfs: a delay per request over a real directory) and `SyntheticMount` (manyfs: one
directory of N generated files) build their server if needed, mount it on a fresh temporary directory,
and unmount it on exit, however that happens. A fresh mount is cold: nothing of it is in the
kernel's caches. The server's statistics are available after unmounting, and on demand before.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from service import built_by_one

TESTBED = Path(__file__).resolve().parent
BINARIES = TESTBED.parent / "build" / "testbed"
READY_WITHIN_S = 120  # preparing the listings of a million files takes seconds


class MountError(Exception):
    """The server could not be built or mounted."""


class Statistics:
    """Requests that a file server would have received, by kind, and the maximum number in flight."""

    def __init__(self, line: str):
        self.line = line.strip()
        values = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}
        self.total = values.pop("total")
        self.max_in_flight = values.pop("max_inflight")
        self.by_kind = values


def build() -> None:
    """Compiles the servers if they are not up to date."""
    with built_by_one("latfs"):
        result = subprocess.run(["make", "-s", "-C", str(TESTBED)], capture_output=True, text=True)
    if result.returncode:
        raise MountError(f"cannot build latfs and manyfs:\n{result.stdout}{result.stderr}")


class _Mount:
    def __init__(self, arguments: list[str]):
        self._arguments = arguments
        self._scratch: Path | None = None
        self._server: subprocess.Popen | None = None
        self.statistics: Statistics | None = None

    def __enter__(self):
        if os.geteuid() != 0:
            raise MountError("latfs and manyfs need root: they mount, and open files by handle")
        build()
        self._scratch = Path(tempfile.mkdtemp(prefix="millstream-bed."))
        self.path = self._scratch / "mnt"
        self.path.mkdir()
        self._statistics_file = self._scratch / "statistics"
        program, *rest = self._arguments
        command = [str(BINARIES / program), "-s", str(self._statistics_file), *rest, str(self.path)]
        try:
            # Its own session, so that Ctrl-C ends only the command, and we unmount afterwards.
            self._server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
            self._wait_until_mounted()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait_until_mounted(self):
        deadline = time.monotonic() + READY_WITHIN_S
        # Read from /proc, because the statistics would count a stat.
        while f" {self.path} " not in Path("/proc/self/mounts").read_text():
            if self._server.poll() is not None:
                raise MountError(f"{self._arguments[0]} ended with status {self._server.returncode}")
            if time.monotonic() > deadline:
                raise MountError(f"not mounted within {READY_WITHIN_S} s")
            time.sleep(0.005)

    @property
    def server_pid(self) -> int:
        """The server's PID, for SIGUSR2, which makes the mount stop answering, or answer again."""
        return self._server.pid

    def read_statistics(self) -> Statistics:
        """The statistics so far."""
        self._statistics_file.unlink(missing_ok=True)
        self._server.send_signal(signal.SIGUSR1)
        while not self._statistics_file.exists():
            time.sleep(0.001)
        return Statistics(self._statistics_file.read_text())

    def __exit__(self, *_):
        if self._server:
            self._server.terminate()
            self._server.wait()
            if self._statistics_file.exists():
                self.statistics = Statistics(self._statistics_file.read_text())
        shutil.rmtree(self._scratch, ignore_errors=True)


class LatencyMount(_Mount):
    """`source` with `delay_us` per request. `ttl_s`: how long the kernel may keep attributes and names.

    Without `links`, as on exFAT, no file gets a second name; `prepared` answers listings from memory, which halves the
    server's CPU; `hang_after` makes the mount stop answering after so many requests. Without `quota`, closing a file
    fails. With `failures`, files and directories with the attribute user.latfs.eio fail with EIO.
    """

    def __init__(
        self,
        source,
        delay_us=500,
        ttl_s=0.0,
        readdirplus=True,
        links=True,
        prepared=False,
        hang_after=0,
        quota=True,
        failures=False,
    ):
        arguments = ["latfs", "-d", str(delay_us), "-T", str(ttl_s)]
        if not readdirplus:
            arguments.append("-n")
        if not links:
            arguments.append("-l")
        if prepared:
            arguments.append("-p")
        if not quota:
            arguments.append("-q")
        if failures:
            arguments.append("-e")
        if hang_after:
            arguments += ["-x", str(hang_after)]
        super().__init__([*arguments, str(source)])


class SyntheticMount(_Mount):
    """One directory of `count` generated empty files, which are stored nowhere."""

    def __init__(self, count: int):
        super().__init__(["manyfs", str(count)])
