"""Mounts inside a tree: a directory that is mounted inside itself, which GNU's tools detect, and other file systems."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import tools


class DirectoryInItself(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(tempfile.TemporaryDirectory())
        inner = Path(self.scratch, "a/b/c")
        inner.mkdir(parents=True)
        Path(self.scratch, "a/file").write_bytes(b"x" * 10_000)
        subprocess.run(["mount", "--bind", inner.parents[1], inner], check=True)
        self.addCleanup(subprocess.run, ["umount", inner], check=True)

    def same_as_gnu(self, tool, gnu, *arguments):
        environment = {**os.environ, "LC_ALL": "C"}
        theirs = subprocess.run([gnu, *arguments], capture_output=True, cwd=self.scratch, env=environment)
        ours = tools.run(tool, *arguments, cwd=self.scratch, env=environment)
        messages = re.sub(rb"^" + gnu.encode() + b":", tool.encode() + b":", theirs.stderr)
        self.assertEqual((ours.returncode, ours.stderr), (theirs.returncode, messages))
        self.assertEqual(sorted(ours.stdout.splitlines()), sorted(theirs.stdout.splitlines()))

    def test_is_counted_once(self):
        for options in (), ("-s",), ("-a",), ("-S",), ("--inodes",), ("-L",):
            with self.subTest(options):
                self.same_as_gnu("pdu", "du", *options, "a")
        self.same_as_gnu("pdu", "du", "a/b")

    def test_is_listed_once(self):
        self.same_as_gnu("pls", "ls", "-R", "a")

    def test_is_a_loop_to_find(self):
        # pfind reports the loop when it opens the directory, after it has printed the name.
        found = tools.run("pfind", "a", "-depth", cwd=self.scratch, env={**os.environ, "LC_ALL": "C"})
        theirs = subprocess.run(["find", "a"], capture_output=True, cwd=self.scratch, env={**os.environ, "LC_ALL": "C"})
        self.assertEqual(found.returncode, theirs.returncode)
        self.assertEqual(found.stderr, b"p" + theirs.stderr)


class OtherFileSystems(unittest.TestCase):
    def setUp(self):
        self.scratch = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in "t/here", "t/mounted":
            Path(self.scratch, name).mkdir(parents=True)
        Path(self.scratch, "t/here/file").touch()
        Path(self.scratch, "t/bound").touch()
        Path(self.scratch, "t/same").touch()
        for options in (
            ["-t", "tmpfs", "none", "t/mounted"],
            ["--bind", "t/mounted/below", "t/bound"],
            ["--bind", "t/here/file", "t/same"],
        ):
            subprocess.run(["mount", *options], check=True, cwd=self.scratch)
            self.addCleanup(subprocess.run, ["umount", options[-1]], check=True, cwd=self.scratch)
            Path(self.scratch, "t/mounted/below").touch()

    def found(self, *words):
        found = tools.run("pfind", *words, cwd=self.scratch)
        self.assertEqual((found.returncode, found.stderr), (0, b""))
        return {name.decode() for name in found.stdout.splitlines()}

    def test_mount_leaves_out_what_xdev_evaluates(self):
        here, mounted = {"t", "t/here", "t/here/file", "t/same"}, {"t/mounted", "t/bound"}
        for words in ["t"], ["-L", "t"], ["t", "-depth"], ["t", "-size", "-1000"]:
            with self.subTest(words):
                self.assertEqual(self.found(*words), here | mounted | {"t/mounted/below"})
                self.assertEqual(self.found(*words, "-xdev"), here | mounted)
                self.assertEqual(self.found(*words, "-mount"), here)
                self.assertEqual(self.found(*words, "-mount", "-xdev"), here)
        self.assertEqual(self.found("t", "-mount", "-mindepth", "2"), {"t/here/file"})
        operands = {"t/bound", "t/mounted", "t/mounted/below"}
        self.assertEqual(self.found("t/bound", "t/mounted", "-mount"), operands, "operands are where they are")


if __name__ == "__main__":
    unittest.main()
