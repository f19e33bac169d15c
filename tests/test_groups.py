"""tests/groups: no long test is left out, and failures are reported."""

import contextlib
import io
import os
import re
import sys
import tempfile
import time
import unittest
from fnmatch import fnmatch
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
loader = SourceFileLoader("groups", str(HERE / "groups"))
groups = module_from_spec(spec_from_loader("groups", loader))
sys.modules["groups"] = groups  # dataclasses look their module up
loader.exec_module(groups)
CI_MINUTES, MAKE_TEST_MINUTES = 80, 35


def group(name, minutes, *commands):
    return groups.Group(name, minutes, "a test", "", (f"{name}/*",), commands)


def outcome(some, minutes=None):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = groups.run_all(some, minutes)
    return status, said.getvalue().splitlines()


def runs(stat):
    """Whether the process of this file in /proc is neither gone nor a zombie."""
    try:
        return stat.read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Groups(unittest.TestCase):
    def test_every_long_test_is_in_a_group(self):
        commands = "\n".join(command for group in groups.GROUPS for command in group.commands)
        for directory in ("spark/cases", "buckets"):
            found = list(HERE.glob(f"{directory}/slow_*.py"))
            self.assertTrue(found, directory)
            for path in found:
                self.assertIn(f"tests/{directory}/{path.name}", commands)
        for directory in ("testbed/tests", "tests/tools"):
            self.assertIn(f"-s {directory} -p 'slow_*.py'", commands)
        self.assertIn("tests/spark-suites/run", commands)
        self.assertIn("PSYNC_SEEDS=200 PSYNC_CASES=all", commands)
        contracts = (
            HERE.parent / "jvm/write/src/test/java/io/millstream/write/protocol/InterleavingTest.java"
        ).read_text()
        for case, _ in groups.INTERLEAVINGS:
            self.assertIn(f"void {case}()", contracts)
        self.assertEqual(contracts.count('@Tag("slow")'), len(groups.INTERLEAVINGS))

    def test_every_fuzzed_parser_has_seeds(self):
        targets = re.findall(r'^name = "(.*_.*)"$', (HERE.parent / "fuzz/Cargo.toml").read_text(), re.MULTILINE)
        self.assertEqual(sorted(targets), sorted(path.stem for path in HERE.glob("../fuzz/fuzz_targets/*.rs")))
        for target in targets:
            self.assertTrue(any((HERE.parent / "fuzz/seeds" / target).iterdir()), target)

    def test_each_has_a_name_of_its_own_and_fits_into_a_run_of_ci(self):
        self.assertEqual(len(groups.BY_NAME), len(groups.GROUPS))
        for some in groups.GROUPS:
            self.assertLessEqual(some.minutes, CI_MINUTES - MAKE_TEST_MINUTES, some.name)

    def test_what_changed_comes_first_and_the_rest_in_turn(self):
        some = [group(name, 1) for name in "abcd"]
        times = (turn * groups.TURN_S for turn in (0, 2, 3, 5, 9, groups.TURNS))
        names = ["".join(g.name for g in groups.in_turn(some, {"c/x/y"}, committed)) for committed in times]
        self.assertEqual(names, ["cabd", "cbda", "cdab", "cdab", "cabd", "cabd"])

    def test_runs_in_a_row_start_a_tenth_further(self):
        some = [group(str(number), 1 + number % 7) for number in range(100)]
        starts = [int(groups.in_turn(some, set(), turn * groups.TURN_S + 5)[0].name) for turn in range(groups.TURNS)]
        self.assertEqual(starts[0], 0)
        tenth = sum(each.minutes for each in some) / groups.TURNS
        for before, after in zip(starts, [*starts[1:], 100]):
            self.assertAlmostEqual(sum(each.minutes for each in some[before:after]), tenth, delta=7)

    def test_a_failure_is_told_and_the_others_run(self):
        status, last = outcome([group("a", 1, "exit 3"), group("b", 1, "true"), group("c", 1, "false | true")])
        self.assertEqual(status, 1)
        self.assertEqual(
            last[-3:], ["groups passed: b", "groups failed: a c", "groups not run, for want of time: none"]
        )

    def test_random_tests_take_their_seed_from_the_commit_unless_one_is_given(self):
        commit = groups.git("rev-parse", "HEAD")
        for given, expected in ({}, str(int(commit[:8], 16))), ({"MILLSTREAM_SEED": "7"}, "7"):
            with tempfile.TemporaryDirectory() as top, mock.patch.dict(os.environ, given):
                if not given:
                    os.environ.pop("MILLSTREAM_SEED", None)
                outcome([group("a", 1, f"echo $MILLSTREAM_SEED > {top}/seed")])
                self.assertEqual(Path(top, "seed").read_text().strip(), expected)

    def test_what_does_not_fit_is_left_out_and_told(self):
        status, last = outcome([group("a", 2, "true"), group("b", 1, "true")], minutes=1.5)
        self.assertEqual(
            (status, last[-3:]), (0, ["groups passed: b", "groups failed: none", "groups not run, for want of time: a"])
        )

    def test_a_group_that_hangs_fails_and_its_children_are_killed(self):
        groups.PATIENCE, patience = 0.02, groups.PATIENCE
        self.addCleanup(setattr, groups, "PATIENCE", patience)
        with tempfile.TemporaryDirectory() as top:
            status, said = outcome([group("a", 1, f"sleep 60 & echo $! > {top}/child; wait")])
            child = Path("/proc", Path(top, "child").read_text().strip(), "stat")
            # A signal has been sent; on a busy machine it takes effect later.
            until = time.monotonic() + 10
            while runs(child) and time.monotonic() < until:
                time.sleep(0.01)
            self.assertFalse(runs(child))
        self.assertEqual(status, 1)
        self.assertIn("has not ended within", "\n".join(said))

    def test_a_changed_test_file_selects_its_group(self):
        for some in groups.GROUPS:
            for word in " ".join(some.commands).split():
                if word.startswith(("tests/", "testbed/")) and (HERE.parent / word).is_file():
                    self.assertTrue(any(fnmatch(word, pattern) for pattern in some.sources), f"{some.name}: {word}")


if __name__ == "__main__":
    unittest.main()
