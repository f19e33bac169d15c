"""The test scripts of GNU coreutils and findutils, run without a build tree.

A script reads tests/init.sh, finds the tools to test below the current directory, works in a separate directory, and
says by its exit status whether it has passed, failed or does not apply here. `environment()` has the variables that
`make check` would set; the limits of C types, which a program of GNU's build prints, come from `getlimits` written
here.
"""

import ctypes
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import accounts
import packages
from releases import Release
from score import Outcome

TIMEOUT_S = 300
STATUSES = {0: Outcome.PASS, 77: Outcome.SKIP, 99: Outcome.SKIP}

C_TYPES = {
    "INT": ctypes.c_int,
    "UINT": ctypes.c_uint,
    "LONG": ctypes.c_long,
    "ULONG": ctypes.c_ulong,
    "SIZE": ctypes.c_size_t,
    "SSIZE": ctypes.c_ssize_t,
    "OFF_T": ctypes.c_int64,
    "TIME_T": ctypes.c_int64,
    "UID_T": ctypes.c_uint32,
    "GID_T": ctypes.c_uint32,
    "PID_T": ctypes.c_int32,
    "INTMAX": ctypes.c_int64,
    "UINTMAX": ctypes.c_uint64,
}


@dataclass(frozen=True)
class Package:
    name: str
    # Where the scripts look for the tools, relative to their working directory.
    tool_directories: tuple[str, ...]
    # The tool whose --version they take as the version of the package.
    versioned: str


PACKAGES = {
    "coreutils": Package("coreutils", ("src",), "rm"),
    "findutils": Package("findutils", ("find", "xargs", "locate"), "find"),
}


class Place:
    """The scripts of a package with one directory of tools; `switches` are variables that they read."""

    def __init__(self, package: Package, directory: Path, tools: Path, release: Release, switches: dict[str, str]):
        self.directory, self.switches = directory, switches
        self.path = f"{tools}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        directory.mkdir(parents=True)
        packages.unpack(release.archive(package.name), ("tests", "init.cfg"), directory)
        for name in package.tool_directories:
            (directory / name).symlink_to(tools)
        (directory / "config.h").write_text(release.config_header(package.name))
        (directory / "logs").mkdir()
        (tools / "getlimits").write_text(f"#!/bin/sh\ncat <<'END'\n{limits()}END\n")
        (tools / "getlimits").chmod(0o755)
        self.programs = sorted(release.programs(package.name))
        self.version = version(shutil.which(package.versioned, path=self.path))
        # Every account that runs tests here makes directories in it.
        directory.chmod(0o777)

    def scripts(self, folders: tuple[str, ...]) -> list[str]:
        """The tests of some folders, as paths from this place."""
        found = (path for folder in folders for path in (self.directory / folder).iterdir())
        return sorted(str(path.relative_to(self.directory)) for path in found if is_test(path))

    def run(self, test: str) -> Outcome:
        """Runs a test as root, and where that does not apply as another user."""
        outcome = self.run_as(accounts.ROOT, test)
        return self.run_as(accounts.NOBODY, test) if outcome is Outcome.SKIP else outcome

    def run_as(self, account: accounts.Account, test: str) -> Outcome:
        command = ["bash", "-c", 'exec "$@" 9>&2', "bash", *interpreter(test), test]
        log = self.directory / "logs" / f"{test.replace('/', '-')}.{account.name}"
        status = account.run(command, self.directory, self.environment(test), log, TIMEOUT_S)
        return STATUSES.get(status, Outcome.FAIL)

    def environment(self, test: str) -> dict[str, str]:
        here = str(self.directory)
        return {
            "PATH": self.path,
            "LC_ALL": "C",
            "HOME": here,
            "SHELL": "/bin/sh",
            "TMPDIR": "/tmp",
            "fail": "0",
            "EXEEXT": "",
            "srcdir": ".",
            "top_srcdir": ".",
            "abs_srcdir": here,
            "abs_top_srcdir": here,
            "abs_top_builddir": here,
            "CONFIG_HEADER": f"{here}/config.h",
            "CU_TEST_NAME": f"gnu,{test.replace('/', '-')}",
            "VERSION": self.version,
            "PACKAGE_VERSION": self.version,
            "built_programs": " ".join(self.programs),
            "LOCALE_FR": "none",
            "LOCALE_FR_UTF8": "fr_FR.UTF-8",
            "host_os": "linux-gnu",
            "host_triplet": f"{os.uname().machine}-pc-linux-gnu",
            "CC": "gcc",
            "AWK": "awk",
            "EGREP": "grep -E",
            "MAKE": "make",
            "PERL": "perl",
            **self.switches,
        }


def is_test(path: Path) -> bool:
    return path.suffix in (".sh", ".pl", ".xpl")


def interpreter(test: str) -> list[str]:
    """The interpreter of a script, as in GNU's makefiles."""
    if test.endswith(".sh"):
        return ["/bin/sh"]
    taint = ["-T"] if test.endswith(".xpl") else []
    return ["perl", *taint, "-w", "-Itests", "-MCuSkip", "-MCoreutils", f"-MCuTmpdir qw({test})"]


def version(tool: str) -> str:
    shown = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout
    return shown.splitlines()[0].split()[-1]


def limits() -> str:
    """The greatest and least values of C's integer types, and those just beyond, as assignments of a shell."""
    lines = []
    for name, kind in C_TYPES.items():
        bits, signed = 8 * ctypes.sizeof(kind), kind(-1).value < 0
        least, beyond = (-1 << bits - 1, 1 << bits - 1) if signed else (0, 1 << bits)
        lines += [
            f"{name}_MAX={beyond - 1}",
            f"{name}_OFLOW={beyond}",
            f"{name}_MIN={least}",
            f"{name}_UFLOW={least - 1}",
        ]
    return "".join(line + "\n" for line in lines)
