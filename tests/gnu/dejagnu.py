"""The DejaGnu suite of GNU find: cases that compare find's output with an expected one at each level of optimisation.

`runtest` runs a case file (find.posix/name.exp) in the current directory, which it fills; so each worker has a separate
one. Its summary names a case for each level.
"""

import os
import re
import tempfile
from collections import Counter
from pathlib import Path

import accounts
import packages
from releases import Release
from score import Outcome

SUITE = "find/testsuite"
SYSTEM = f"{os.uname().machine}-pc-linux-gnu"
TIMEOUT_S = 300
OUTCOMES = {
    "PASS": Outcome.PASS,
    "XPASS": Outcome.PASS,
    "FAIL": Outcome.FAIL,
    "XFAIL": Outcome.FAIL,
    "UNTESTED": Outcome.SKIP,
    "UNSUPPORTED": Outcome.SKIP,
    "UNRESOLVED": Outcome.FAIL,
    "ERROR": Outcome.FAIL,
}


class Suite:
    """The cases with one find."""

    def __init__(self, directory: Path, find: Path, release: Release):
        self.directory, self.find = directory, find
        directory.mkdir(parents=True)
        packages.unpack(release.archive("findutils"), (SUITE,), directory)
        (directory / "logs").mkdir()
        directory.chmod(0o777)

    def files(self) -> list[str]:
        """The case files, as find.gnu/name.exp."""
        suite = self.directory / SUITE
        return sorted(str(path.relative_to(suite)) for path in suite.glob("find.*/*.exp"))

    def run(self, file: str) -> dict[str, Outcome]:
        """Runs a case file as root, and where that does not apply as another user."""
        outcomes = self.run_as(accounts.ROOT, file)
        return self.run_as(accounts.NOBODY, file) if Outcome.SKIP in outcomes.values() else outcomes

    def run_as(self, account: accounts.Account, file: str) -> dict[str, Outcome]:
        with tempfile.TemporaryDirectory(dir=self.directory) as folder:
            here = Path(folder)
            here.chmod(0o777)
            # Without the name of the machine, DejaGnu compiles a program each time to find out.
            command = [
                "runtest",
                "--tool",
                "find",
                f"--host={SYSTEM}",
                "--srcdir",
                str(self.directory / SUITE),
                "--objdir",
                folder,
                f"FTSFIND={self.find}",
                file.rpartition("/")[2],
            ]
            environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "HOME": folder}
            log = self.directory / "logs" / f"{file.replace('/', '-')}.{account.name}"
            account.run(command, here, environment, log, TIMEOUT_S)
            summary = here / "find.sum"
            return outcomes(file, summary.read_text(errors="replace") if summary.exists() else "")


def outcomes(file: str, summary: str) -> dict[str, Outcome]:
    """The results of the cases of a file, by name; a file without a result has failed."""
    found, seen = {}, Counter()
    for line in summary.splitlines():
        if match := re.match(r"([A-Z]+): (.*)", line):
            word, text = match.groups()
            level = re.search(r"-(O\d)\b", text)
            name = f"{file} {level[1]}" if level else file
            seen[name] += 1
            if word in OUTCOMES:
                found[name if seen[name] == 1 else f"{name} #{seen[name]}"] = OUTCOMES[word]
    return found or {file: Outcome.FAIL}
