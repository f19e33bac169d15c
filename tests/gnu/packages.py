"""The source packages of the published test suites, fetched by apt.

apt fetches them from wherever this machine's own apt is configured to, through a private configuration in which the
configured sources are sources of source packages. Only the tests are unpacked, unless the tools are built to judge by
(releases.py). The downloads stay in build/gnu, so a second run needs no network.
"""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "gnu"
SOURCES_LIST = Path("/etc/apt/sources.list")
SOURCES_DIRECTORY = Path("/etc/apt/sources.list.d")
# Where Debian's newest packages are.
UNSTABLE = "unstable"


class Archive:
    """Source packages of the suites that this machine has configured, or of `suite` in their place."""

    def __init__(self, suite: str | None = None):
        self.suite = suite
        self.apt = CACHE / ("apt" if suite is None else f"apt-{suite}")

    def cached(self, package: str, version: str) -> Path | None:
        """The upstream tar archive of a version, if it has been fetched."""
        pattern = f"{package}_{version.rpartition('-')[0]}.orig.tar.*z*"
        return next((path for path in folder_of(package, version).glob(pattern) if path.suffix != ".asc"), None)

    def fetch(self, package: str, version: str) -> Path:
        """The upstream tar archive of a version."""
        if not self.cached(package, version):
            folder = folder_of(package, version)
            partial = folder.with_name(folder.name + ".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            self.update()
            fetching = ["apt-get", "--quiet=2", "--download-only", "--tar-only", "source", f"{package}={version}"]
            subprocess.run(fetching, check=True, env=self.environment(), cwd=partial)
            shutil.rmtree(folder, ignore_errors=True)
            partial.rename(folder)
        return self.cached(package, version)

    def newest(self, package: str) -> str:
        """The newest available version."""
        self.update()
        showing = ["apt-cache", "showsrc", "--only-source", package]
        shown = subprocess.run(showing, check=True, env=self.environment(), capture_output=True, text=True).stdout
        versions = re.findall(r"^Version: (\S+)$", shown, re.MULTILINE)
        sorting = subprocess.run(
            ["sort", "--version-sort"], check=True, input="\n".join(versions), capture_output=True, text=True
        )
        return sorting.stdout.split()[-1]

    def update(self) -> None:
        # An archive without sources makes this fail; what counts is whether the package is found.
        subprocess.run(["apt-get", "--quiet=2", "update"], check=False, env=self.environment())

    def environment(self) -> dict[str, str]:
        return {**os.environ, "APT_CONFIG": str(self.configuration())}

    def configuration(self) -> Path:
        """A private apt configuration, which does not change the machine's."""
        for folder in ("lists/partial", "cache/archives/partial", "sources"):
            (self.apt / folder).mkdir(parents=True, exist_ok=True)
        for path in [SOURCES_LIST, *SOURCES_DIRECTORY.glob("*.list"), *SOURCES_DIRECTORY.glob("*.sources")]:
            if path.exists():
                text = as_source_packages(path.read_text())
                (self.apt / "sources" / path.name).write_text(
                    text if self.suite is None else in_suite(text, self.suite)
                )
        configuration = self.apt / "apt.conf"
        configuration.write_text(
            f'Dir::State::lists "{self.apt}/lists";\n'
            f'Dir::Cache "{self.apt}/cache";\n'
            'Dir::Etc::sourcelist "/dev/null";\n'
            f'Dir::Etc::sourceparts "{self.apt}/sources";\n'
            # Its own user may not enter the folder that the repository is in.
            'APT::Sandbox::User "root";\n'
        )
        return configuration


def folder_of(package: str, version: str) -> Path:
    return CACHE / f"{package}-{version}"


def installed_version(package: str) -> str:
    query = ["dpkg-query", "--show", "--showformat=${source:Version}", package]
    return subprocess.run(query, check=True, capture_output=True, text=True).stdout


def installed_programs(package: str) -> dict[str, Path]:
    """The commands that a package installs, by name."""
    listing = subprocess.run(["dpkg-query", "--listfiles", package], check=True, capture_output=True, text=True).stdout
    paths = map(Path, listing.splitlines())
    return {path.name: path for path in paths if path.parent.name in ("bin", "sbin")}


def unpack(archive: Path, wanted: tuple[str, ...], destination: Path) -> None:
    """Unpacks files and folders of an archive of sources, those of `wanted`, and nothing else."""
    unpacking = [
        "tar",
        "--extract",
        "--strip-components=1",
        "--no-same-owner",
        "--no-wildcards-match-slash",
        "--wildcards",
    ]
    members = [f"*/{name}" for name in wanted]
    subprocess.run([*unpacking, f"--file={archive}", f"--directory={destination}", *members], check=True)


def as_source_packages(text: str) -> str:
    """A list of apt sources, in either of its two formats, that names the same archives for source packages."""
    text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
    return re.sub(r"^deb ", "deb-src ", text, flags=re.MULTILINE)


def in_suite(text: str, suite: str) -> str:
    """A list of apt sources with another suite in place of this machine's release, and without all other suites."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")
    kept = []
    for stanza in re.split(r"\n\s*\n", text):
        if suites := re.search(r"^Suites:(.*)$", stanza, re.MULTILINE):
            if release in suites[1].split():
                kept.append(stanza.replace(suites[0], f"Suites: {suite}"))
            continue
        of_release = rf"^(deb-src (?:\[.*?\] )?\S+) {re.escape(release)} "
        kept += [
            re.sub(of_release, rf"\1 {suite} ", line) for line in stanza.splitlines() if re.match(of_release, line)
        ]
    return "\n\n".join(kept) + "\n"
