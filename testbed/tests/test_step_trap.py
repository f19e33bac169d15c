"""The trap: which calls are steps, and that a process is caught before the intended one."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTBED))
from step_trap import StepTrap  # noqa: E402

# One call of each kind, in a possible order.
STEPS = ["mkdir {}/d", "create {}/d/a", "link {}/d/b", "rename {}/d/c", "unlink {}/d/a", "unlink {}/d/c", "unlink {}/d"]
PROGRAM = """
import os, sys
os.chdir("/")
d = sys.argv[1] + "/d"
os.mkdir(d)
open(d + "/a", "w").close()
os.link(d + "/a", d + "/b")
os.rename(d + "/b", d + "/c")
os.unlink(d + "/a")
os.unlink(d + "/c")
os.rmdir(d)
"""


class Trap(unittest.TestCase):
    def setUp(self):
        self.top = self.enterContext(tempfile.TemporaryDirectory())
        self.trap = self.enterContext(StepTrap())

    def start(self):
        return subprocess.Popen([sys.executable, "-c", PROGRAM, self.top], env={**os.environ, **self.trap.settings()})

    def test_counts(self):
        self.trap.set(f"* {self.top}/*")
        self.assertEqual(self.start().wait(), 0)
        self.assertEqual((self.trap.seen, self.trap.pid), (len(STEPS), 0))

    def test_kills_before_each_step(self):
        for number, step in enumerate(STEPS, 1):
            with self.subTest(step=step):
                self.trap.set(f"* {self.top}/*", at=number, number=signal.SIGKILL)
                process = self.start()
                self.assertEqual(process.wait(), -signal.SIGKILL)
                self.assertEqual((self.trap.pid, self.trap.step), (process.pid, step.format(self.top)))
                self.assertEqual(os.path.exists(f"{self.top}/d/a"), number in (3, 4, 5))
                subprocess.run(["rm", "-rf", f"{self.top}/d"], check=True)

    def test_a_stopped_process_continues(self):
        self.trap.set(f"@(link|rename) {self.top}/d/[bc]", at=2)
        process = self.start()
        self.assertTrue(self.trap.wait(30))
        self.assertEqual(sorted(os.listdir(f"{self.top}/d")), ["a", "b"])
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(), 0)
        self.assertFalse(os.path.exists(f"{self.top}/d"))


if __name__ == "__main__":
    unittest.main()
