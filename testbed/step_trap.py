"""A trap that stops or kills a process before the Nth of its calls that change directories (steptrap.c).

    with StepTrap() as trap:
        driver = subprocess.Popen(..., env={**os.environ, **trap.settings()})
        trap.set("link *.commit", at=1)
        trap.wait(60)                      # the driver is stopped, just before it commits
        os.kill(trap.pid, signal.SIGCONT)  # or SIGKILL

System calls that bypass the C library are not seen.
"""

import mmap
import shutil
import signal
import struct
import tempfile
import time
from pathlib import Path

from latency_mount import BINARIES, build

NUMBERS = struct.Struct("=iiii")  # at, seen, pid, signal
TEXT_BYTES = 1024  # size of the pattern, which is followed by the step


class StepTrap:
    def __enter__(self):
        build()
        self._scratch = Path(tempfile.mkdtemp(prefix="millstream-bed."))
        path = self._scratch / "trap"
        path.write_bytes(bytes(NUMBERS.size + 2 * TEXT_BYTES))
        path.chmod(0o666)
        self._scratch.chmod(0o755)
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 0)
        self._path = path
        return self

    def __exit__(self, *_):
        self._shared.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def settings(self) -> dict[str, str]:
        """Environment variables for the processes to trap."""
        return {"LD_PRELOAD": str(BINARIES / "steptrap.so"), "STEP_TRAP": str(self._path)}

    def set(self, pattern: str, at: int = 0, number: int = signal.SIGSTOP) -> None:
        """Sets the trap, which replaces an earlier one; with `at` 0 it only counts."""
        text = pattern.encode()
        assert len(text) < TEXT_BYTES, pattern
        # A step of the old pattern may occur in between.
        self._shared[: NUMBERS.size] = NUMBERS.pack(0, 0, 0, number)
        self._shared[NUMBERS.size :] = text.ljust(2 * TEXT_BYTES, b"\0")
        self._shared[: NUMBERS.size] = NUMBERS.pack(at, 0, 0, number)

    def _numbers(self) -> tuple[int, int, int, int]:
        return NUMBERS.unpack(self._shared[: NUMBERS.size])

    @property
    def seen(self) -> int:
        """Number of steps since the trap was set."""
        return self._numbers()[1]

    @property
    def pid(self) -> int:
        """PID of the process caught; 0 for none yet."""
        return self._numbers()[2]

    @property
    def step(self) -> str:
        """The step at which it was caught."""
        return self._shared[NUMBERS.size + TEXT_BYTES :].split(b"\0", 1)[0].decode(errors="replace")

    def wait(self, within_s: float) -> bool:
        """Whether a process was caught within that time."""
        deadline = time.monotonic() + within_s
        while not self.pid and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.pid != 0
