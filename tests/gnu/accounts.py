"""The accounts that run a test: root, or an unprivileged user if the test is about denied permissions."""

import os
import pwd
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

TIMED_OUT = -1


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    # Some tests change a file's group, and need two to choose from.
    groups: tuple[int, ...]

    def run(self, command: list[str], directory: Path, environment: dict[str, str], log: Path, timeout_s: int) -> int:
        """Runs a command, with its output in `log`; returns the status, or TIMED_OUT."""
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=self.uid,
                group=self.groups[0],
                extra_groups=self.groups,
                start_new_session=True,
            )
            try:
                return process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                output.write(f"killed after {timeout_s} s\n".encode())
                return TIMED_OUT
            finally:
                kill_session(process)


def kill_session(process: subprocess.Popen) -> None:
    """Kills the processes that a test has left running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


ROOT = Account("root", 0, (0, 100))
NOBODY = Account("nobody", pwd.getpwnam("nobody").pw_uid, (65534, 100))
