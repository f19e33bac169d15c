"""What the beds that are servers share: processes that end with who started them, and the command line of a bed.

A service is a context manager that has `settings()`, the names and values by which a program reaches it. Its processes
are killed by the kernel when the thread that started them ends, however that happens, so none is left behind.
"""

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build" / "testbed"
PR_SET_PDEATHSIG = 1


class ServiceError(Exception):
    """The bed could not be built or started."""


def tied_to_parent(command: list) -> list[str]:
    return ["setpriv", "--pdeathsig", "KILL", *map(str, command)]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def wait_until(ready: Callable[[], bool], process: subprocess.Popen, log: Path, within_s: float) -> None:
    """Until `ready()`; a process that ends before, or takes too long, is an error with the end of its log."""
    deadline = time.monotonic() + within_s
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            ended = f"ended with status {process.returncode}" if process.returncode is not None else f"not ready in {within_s:g} s"
            raise ServiceError(f"{process.args[3]}: {ended}\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.01)


def checked(command: list, **details) -> str:
    """The output of a command that prepares a bed; if it fails, the error is what it has said."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **details)
    if done.returncode:
        raise ServiceError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def built_by_one(name: str) -> Iterator[Path]:
    """The directory for built things, while no other process builds `name`."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield BUILD


def run(command: list[str], settings: dict[str, str], program: str) -> int:
    """Runs `command` with the settings in its environment; returns the status a shell would see."""
    try:
        child = subprocess.Popen(command, env={**os.environ, **settings})
    except OSError as error:
        print(f"{program}: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: child.send_signal(received))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the command as well
    status = child.wait()
    return status if status >= 0 else 128 - status


def serve(
    service: AbstractContextManager, command: list[str], program: str, after_command: Callable = lambda bed: None
) -> int:
    """The command line of a bed: runs `command` on it; without one, prints the settings and serves until it is ended."""
    # A signal, also that of a parent's end, ends us by way of the bed's clean-up.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        with service as bed:
            if command:
                status = run(command, bed.settings(), program)
                after_command(bed)
                return status
            for name, value in bed.settings().items():
                print(f"{name}={value}")
            sys.stdout.flush()
            while True:
                signal.pause()
    except ServiceError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 125


def split_command(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What comes before `--`, and the command behind it."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]
