"""tests/groups: nothing long is left out, and a failure is told."""

import contextlib
import io
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

HERE = Path(__file__).resolve().parent
loader = SourceFileLoader("groups", str(HERE / "groups"))
groups = module_from_spec(spec_from_loader("groups", loader))
# Dataclasses look their module up.
import sys  # noqa: E402

sys.modules["groups"] = groups
loader.exec_module(groups)
CI_MINUTES, MAKE_TEST_MINUTES = 80, 35


def group(name, minutes, *commands):
    return groups.Group(name, minutes, "a test", "build", (f"{name}/*",), commands)


def outcome(some, minutes=None):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = groups.run_all(some, minutes)
    return status, said.getvalue().splitlines()[-3:]


class Groups(unittest.TestCase):
    def test_every_long_test_is_in_a_group(self):
        commands = "\n".join(command for group in groups.GROUPS for command in group.commands)
        for path in HERE.glob("spark/slow_*.py"):
            self.assertIn(f"tests/spark/{path.name}", commands)
        for directory in ("testbed/tests", "tests/tools"):
            self.assertIn(f"-s {directory} -p 'slow_*.py'", commands)
        self.assertIn("tests/spark-suites/run", commands)
        contracts = (HERE.parent / "jvm/hadoop/src/test/java/io/millstream/write/protocol/InterleavingTest.java").read_text()
        for case, _ in groups.INTERLEAVINGS:
            self.assertIn(f"void {case}()", contracts)
        self.assertEqual(contracts.count('@Tag("slow")'), len(groups.INTERLEAVINGS))

    def test_each_has_a_name_of_its_own_and_fits_into_a_run_of_ci(self):
        self.assertEqual(len(groups.BY_NAME), len(groups.GROUPS))
        for some in groups.GROUPS:
            self.assertLessEqual(some.minutes, CI_MINUTES - MAKE_TEST_MINUTES, some.name)

    def test_what_changed_comes_first_and_the_rest_in_turn(self):
        some = [group(name, 1) for name in "abcd"]
        names = ["".join(g.name for g in groups.in_turn(some, {"c/x/y"}, f"{start:08x}")) for start in range(4)]
        self.assertEqual(names, ["cabd", "cbda", "cdab", "cdab"])

    def test_a_failure_is_told_and_the_others_run(self):
        status, last = outcome([group("a", 1, "exit 3"), group("b", 1, "true"), group("c", 1, "false | true")])
        self.assertEqual(status, 1)
        self.assertEqual(last, ["groups passed: b", "groups failed: a c", "groups not run, for want of time: none"])

    def test_what_does_not_fit_is_left_out_and_told(self):
        status, last = outcome([group("a", 2, "true"), group("b", 1, "true")], minutes=1.5)
        self.assertEqual((status, last), (0, ["groups passed: b", "groups failed: none", "groups not run, for want of time: a"]))

    def test_what_hangs_fails(self):
        groups.PATIENCE, patience = 0.02, groups.PATIENCE
        self.addCleanup(setattr, groups, "PATIENCE", patience)
        status, last = outcome([group("a", 1, "sleep 60 & sleep 60")])
        self.assertEqual((status, last[1]), (1, "groups failed: a"))


if __name__ == "__main__":
    unittest.main()
