"""The two sides of a synchronization that bench/sync measures: how they are filled before a run, and compared after it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from scratch import FreshDisk, ThroughLatfs

CHANGED_EVERY = 100
DAY_NS = 86_400 * 10**9
SIDECARS = ".*.crc"  # the checksums that Hadoop's local file system leaves next to files


def leave_empty(source: Path, destination: Path) -> None:
    destination.mkdir()


def copy_all(source: Path, destination: Path) -> None:
    subprocess.run(["cp", "-a", source, destination], check=True)


def copy_older(source: Path, destination: Path) -> None:
    """A copy in which every hundredth file, all over the tree, is an earlier and shorter version."""
    copy_all(source, destination)
    files = sorted(path for path in destination.rglob("*") if path.is_file())
    for file in files[::CHANGED_EVERY]:
        status = file.stat()
        os.truncate(file, status.st_size // 2)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns - DAY_NS))


def entries(root: Path) -> set[bytes]:
    """Each file of a tree with its size and time, and each directory by its name: not all rivals keep a directory's
    time.
    """
    return found(root, ["-type", "d", "-printf", r"%P/\0", "-o", "-printf", r"%P %y %s %T@\0"])


def untimed_entries(root: Path) -> set[bytes]:
    return found(root, ["-type", "d", "-printf", r"%P/\0", "-o", "-not", "-name", SIDECARS, "-printf", r"%P %y %s\0"])


def found(root: Path, form: list[str]) -> set[bytes]:
    return set(subprocess.run(["find", f"{root}/", *form], capture_output=True, check=True).stdout.split(b"\0"))


def different_contents(source: Path, destination: Path) -> int:
    command = ["diff", "--recursive", "--brief", "--no-dereference", f"--exclude={SIDECARS}", source, destination]
    return subprocess.run(command, capture_output=True).stdout.count(b"\n")


def different_entries(source: Path, destination: Path) -> int:
    """The number of entries that do not have the same name, size and time in both trees."""
    return len(entries(source) ^ entries(destination))


def differences(source: Path, destination: Path) -> int:
    """The same, and the contents of files."""
    return different_entries(source, destination) + different_contents(source, destination)


def untimed_differences(source: Path, destination: Path) -> int:
    """The same where a rival does not keep the times of files."""
    return len(untimed_entries(source) ^ untimed_entries(destination)) + different_contents(source, destination)


def cache(source: Path) -> None:
    """Reads the whole tree, so that it is in the page cache for all contenders."""
    subprocess.run(f"find '{source}' -type f -print0 | xargs -0 cat > /dev/null", shell=True, check=True)


class Sides(FreshDisk):
    """`from`, the source, and `to`, the destination, on a disk made for the run; `answer` is the number of differences
    after it.
    """

    def __init__(
        self,
        source: Path,
        fill: Callable[[Path, Path], None],
        compare: Callable[[Path, Path], int] = differences,
    ):
        self.source = source
        self._compare = compare
        super().__init__(lambda disk: self._make(disk, fill))

    def _make(self, disk: Path, fill: Callable[[Path, Path], None]) -> None:
        (disk / "from").symlink_to(self.source)
        fill(self.source, disk / "to")
        cache(self.source)

    @property
    def destination(self) -> Path:
        return self.path / "to"

    def __exit__(self, *details):
        self.answer = self._compare(self.source, self.destination)
        super().__exit__(*details)


class SlowSides(ThroughLatfs, Sides):
    """The same through latfs."""
