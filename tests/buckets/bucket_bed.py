"""`psync` with a bucket of the S3 test environment."""

import os
import subprocess
import time
from pathlib import Path

import sync_trees
from s3_bed import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Bed

LIMIT_S = 120


def is_possible(name: str) -> bool:
    """Whether the test server, which stores objects as files, supports this name."""
    return name.isprintable() and name not in (".", "..") and not name.startswith(".sgwtmp")


class Bucket:
    """The bucket of a test environment, and `psync` with the settings to reach it."""

    def __init__(self, bed: S3Bed):
        self.bed = bed
        self.count = 0

    def environment(self, **more: str) -> dict[str, str]:
        """Contains none of the user's settings; empty values are left out."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        trusted = {"AWS_CA_BUNDLE": str(self.bed.certificate)} if self.bed.certificate else {}
        ours = {
            "AWS_ENDPOINT_URL": self.bed.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
        }
        return {
            key: value
            for key, value in (kept | ours | trusted | {"AWS_EC2_METADATA_DISABLED": "true"} | more).items()
            if value
        }

    def start(self, *arguments) -> subprocess.Popen:
        return subprocess.Popen(
            [sync_trees.PSYNC, *map(str, arguments)],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def psync(self, *arguments, expected: int = 0, **variables: str):
        done = subprocess.run(
            [sync_trees.PSYNC, *map(str, arguments)],
            env=self.environment(**variables),
            capture_output=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == expected, f"{done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done

    def counted(self, *arguments) -> dict[str, int]:
        """Runs `psync`; returns its number of requests of each kind."""
        self.bed.reset_statistics()
        self.psync(*arguments)
        return self.bed.statistics().by_kind

    def place(self) -> str:
        """The URL of a directory that nobody else uses."""
        self.count += 1
        return f"s3://{BUCKET}/place{self.count}"

    def path(self, url: str) -> Path:
        """The path at which the server stores the object or prefix of this URL."""
        return Path(self.bed.data, url.removeprefix("s3://"))

    def fill(self, source: Path, url: str) -> None:
        self.psync("-rt", f"{source}/", f"{url}/")


def lines(done) -> list[bytes]:
    return sorted(done.stdout.splitlines())


def files_of(tree: Path) -> dict[str, tuple]:
    """Kind, time and content of each entry; the times of directories do not count."""
    found = sync_trees.snapshot(tree, unit_ns=1)
    return {
        name: (kind, 0 if kind == 0o040000 else time, content) for name, (kind, _, _, _, time, content) in found.items()
    }


def wait_until(is_so, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
