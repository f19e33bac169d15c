"""Common parts of test environments that are servers: processes that end with their parent, and the command line.

A service is a context manager with `settings()`, the names and values with which a program connects
to it. The kernel kills its processes when the thread that started them ends, however that happens,
so none is left behind. If one dies by itself, the program that started it also ends, with the
cause: otherwise, clients would retry for minutes in every test.
"""

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build" / "testbed"
PR_SET_PDEATHSIG = 1


class ServiceError(Exception):
    """The test environment could not be built or started."""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def as_user(name: str | None) -> list[str]:
    """Options of setpriv."""
    return ["--reuid", name, "--regid", name, "--clear-groups"] if name else []


def end_with(message: str) -> None:
    """Ends this program from within a signal handler; for pytest, through its own exit."""
    if pytest := sys.modules.get("pytest"):
        pytest.exit(message, returncode=1)
    raise ServiceError(message)


class Server:
    """A server process, run as `user` if given; its output goes to `log`, unless `details` (for Popen) say otherwise."""

    def __init__(self, command: list, log: Path, user: str | None = None, **details):
        self.name = Path(command[0]).name
        self.log = log
        self._is_stopped = False
        # Comparing the parent's PID detects a parent that ended before setpriv set the death
        # signal.
        tied = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            *as_user(user),
            "sh",
            "-c",
            f'[ $PPID = {os.getpid()} ] && exec "$@"',
            "sh",
        ]
        with log.open("wb") as output:
            details = {"stdout": output, "stderr": output, **details}
            # Its own session, so that Ctrl-C ends only the command, and we end the server
            # afterwards.
            details |= {"stdin": subprocess.DEVNULL, "start_new_session": True}
            self.process = subprocess.Popen([*tied, *map(str, command)], **details)

    def wait_until(self, ready: Callable[[], bool], within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while not ready():
            if self.process.poll() is not None:
                raise self.error(f"ended with status {self.process.returncode}")
            if time.monotonic() > deadline:
                raise self.error(f"not ready in {within_s:g} s")
            time.sleep(0.01)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGUSR2, lambda *_: end_with("\n".join(Server.deaths)))
            threading.Thread(target=self._watch, daemon=True).start()

    deaths: list[str] = []
    """Messages about servers that have died by themselves."""

    def _watch(self) -> None:
        self.process.wait()
        if not self._is_stopped:
            Server.deaths.append(str(self.error(f"died with status {self.process.returncode}")))
            os.kill(os.getpid(), signal.SIGUSR2)

    def error(self, what: str) -> ServiceError:
        """An error with the end of the server's log."""
        return ServiceError(f"{self.name}: {what}\n{self.log.read_text(errors='replace')[-2000:]}")

    def stop(self, number: int = signal.SIGKILL, within_s: float = 30) -> None:
        self._is_stopped = True
        self.process.send_signal(number)
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def checked(command: list, **details) -> str:
    """Runs a command that prepares a test environment and returns its output; if it fails, the error contains the
    output.
    """
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **details)
    if done.returncode:
        raise ServiceError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def built_by_one(name: str) -> Iterator[Path]:
    """The directory for built programs, locked so that no other process builds `name`."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield BUILD


def run(command: list[str], settings: dict[str, str], program: str) -> int:
    """Runs `command` with the settings in its environment; returns the status a shell would see."""
    # The death of a server ends us only once there is a child to end as well.
    on_death = signal.signal(signal.SIGUSR2, lambda *_: None)
    try:
        child = subprocess.Popen(command, env={**os.environ, **settings})
    except OSError as error:
        print(f"{program}: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda received, _: child.send_signal(received))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal also sends it to the command
        signal.signal(signal.SIGUSR2, on_death)
        if Server.deaths:
            end_with("\n".join(Server.deaths))
        status = child.wait()
    except ServiceError:
        child.kill()
        raise
    return status if status >= 0 else 128 - status


def serve(
    service: AbstractContextManager, command: list[str], program: str, after_command: Callable = lambda bed: None
) -> int:
    """The command line of a test environment: runs `command` in it; without a command, prints the settings and serves
    until it is ended.
    """
    # A signal, including the one for the parent's death, ends us through the clean-up.
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
    """The options before `--`, and the command after it."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]
