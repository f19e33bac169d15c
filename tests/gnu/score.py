"""Results, the score, and the failures that are expected."""

import enum
import fnmatch
from pathlib import Path

# Prefix of the reason of a test that the newest release contradicts: ours follows that, and the test does not count.
SUPERSEDED = "superseded"


class Outcome(enum.Enum):
    PASS = "pass"
    FAIL = "FAIL"
    SKIP = "skip"


def read_expected_failures(path: Path) -> dict[str, str]:
    """Test names, or patterns of them, to the reason why they fail."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, _, reason in (line.partition("|") for line in lines)}


def reason(name: str, expected: dict[str, str]) -> str | None:
    """Why a test is expected to fail, if it is."""
    return next((why for pattern, why in expected.items() if fnmatch.fnmatchcase(name, pattern)), None)


def file_of(case: str) -> str:
    """The file that a case is in."""
    return case.partition(" ")[0]


class Score:
    """The outcomes of both sides, by package and name of the case."""

    def __init__(self):
        self.gnu: dict[tuple[str, str], Outcome] = {}
        self.ours: dict[tuple[str, str], Outcome] = {}

    def cases(self) -> list[tuple[str, str]]:
        """Those that apply: GNU's own tools pass them here."""
        return sorted(case for case, outcome in self.gnu.items() if outcome is Outcome.PASS)

    def passes(self, case: tuple[str, str]) -> bool:
        return self.ours.get(case) is Outcome.PASS

    def applicable(self, package: str) -> list[str]:
        return [name for owner, name in self.cases() if owner == package]

    def failures(self, package: str) -> list[str]:
        return [name for name in self.applicable(package) if not self.passes((package, name))]

    def line(self, package: str, expected: dict[str, str]) -> str:
        applicable, failures = self.applicable(package), self.failures(package)
        superseded = [name for name in failures if (reason(name, expected) or "").startswith(SUPERSEDED)]
        counted = len(applicable) - len(superseded)
        more = f"; {len(superseded)} more that the newest release contradicts" if superseded else ""
        return f"{package} {len(applicable) - len(failures)} of {counted}{more}"

    def complaints(self, packages: list[str], expected: dict[str, str], source: str) -> list[str]:
        """Differences from the expected failures; `source` says where these are written."""
        found = []
        for package in packages:
            applicable, failures = self.applicable(package), self.failures(package)
            found += [f"{name} fails and is not in {source}" for name in failures if not reason(name, expected)]
            for pattern, why in expected.items():
                if why.startswith("sometimes"):
                    continue
                if (matching := fnmatch.filter(applicable, pattern)) and not fnmatch.filter(failures, pattern):
                    found.append(f"{pattern} passes now ({len(matching)} cases): remove it from {source}")
        return found

    def shortfalls(self, tests: dict[str, list[tuple[str, str]]], floors: dict[str, int]) -> list[str]:
        """The tools and packages with too few applicable cases for the score to be meaningful."""
        found = []
        for tool, files in tests.items():
            if not any((package, file_of(name)) in files for package, name in self.cases()):
                found.append(f"none of the {len(files)} files of tests about {tool} applies")
        for package, floor in floors.items():
            if (count := len(self.applicable(package))) < floor:
                found.append(f"only {count} cases of {package} apply, and {floor} did before")
        return found
