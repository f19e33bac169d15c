"""The checks that a release must pass: each detects its kind of problem."""

import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import crates  # noqa: E402


def check(*files):
    done = subprocess.run([ROOT / "packaging/check", *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


class Files(unittest.TestCase):
    """The checks of a library that calls a function of another, which represents the C library."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.scratch = Path(directory.name)

    def library(self, version, soname="libc.so.6"):
        """A library that needs `version` of `soname`."""
        for name, content in (
            ("needed.c", "void old(void) {}"),
            ("needed.map", f"{version} {{ old; }};"),
            ("user.c", "void old(void); void use(void) { old(); }"),
        ):
            (self.scratch / name).write_text(content)
        compiler = ["gcc", "-shared", "-fPIC", "-nostdlib", "-o"]
        needed, user = self.scratch / "needed.so", self.scratch / "user.so"
        subprocess.run(
            [
                *compiler,
                needed,
                self.scratch / "needed.c",
                f"-Wl,-soname={soname}",
                f"-Wl,--version-script={self.scratch}/needed.map",
            ],
            check=True,
        )
        subprocess.run([*compiler, user, self.scratch / "user.c", needed], check=True)
        return user

    def jar(self, **entries):
        jar = self.scratch / "a.jar"
        with zipfile.ZipFile(jar, "w") as archive:
            for name, content in entries.items():
                archive.writestr(name.replace("__", "/").replace("_class", ".class"), content)
        wheel = self.scratch / "a.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.write(jar, "millstream/jars/a.jar")
        return wheel

    def test_the_oldest_glibc_is_allowed(self):
        self.assertEqual(check(self.library("GLIBC_2.28")), (0, ""))

    def test_newer_symbols_are_found(self):
        for version in ("2.29", "2.100", "3.0", "PRIVATE", "ABI_DT_RELR"):
            status, told = check(self.library(f"GLIBC_{version}"))
            self.assertEqual(status, 1, version)
            self.assertIn(f"user.so needs glibc {version}\n", told)

    def test_other_libraries_are_found(self):
        status, told = check(self.library("OTHER_1", "libgcc_s.so.1"))
        self.assertEqual(status, 1)
        self.assertIn("user.so needs libgcc_s.so.1\n", told)

    def test_native_code_is_found_in_the_jar_in_the_wheel(self):
        status, told = check(self.jar(lib=self.library("GLIBC_2.34").read_bytes()))
        self.assertEqual(status, 1)
        self.assertIn("a.whl: lib needs glibc 2.34\n", told)

    def test_an_archive_without_native_code_is_found(self):
        status, told = check(self.jar(io__millstream__hadoop__A_class=b""))
        self.assertEqual(status, 1)
        self.assertIn("holds no native code", told)

    def test_classes_of_others_are_found(self):
        library = self.library("GLIBC_2.5").read_bytes()
        own = "io__millstream__hadoop__A_class"
        self.assertEqual(check(self.jar(lib=library, **{own: b""})), (0, ""))
        status, told = check(self.jar(lib=library, **{own: b"", "com__fasterxml__B_class": b""}))
        self.assertEqual(status, 1)
        self.assertIn("com/fasterxml/B.class is none of our classes\n", told)


class Licences(unittest.TestCase):
    def test_expressions(self):
        for expression, allowed in {
            "MIT": True,
            "MIT OR Apache-2.0": True,
            "GPL-3.0-only": False,
            "GPL-2.0-only OR MIT": True,
            "MIT AND GPL-3.0-only": False,
            "(MIT OR Apache-2.0) AND Unicode-3.0": True,
            "(MIT OR GPL-3.0-only) AND (LGPL-2.1 OR MPL-2.0)": False,
            "": False,
            "Apache-2.0 WITH LLVM-exception OR MIT": True,
            "GPL-2.0-only WITH Classpath-exception-2.0": False,
            "MIT AND (ISC OR GPL-3.0-only)": True,
        }.items():
            self.assertEqual(crates.is_allowed(expression), allowed, expression)

    def test_the_crate_that_is_refused_is_named(self):
        some = [
            {"name": "a", "version": "1", "license": "MIT/Apache-2.0"},
            {"name": "b", "version": "2", "license": "AGPL-3.0"},
            {"name": "c", "version": "3", "license": None},
        ]
        self.assertEqual(
            [message.split(",")[0:2] for message in crates.refused(some)],
            [["b 2: its licence", " AGPL-3.0"], ["c 3: its licence", " not stated"]],
        )

    def test_every_linked_crate_is_allowed(self):
        linked = crates.linked_crates()
        self.assertIn("rustix", {crate["name"] for crate in linked})
        self.assertEqual(crates.refused(linked), [])


if __name__ == "__main__":
    unittest.main()
