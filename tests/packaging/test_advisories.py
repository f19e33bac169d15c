"""Locked crates have no known vulnerability, and the check finds one that has."""

import subprocess
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "packaging" / "advisories"


def loaded():
    loader = SourceFileLoader("advisories", str(PROGRAM))
    module = module_from_spec(spec_from_loader("advisories", loader))
    loader.exec_module(module)
    return module


def check(*locks):
    done = subprocess.run([PROGRAM, *locks], capture_output=True, text=True)
    return done.returncode, done.stderr


class Locks(unittest.TestCase):
    def test_no_locked_crate_has_a_known_vulnerability(self):
        status, told = check()
        self.assertEqual(status, 0, told)

    def test_a_vulnerable_crate_is_found(self):
        entry = '[[package]]\nname = "{}"\nversion = "{}"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\n'
        with tempfile.TemporaryDirectory() as directory:
            lock = Path(directory, "Cargo.lock")
            for name, version, status, found in (
                ("quick-xml", "0.38.4", 1, ["RUSTSEC-2026-0194", "RUSTSEC-2026-0195"]),
                ("quick-xml", "0.41.0", 0, []),
                ("ansi_term", "0.12.1", 0, ["RUSTSEC-2021-0139"]),
            ):
                with self.subTest(name=name, version=version):
                    lock.write_text(entry.format(name, version))
                    done, told = check(lock)
                    self.assertEqual(
                        (done, [line.split(": ")[2].split(" ")[0] for line in told.splitlines()]), (status, found)
                    )


class Requirements(unittest.TestCase):
    def test_versions(self):
        satisfies = loaded().satisfies
        for requirement, inside, outside in (
            (">= 1.2.3", ["1.2.3", "1.10.0", "2.0.0"], ["1.2.2", "1.2.3-rc.1"]),
            ("< 0.5", ["0.4.9", "0.5.0-alpha"], ["0.5.0"]),
            (">= 0.3, < 0.3.5", ["0.3.4"], ["0.2.9", "0.3.5"]),
            ("^1.2", ["1.2.0", "1.9.0"], ["1.1.9", "2.0.0"]),
            ("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0", "0.2.2"]),
            ("^0.0.3", ["0.0.3"], ["0.0.4"]),
            ("~1.2.3", ["1.2.9"], ["1.3.0", "1.2.2"]),
            ("1.2.3", ["1.4.0"], ["2.0.0"]),
            ("= 1.2.3", ["1.2.3"], ["1.2.4"]),
            ("> 1.0.0-rc.2", ["1.0.0-rc.10", "1.0.0"], ["1.0.0-rc.1", "1.0.0-beta"]),
        ):
            for version in inside:
                self.assertTrue(satisfies(version, requirement), (version, requirement))
            for version in outside:
                self.assertFalse(satisfies(version, requirement), (version, requirement))


if __name__ == "__main__":
    unittest.main()
