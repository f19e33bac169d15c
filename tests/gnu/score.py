"""Results, the score, and the failures that are expected."""

import enum
import fnmatch
from pathlib import Path

# Some fewer than apply on the machine that the floors were taken from, which may do more than another.
FLOORS = {"coreutils": 180, "findutils": 600}
EXPECTED_FAILURES = Path(__file__).with_name("expected-failures.txt")


class Outcome(enum.Enum):
    PASS = "pass"
    FAIL = "FAIL"
    SKIP = "skip"


def read_expected_failures() -> dict[str, str]:
    """Test names, or patterns of them, to the reason why they fail."""
    lines = [line for line in EXPECTED_FAILURES.read_text().splitlines() if line and not line.startswith("#")]
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

    def line(self, package: str) -> str:
        applicable, failures = self.applicable(package), self.failures(package)
        return f"{package} {len(applicable) - len(failures)} of {len(applicable)}"

    def complaints(self, packages: list[str], expected: dict[str, str]) -> list[str]:
        """Where the failures are not those that are expected."""
        found = []
        for package in packages:
            applicable, failures = self.applicable(package), self.failures(package)
            found += [f"{name} fails and is not in {EXPECTED_FAILURES.name}" for name in failures if not reason(name, expected)]
            for pattern, why in expected.items():
                if why.startswith("sometimes"):
                    continue
                if (matching := fnmatch.filter(applicable, pattern)) and not fnmatch.filter(failures, pattern):
                    found.append(f"{pattern} passes now ({len(matching)} cases): remove it from {EXPECTED_FAILURES.name}")
        return found

    def shortfalls(self, tests: dict[str, list[tuple[str, str]]], is_whole: bool) -> list[str]:
        """Where too few cases apply for the score to say anything, by the files of each tool; `is_whole`: of all packages' tests."""
        found = []
        for tool, files in tests.items():
            if not any((package, file_of(name)) in files for package, name in self.cases()):
                found.append(f"none of the {len(files)} files of tests about {tool} applies")
        for package, floor in FLOORS.items() if is_whole else ():
            if (count := len(self.applicable(package))) < floor:
                found.append(f"only {count} cases of {package} apply, and {floor} did before")
        return found
