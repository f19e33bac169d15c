"""The releases of GNU's tools that judge ours: the installed one, and the newest, built from its source package.

A release has the published tests, the tools that must pass them for a test to apply, and what ours is expected to fail.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import packages

HERE = Path(__file__).parent

# Results of GNU's configure on this system, as far as the scripts need them.
CONFIG_HEADER = """\
#define HAVE_LINKAT 1
#define HAVE_LUTIMES 1
#define HAVE_OPENAT 1
#define HAVE_UTIMENSAT 1
#define LINK_FOLLOWS_SYMLINKS 0
#define USE_ACL 1
#define USE_XATTR 1
"""


class Installed:
    """The packages that this machine has installed."""

    # Slightly fewer than apply on the machine of the floors, which may support more than another.
    floors = {"coreutils": 180, "findutils": 600}
    expected_failures = HERE / "expected-failures.txt"

    def archive(self, package: str) -> Path:
        return packages.Archive().fetch(package, packages.installed_version(package))

    def programs(self, package: str) -> dict[str, Path]:
        return packages.installed_programs(package)

    def config_header(self, package: str) -> str:
        return CONFIG_HEADER

    def is_known(self, package: str) -> bool:
        """Whether the expected failures are those of this version."""
        return True


@dataclass(frozen=True)
class Recipe:
    """How the programs of a package are built, and where the result is."""

    # The Debian version of the floors and expected failures.
    known: str
    folders: tuple[str, ...]
    # Arguments of make, for each of its runs: translations, manuals and tests of libraries are left out.
    makes: tuple[tuple[str, ...], ...]


RECIPES = {
    "coreutils": Recipe("9.10-1", ("src",), (("SUBDIRS=.",),)),
    "findutils": Recipe(
        "4.11.0-3",
        ("find", "xargs", "locate"),
        tuple(("-C", folder) for folder in ("gl", "lib", "find", "xargs", "locate")),
    ),
}
# Programs that have another name before they are installed.
RENAMED = {"ginstall": "install"}


@dataclass
class Newest:
    """The newest packages of Debian. Built once for each version; the results stay in build/gnu, the sources do not."""

    floors = {"coreutils": 200, "findutils": 600}
    expected_failures = HERE / "expected-failures-newest.txt"
    versions: dict[str, str] = field(default_factory=dict)
    archives: packages.Archive = field(default_factory=lambda: packages.Archive(packages.UNSTABLE))

    def version(self, package: str) -> str:
        """The known version if it has been fetched, otherwise the newest."""
        known = RECIPES[package].known
        if package not in self.versions:
            is_cached = self.archives.cached(package, known) is not None
            self.versions[package] = known if is_cached else self.archives.newest(package)
        return self.versions[package]

    def is_known(self, package: str) -> bool:
        return self.version(package) == RECIPES[package].known

    def archive(self, package: str) -> Path:
        return self.archives.fetch(package, self.version(package))

    def programs(self, package: str) -> dict[str, Path]:
        return {path.name: path for path in (self.build(package) / "programs").iterdir()}

    def config_header(self, package: str) -> str:
        return (self.build(package) / "config.h").read_text()

    def build(self, package: str) -> Path:
        """The folder with the programs and what configure found out."""
        built = packages.CACHE / f"built-{package}-{self.version(package)}"
        if not built.exists():
            partial = built.with_name(built.name + ".partial")
            shutil.rmtree(partial, ignore_errors=True)
            source = partial / "source"
            source.mkdir(parents=True)
            subprocess.run(
                ["tar", "--extract", "--strip-components=1", f"--file={self.archive(package)}"], check=True, cwd=source
            )
            recipe = RECIPES[package]
            make(source, recipe, partial / "log")
            collect(source, recipe, partial)
            shutil.rmtree(source)
            partial.rename(built)
        return built


def make(source: Path, recipe: Recipe, log: Path) -> None:
    # Configure refuses root otherwise.
    environment = {**os.environ, "FORCE_UNSAFE_CONFIGURE": "1", "CFLAGS": "-O1", "LDFLAGS": "-s"}
    with log.open("wb") as output:
        configure = ["./configure", "--quiet", "--disable-nls", "--disable-dependency-tracking"]
        for command in (configure, *(["make", f"-j{os.cpu_count()}", *arguments] for arguments in recipe.makes)):
            done = subprocess.run(
                command, cwd=source, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            if done.returncode:
                raise SystemExit(f"run: {' '.join(command)} failed: {log}")


def collect(source: Path, recipe: Recipe, destination: Path) -> None:
    """Keeps the programs, and what configure found out."""
    (destination / "programs").mkdir()
    for path in (path for folder in recipe.folders for path in (source / folder).iterdir()):
        if (
            path.is_file()
            and not path.is_symlink()
            and os.access(path, os.X_OK)
            and path.read_bytes().startswith(b"\x7fELF")
        ):
            shutil.copy2(path, destination / "programs" / RENAMED.get(path.name, path.name))
    shutil.copy2(next(source.glob("**/config.h")), destination / "config.h")


Release = Installed | Newest
