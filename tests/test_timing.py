"""make test reports its times, its shares miss no case, and make test-changed forgets no user of a crate."""

import os
import random
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from shares import parts_of  # noqa: E402


def script(name):
    """A program without an extension, as a module."""
    loader = SourceFileLoader(name, str(HERE / name))
    module = module_from_spec(spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


timed, changed = script("timed"), script("changed")


class Timed(unittest.TestCase):
    def test_times_are_summed_by_name(self):
        rows = timed.table("a\t10.0\t5.0\nb\t30.0\t55.0\na\t11.0\t5.0\n", 40)
        self.assertEqual(
            [row.split() for row in rows[1:]], [["b", "30", "55"], ["a", "21", "10"], ["in", "all", "40", "65"]]
        )

    def test_the_status_is_that_of_the_command(self):
        with tempfile.TemporaryDirectory() as scratch:
            timed.LINES = Path(scratch, "build/times.tsv")
            for command, status in (("true", 0), ("exit 3", 3), ("kill -9 $$", 137)):
                self.assertEqual(timed.run("check", ["bash", "-c", command]), status)
            self.assertEqual([line.split("\t")[0] for line in timed.LINES.read_text().splitlines()], ["check"] * 3)


class Changed(unittest.TestCase):
    def test_users_of_a_crate_are_tested_with_it(self):
        users = {
            "millstream-a": {"millstream-a", "millstream-b", "millstream-jni"},
            "millstream-b": {"millstream-b"},
            "millstream-jni": {"millstream-jni"},
        }
        with mock.patch.object(changed, "output", return_value="venv/bin/python\n"):
            of_a = changed.commands_for(["crates/base/a/src/lib.rs"], users)
            of_b = changed.commands_for(["crates/base/b/src/lib.rs"], users)
            of_docs = changed.commands_for(["docs/read.md"], users)
        self.assertTrue(any("-p millstream-a -p millstream-b -p millstream-jni" in command for command in of_a), of_a)
        self.assertTrue(any("--share" in command for command in of_a), of_a)
        self.assertFalse(any("--share" in command for command in of_b), of_b)
        self.assertEqual(of_docs, of_b[:3])

    def test_psync_with_buckets_is_tested_with_the_bucket(self):
        users = {f"millstream-{name}": {f"millstream-{name}"} for name in ("bucket", "s3", "cli")}
        users["millstream-s3"].add("millstream-bucket")
        with mock.patch.object(changed, "output", return_value="venv/bin/python\n"):
            for file, expected in (
                ("crates/volumes/s3/src/lib.rs", True),
                ("tests/buckets/test_psync.py", True),
                ("crates/front/cli/src/lib.rs", False),
            ):
                commands = changed.commands_for([file], users)
                self.assertEqual(any("tests/buckets" in command for command in commands), expected, commands)

    def test_the_crates_of_this_workspace_know_their_users(self):
        users = changed.users_of_crates()
        self.assertEqual(users["millstream-cli"], {"millstream-cli"})
        self.assertLess({"millstream-cli", "millstream-jni", "millstream-vfs"}, users["millstream-vfs"])


class Shares(unittest.TestCase):
    def test_every_test_is_in_one_part_and_parts_take_about_as_long(self):
        seed = int(os.environ.get("MILLSTREAM_SEED") or random.randrange(2**32))
        chance = random.Random(seed)
        for parts in (1, 4, 12, 60):
            costs = [chance.choice([0.0, 0.05, 1.0, 9.0]) for _ in range(1000)]
            found = parts_of(costs, parts)
            self.assertEqual(sorted(found), found, f"seed {seed}")
            self.assertEqual(set(found), set(range(parts)), f"seed {seed}")
            for part in range(parts):
                seconds = sum(cost for cost, each in zip(costs, found) if each == part)
                self.assertAlmostEqual(seconds, sum(costs) / parts, delta=9.0, msg=f"seed {seed}")

    def test_few_tests_leave_parts_empty(self):
        self.assertEqual(parts_of([1.0, 1.0], 4), [1, 3])

    def test_tests_that_take_no_time_are_not_lost(self):
        self.assertEqual(parts_of([1.0, 0.0], 1), [0, 0])
        self.assertEqual(set(parts_of([0.0] * 8, 4)), {0, 1, 2, 3})


if __name__ == "__main__":
    unittest.main()
