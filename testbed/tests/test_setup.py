"""What testbed/setup installs."""

import subprocess
import tempfile
import unittest
from pathlib import Path

SETUP = Path(__file__).resolve().parent.parent / "setup"
# Programs that a developer's machine does not get for tests and benches.
UNWANTED = {"exim4-daemon-light", "exim4-daemon-heavy", "postfix", "sendmail-bin", "nullmailer", "dma", "sudo"}


def listed(*groups: str) -> list[str]:
    return subprocess.run([SETUP, "--list", *groups], check=True, capture_output=True, text=True).stdout.split()


class FreshMachine:
    """Resolves packages with apt as on a machine that has none; nothing is installed."""

    def __init__(self, home: Path):
        (home / "status").touch()
        self.options = ["-o", f"Dir::State::status={home / 'status'}"]
        if not any(Path("/var/lib/apt/lists").glob("*_Packages*")):
            (home / "lists" / "partial").mkdir(parents=True)
            self.options += ["-o", f"Dir::State::lists={home / 'lists'}"]
            subprocess.run(["apt-get", "-qq", *self.options, "update"], check=True)

    def installs(self, packages: list[str]) -> set[str]:
        command = ["apt-get", "--simulate", *self.options, "--no-install-recommends", "install", *packages]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        return {line.split()[1] for line in lines if line.startswith("Inst ")}


class Setup(unittest.TestCase):
    def test_no_group_installs_a_mail_server(self):
        with tempfile.TemporaryDirectory() as home:
            machine = FreshMachine(Path(home))
            # A mail server came with it: the check must be able to fail.
            self.assertTrue(machine.installs(["fpart"]) & UNWANTED)
            self.assertEqual(
                machine.installs(listed("build", "test", "s3", "write", "package", "bench", "demo")) & UNWANTED, set()
            )

    def test_the_demo_and_the_benches_can_measure(self):
        # bench/harness.py starts each command by time(1), which a fresh machine lacks.
        for group in ("demo", "bench"):
            self.assertIn("time", listed(group))

    def test_an_unknown_group_is_refused(self):
        done = subprocess.run([SETUP, "--list", "nonsense"], capture_output=True, text=True)
        self.assertEqual((done.returncode, "unknown group 'nonsense'" in done.stderr), (2, True))


if __name__ == "__main__":
    unittest.main()
