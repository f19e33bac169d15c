"""The packages and the container image, each installed in a clean root directory and run there on a mounted volume.

`make package` makes a release and runs this. Needs root and `testbed/setup package`.
"""

import gzip
import os
import shutil
import tempfile
import unittest
from pathlib import Path

import clean_root
from clean_root import CARGO, EXERCISES, ROOT, in_root, released, run

TOOLS = CARGO.tools


def setUpModule():
    global scratch, clean
    directory = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(directory.cleanup)
    scratch = Path(directory.name)
    clean = scratch / "clean"
    clean_root.make_root(clean, clean_root.of_this_system("VERSION_CODENAME"))


def new_root(name):
    run("cp", "-a", clean, scratch / name)
    return scratch / name


def new_volume():
    return clean_root.new_volume(scratch)


class Contents(unittest.TestCase):
    def test_lintian(self):
        # Releases are described in CHANGELOG.md, not in Debian's format.
        run(
            "lintian",
            "--allow-root",
            "--fail-on",
            "error,warning",
            "--suppress-tags",
            "no-changelog",
            released("*.deb"),
        )

    def test_every_tool_has_an_exercise(self):
        self.assertLessEqual(set(TOOLS), set(EXERCISES), "say in EXERCISES what shows that it works")


class Installed(unittest.TestCase):
    def check(self, root, zsh_functions, licenses):
        for tool in TOOLS:
            with self.subTest(tool):
                share = root / "usr/share"
                self.assertIn(tool, gzip.decompress((share / f"man/man1/{tool}.1.gz").read_bytes()).decode())
                self.assertIn(tool, (share / f"fish/vendor_completions.d/{tool}.fish").read_text())
                self.assertIn(f"#compdef {tool}", (share / f"zsh/{zsh_functions}/_{tool}").read_text())
                loads = f"source /usr/share/bash-completion/completions/{tool}; complete -p {tool}"
                self.assertIn(tool, in_root(root, loads, new_volume()))
                self.assertIn(CARGO.version, in_root(root, f"{tool} --version", new_volume()))
                in_root(root, EXERCISES[tool], new_volume())
        texts = "".join((root / path).read_text() for path in licenses)
        self.assertIn("Apache License", texts)
        self.assertIn("rustix", texts)

    def test_deb(self):
        root = new_root("deb")
        shutil.copy(released("*.deb"), root / "millstream.deb")
        in_root(root, "dpkg --install /millstream.deb && dpkg --verify millstream", new_volume())
        self.check(root, "vendor-completions", ["usr/share/doc/millstream/copyright"])
        in_root(root, "dpkg --purge millstream", new_volume())
        self.assertEqual([tool for tool in TOOLS if (root / "usr/bin" / tool).exists()], [])

    def test_rpm(self):
        root = new_root("rpm")
        rpm = ("rpm", "--root", root, "--dbpath", "/var/lib/rpm")
        # Debian's C library is registered in the database with the capabilities that rpm finds in it.
        run(*rpm, "--install", "--justdb", self.rpm_of_the_c_library(root))
        run(*rpm, "--install", released("*.rpm"))
        run(*rpm, "--verify", "millstream")
        licenses = Path("usr/share/licenses/millstream")
        self.check(root, "site-functions", [licenses / "LICENSE", licenses / "THIRD-PARTY-LICENSES"])
        run(*rpm, "--erase", "millstream")
        self.assertEqual([tool for tool in TOOLS if (root / "usr/bin" / tool).exists()], [])

    def rpm_of_the_c_library(self, root):
        libraries = next(root.glob("lib/*-linux-gnu"))
        spec = scratch / "libc.spec"
        names = [f"lib{name}" for name in ("c.so.6", "m.so.6", "dl.so.2", "pthread.so.0")]
        copies = "\n".join(f"install -D {libraries / name} %{{buildroot}}/lib64/{name}" for name in names)
        spec.write_text(
            "%global debug_package %{nil}\n%global __os_install_post %{nil}\n%global _build_id_links none\n"
            "Name: libc\nVersion: 1\nRelease: 1\nSummary: The C library\nLicense: LGPL\nAutoReq: no\n"
            f"%description\nThe C library.\n%install\n{copies}\n%files\n/lib64/*\n"
        )
        run("rpmbuild", "-bb", "--define", f"_topdir {scratch}/libc", spec)
        (found,) = (scratch / "libc/RPMS").rglob("*.rpm")
        return found


class Container(unittest.TestCase):
    """Builds packaging/Containerfile on the clean root instead of the registry's image, and runs it without a daemon."""

    @classmethod
    def setUpClass(cls):
        storage = ("--root", scratch / "storage", "--runroot", scratch / "run", "--storage-driver", "vfs")
        cls.buildah = staticmethod(lambda command, *arguments: run("buildah", *storage, command, *arguments).strip())
        base = cls.buildah("from", "scratch")
        cls.buildah("add", "--quiet", base, clean, "/")
        cls.buildah("commit", "--quiet", "--rm", base, "clean")
        local = ("--isolation", "chroot", "--pull-never", "--build-arg", "BASE=localhost/clean")
        recipe = ("--file", ROOT / "packaging/Containerfile", clean_root.DIST)
        cls.buildah("build", *local, "--tag", "millstream", *recipe)
        cls.container = cls.buildah("from", "--pull-never", "localhost/millstream")

    def run_on(self, volume, *command, options=()):
        mounted = ("--isolation", "chroot", "--volume", f"{volume}:/volume", *options)
        return self.buildah("run", *mounted, self.container, "--", *command)

    def test_tools_work_on_the_volume(self):
        for tool in TOOLS:
            with self.subTest(tool):
                self.run_on(new_volume(), "bash", "-ec", EXERCISES[tool])

    def test_command_lists_the_volume(self):
        command = self.buildah("inspect", "--format", "{{range .OCIv1.Config.Cmd}}{{.}} {{end}}", self.container)
        self.assertIn("ä", self.run_on(new_volume(), *command.split()))

    def test_any_user(self):
        volume = new_volume()
        os.chmod(volume, 0o755)
        self.assertIn("./sub/file", self.run_on(volume, "pfind", ".", options=["--user", "1234:5678"]))


if __name__ == "__main__":
    unittest.main()
