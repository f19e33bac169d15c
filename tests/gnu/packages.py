"""The published test suites, fetched as Debian source packages of the versions that are installed here.

apt fetches them from wherever this machine's own apt is configured to, through a private configuration in which the
configured sources are sources of source packages. Only the tests are unpacked, never the tools' sources. What has been
fetched stays in build/gnu, so a second run needs no network.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "gnu"
SOURCES_LIST = Path("/etc/apt/sources.list")
SOURCES_DIRECTORY = Path("/etc/apt/sources.list.d")


def installed_version(package: str) -> str:
    query = ["dpkg-query", "--show", "--showformat=${source:Version}", package]
    return subprocess.run(query, check=True, capture_output=True, text=True).stdout


def programs(package: str) -> list[str]:
    """The names of the commands that a package installs."""
    listing = subprocess.run(["dpkg-query", "--listfiles", package], check=True, capture_output=True, text=True).stdout
    return sorted(Path(line).name for line in listing.splitlines() if Path(line).parent.name in ("bin", "sbin"))


def unpack_tests(package: str, wanted: tuple[str, ...], destination: Path) -> None:
    """Unpacks files and folders of a package's sources, those of `wanted`, and nothing else."""
    members = [f"{package}-*/{name}" for name in wanted]
    unpacking = ["tar", "--extract", "--strip-components=1", "--no-same-owner", "--no-wildcards-match-slash", "--wildcards"]
    subprocess.run([*unpacking, f"--file={fetch(package)}", f"--directory={destination}", *members], check=True)


def fetch(package: str) -> Path:
    """The upstream tar archive of the installed version of a package."""
    version = installed_version(package)
    folder = CACHE / f"{package}-{version}"
    pattern = f"{package}_{version.rpartition('-')[0]}.orig.tar.*z*"
    if not list(folder.glob(pattern)):
        partial = folder.with_name(folder.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        environment = {**os.environ, "APT_CONFIG": str(private_apt())}
        fetching = ["apt-get", "--quiet=2", "--download-only", "source", f"{package}={version}"]
        # An archive without sources makes this fail; what counts is whether the package is found.
        subprocess.run(["apt-get", "--quiet=2", "update"], check=False, env=environment)
        subprocess.run(fetching, check=True, env=environment, cwd=partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return next(path for path in folder.glob(pattern) if path.suffix != ".asc")


def private_apt() -> Path:
    """An apt configuration of our own, which changes nothing of the machine's."""
    apt = CACHE / "apt"
    for folder in ("lists/partial", "cache/archives/partial", "sources"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    for path in [SOURCES_LIST, *SOURCES_DIRECTORY.glob("*.list"), *SOURCES_DIRECTORY.glob("*.sources")]:
        if path.exists():
            (apt / "sources" / path.name).write_text(as_source_packages(path.read_text()))
    configuration = apt / "apt.conf"
    configuration.write_text(
        f'Dir::State::lists "{apt}/lists";\n'
        f'Dir::Cache "{apt}/cache";\n'
        'Dir::Etc::sourcelist "/dev/null";\n'
        f'Dir::Etc::sourceparts "{apt}/sources";\n'
        # Its own user may not enter the folder that the repository is in.
        'APT::Sandbox::User "root";\n'
    )
    return configuration


def as_source_packages(text: str) -> str:
    """A list of apt sources, in either of its two formats, that names the same archives for source packages."""
    text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
    return re.sub(r"^deb ", "deb-src ", text, flags=re.MULTILINE)
