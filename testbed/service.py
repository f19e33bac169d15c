"""What the beds that are servers share: processes that end with who started them, and the command line of a bed.

A service is a context manager that has `settings()`, the names and values by which a program reaches it. Its processes
are killed by the kernel when the thread that started them ends, however that happens, so none is left behind. If one dies
by itself, the program that started it ends as well, and says why: its clients would try again for minutes, each test anew.
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
    """The bed could not be built or started."""


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
    """Ends this program from within a signal handler: a run of pytest by its own way out."""
    if pytest := sys.modules.get("pytest"):
        pytest.exit(message, returncode=1)
    raise ServiceError(message)


class Server:
    """A process of a bed, run by `user` if one is named; its output goes to `log`, unless `details` (Popen's) say otherwise."""

    def __init__(self, command: list, log: Path, user: str | None = None, **details):
        self.name = Path(command[0]).name
        self.log = log
        self._is_stopped = False
        # A parent that has ended before the kernel was asked to tell of it is found by its number.
        tied = ["setpriv", "--pdeathsig", "KILL", *as_user(user), "sh", "-c", f'[ $PPID = {os.getpid()} ] && exec "$@"', "sh"]
        with log.open("wb") as output:
            details = {"stdout": output, "stderr": output, **details}
            # Its own session: Ctrl-C ends the command that is run here, then we end the server.
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
    """What is said of servers that have died by themselves."""

    def _watch(self) -> None:
        self.process.wait()
        if not self._is_stopped:
            Server.deaths.append(str(self.error(f"died with status {self.process.returncode}")))
            os.kill(os.getpid(), signal.SIGUSR2)

    def error(self, what: str) -> ServiceError:
        """With the end of its log."""
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
    try:
        status = child.wait()
    except ServiceError:
        child.kill()
        raise
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
