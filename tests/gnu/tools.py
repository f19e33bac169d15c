"""Which of our binaries replaces which GNU tool, and the two directories of tools to compare."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from releases import Newest, Release


@dataclass(frozen=True)
class Tool:
    """A GNU tool, our binary that replaces it, and the published tests about it."""

    name: str
    binary: str
    package: str
    scripts: tuple[str, ...]


TOOLS = (
    Tool("ls", "pls", "coreutils", ("tests/ls",)),
    Tool("du", "pdu", "coreutils", ("tests/du",)),
    Tool("rm", "prm", "coreutils", ("tests/rm",)),
    Tool("cp", "pcopy", "coreutils", ("tests/cp",)),
    Tool("chmod", "pchmod", "coreutils", ("tests/chmod",)),
    Tool("chown", "pchown", "coreutils", ("tests/chown",)),
    Tool("chgrp", "pchown", "coreutils", ("tests/chgrp",)),
    Tool("find", "pfind", "findutils", ("tests/find",)),
)


def make_directory(directory: Path) -> None:
    """A directory for tools, with the interpreter that some tests require."""
    directory.mkdir(parents=True)
    (directory / "python").symlink_to("/usr/bin/python3")


def link_gnu(tools: list[Tool], release: Release, directory: Path) -> None:
    """Fills a directory with the GNU tools of a release."""
    make_directory(directory)
    copy_newest(tools, release, directory)
    for tool in tools:
        if not (directory / tool.name).exists():
            (directory / tool.name).symlink_to(release.programs(tool.package)[tool.name])


def copy_newest(tools: list[Tool], release: Release, directory: Path) -> None:
    """Copies all programs of the newest packages, which the tests use in addition to the tested ones."""
    if not isinstance(release, Newest):
        return
    for package in {tool.package for tool in tools}:
        for name, path in release.programs(package).items():
            shutil.copy2(path, directory / name)


def link_ours(tools: list[Tool], release: Release, binaries: Path, directory: Path) -> None:
    """Fills a directory with our tools under GNU's names.

    They are copied, because other users must be able to run them wherever the repository is.
    """
    make_directory(directory)
    copy_newest(tools, release, directory)
    for tool in tools:
        (directory / tool.name).unlink(missing_ok=True)
        copy = directory / tool.binary
        if not copy.exists():
            shutil.copy2(binaries / tool.binary, copy)
            os.chmod(copy, 0o755)
        (directory / tool.name).symlink_to(tool.binary)
