"""Test environments made for each run: a directory, a separate ext4, and either one seen through latfs."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from harness import TESTBED, scratch_directory

sys.path.insert(0, str(TESTBED))
from latency_mount import LatencyMount

NFS_LIKE_TTL_S = 60
DELAY_US = 500
DISK_BYTES = 16 << 30


class Scratch(AbstractContextManager):
    """A directory that is removed when the run is over; `prepare(directory)` fills it before."""

    statistics = None

    def __init__(self, prepare: Callable[[Path], None]):
        self._prepare = prepare

    def __enter__(self):
        self._holder = tempfile.TemporaryDirectory(dir=scratch_directory(), prefix="scratch.")
        self.path = Path(self._holder.name)
        self._prepare(self.path)
        # Otherwise unwritten data, more or less of it, would be written during the run.
        subprocess.run(["sync"], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["rm", "-rf", self.path], check=True)


class FreshDisk(Scratch):
    """The same on an ext4 made for the run.

    ext4 does not reuse an inode number soon after its release, and searches for another one: after many files have been
    removed, creating one takes up to a third of a millisecond. On a disk that several runs share, each would pay for
    the removals of the previous one.
    """

    def __enter__(self):
        self._holder = tempfile.TemporaryDirectory(dir=scratch_directory(), prefix="disk.")
        image, self.path = Path(self._holder.name, "image"), Path(self._holder.name, "mount")
        self.path.mkdir()
        with open(image, "wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(
            ["mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=1,nodiscard", "-i", "8192", image], check=True
        )
        subprocess.run(["mount", "-o", "loop,noinit_itable", image, self.path], check=True)
        self._prepare(self.path)
        subprocess.run(["sync"], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=True)
        self._holder.cleanup()


class ThroughLatfs:
    """A mixin that shows one of these through latfs: each of its entries is a separate mount, like the exports of a
    filer.
    """

    def __enter__(self):
        super().__enter__()
        self._mounts = ExitStack()
        self._opened = []
        self._view = Path(tempfile.mkdtemp(prefix="millstream-view."))
        for entry in sorted(self.path.iterdir()):
            mount = self._mounts.enter_context(LatencyMount(entry, DELAY_US, NFS_LIKE_TTL_S))
            (self._view / entry.name).symlink_to(mount.path)
            self._opened.append(mount)
        self._source, self.path = self.path, self._view
        return self

    def __exit__(self, *details):
        self._mounts.close()
        self.statistics = Total([mount.statistics for mount in self._opened])
        shutil.rmtree(self._view)
        self.path = self._source
        super().__exit__(*details)


class Total:
    """The statistics of several mounts as one."""

    def __init__(self, parts):
        self.total = sum(part.total for part in parts)
        self.max_in_flight = max(part.max_in_flight for part in parts)


class SlowScratch(ThroughLatfs, Scratch):
    """A directory seen through latfs."""
